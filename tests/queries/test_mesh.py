"""Nodes that are asked, in order: the leader first, then the others, then what was last heard."""

import asyncio

from small_mesh import ANN, GROUP, LAMP, NAMES, SmallMesh

from comesh.queries.answers import Silence
from comesh.queries.node_reads import OwnDevice, OwnStatus, OwnTime
from comesh.queries.requests import ListDevices, ListVersions, ShowDevice, ShowHealth

N1, N2, N3 = NAMES


def test_the_leader_is_asked_and_nobody_else() -> None:
    small = SmallMesh(leader=N3)
    known = asyncio.run(small.mesh(N1).ask_leader(GROUP, OwnDevice(device=LAMP)))
    assert known is not None
    assert (known.answered_by, known.reached) == (N3, True)
    assert {to for sender, to, _ in small.sent if sender == N1} == {N3}


def test_the_other_members_are_asked_where_the_leader_is_silent() -> None:
    small = SmallMesh(leader=N2)
    small.views[N1].leader = N3  # as n1 believes
    small.lose = lambda sender, to: to == N3
    known = asyncio.run(small.mesh(N1).ask_leader(GROUP, OwnDevice(device=LAMP)))
    assert known is not None
    assert known.answered_by == N2


def test_what_is_not_reached_is_answered_with_the_last_that_was_heard() -> None:
    """Heard of one, or of a list of all."""
    small = SmallMesh(leader=N2)

    async def story() -> None:
        desk = small.table(N1)
        (listed,) = (await desk.answer(ListDevices(), ANN)).devices
        assert (listed.reached, listed.answered_by, listed.as_of_ms) == (True, N2, 2000.0)
        small.views[N1].living = (N1,)
        for now in (
            await desk.answer(ShowDevice(device=LAMP), ANN),
            *(await desk.answer(ListDevices(), ANN)).devices,
        ):
            assert (now.reached, now.answered_by, now.as_of_ms) == (False, N2, 2000.0)
            assert now.state == listed.state

    asyncio.run(story())


def test_who_was_silent_is_told_with_the_reason() -> None:
    small = SmallMesh()
    view = small.views[N1]
    view.living, view.dead = (N1, N2), {N3}
    small.lose = lambda sender, to: True
    gathered = asyncio.run(small.mesh(N1).ask_all(OwnTime()))
    assert set(gathered.told) == {N1}
    assert gathered.silent == {N2: Silence.NO_ANSWER, N3: Silence.DEAD}
    view.dead = set()
    gathered = asyncio.run(small.mesh(N1).ask_all(OwnTime()))
    assert gathered.silent[N3] is Silence.NEVER_HEARD_OF


def test_a_node_of_another_version_is_told_as_such() -> None:
    """The small nodes answer nothing where a status is wanted."""
    small = SmallMesh()
    gathered = asyncio.run(small.mesh(N1).ask_nodes((N2,), OwnStatus()))
    assert gathered.silent == {N2: Silence.OTHER_VERSION}


def test_a_partial_answer_says_who_was_silent() -> None:
    small = SmallMesh()
    small.views[N1].living = (N1,)
    health = asyncio.run(small.table(N1).answer(ShowHealth(), ANN))
    assert set(health.silent) == {N2, N3}
    assert health.nodes[N2] is None


def test_versions_are_told_by_the_leader_of_their_group() -> None:
    small = SmallMesh(leader=N2)
    found = asyncio.run(small.table(N1).answer(ListVersions(), ANN))
    assert (found.newest, found.reached) == (1, True)
    small.views[N1].living = (N1,)
    assert not asyncio.run(small.table(N1).answer(ListVersions(), ANN)).reached

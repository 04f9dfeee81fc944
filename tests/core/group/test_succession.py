"""Who is replaced at once: silent members, where the next one would be one too many. And how long that waits
for commands under way."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from comesh.core.events import Timer
from comesh.core.group.config import Config, Seat
from comesh.core.group.deadlines import Deadlines
from comesh.core.group.handoff import LANDING_MS, Handoff
from comesh.core.group.succession import View, next_config
from comesh.core.ids import GroupId, NodeId
from comesh.core.program import ProtocolSettings
from comesh.core.stamps import OPENING, Ballot
from comesh.core.step import Step

GROUP = GroupId("hall")
NODES = tuple(NodeId(f"n{number}") for number in range(1, 10))
SETTINGS = ProtocolSettings()
LEASE_MS = SETTINGS.lease_ms
ELECTED = Ballot(1, 1)


def _first(many: int, alive: list[NodeId]) -> tuple[NodeId, ...]:
    """As the selector does: a smaller odd config where not enough live."""
    size = min(many, len(alive))
    return tuple(alive[: size - 1 + size % 2])


def successor(
    silent_ms: dict[int, float],
    *,
    never: tuple[int, ...] = (),
    ballot: Ballot = ELECTED,
    seats: int = 5,
    living: tuple[NodeId, ...] = NODES,
) -> tuple[NodeId, ...] | None:
    """The members that rank 1 wants next."""
    config = Config(GROUP, 1, 0, tuple(Seat(node, 7) for node in NODES[:seats]), LEASE_MS, 1)
    leadership = SimpleNamespace(
        ballot=ballot,
        began_wall_ms=0.0,
        serving=None,
        short_since_ms=None,
        silent_ms=lambda rank, _step: silent_ms.get(rank, 0.0),
        was_heard=lambda rank: rank not in never,
    )
    replica = SimpleNamespace(config=config, rank=1, leadership=leadership, settings=SETTINGS, forced=False)
    selector = SimpleNamespace(select=lambda _group, _epoch, alive, _table: _first(seats, alive))
    plan = SimpleNamespace(genesis={GROUP: NODES[:seats]})
    newest = SimpleNamespace(plan=plan, settings=SETTINGS, version=1, selector=selector)
    step = Step(1.0, 1.0)
    found = next_config(cast("Any", replica), View(cast("Any", newest), living, {}), frozenset(), step)
    return None if found is None else found.nodes


def test_f_members_that_an_elected_leader_never_heard_are_replaced_after_a_lease() -> None:
    expected = tuple(NODES[number] for number in (1, 2, 4, 5, 6))
    assert successor({0: LEASE_MS, 3: LEASE_MS}, never=(0, 3)) == expected
    assert successor({0: LEASE_MS - 1, 3: LEASE_MS}, never=(0, 3)) is None


def test_f_members_that_missed_two_touches_are_replaced() -> None:
    assert successor({0: 2.6 * LEASE_MS, 3: 2.6 * LEASE_MS}, ballot=OPENING) is not None
    assert successor({0: 2.4 * LEASE_MS, 3: 2.6 * LEASE_MS}, ballot=OPENING) is None


def test_fewer_are_waited_for() -> None:
    assert successor({0: 5 * LEASE_MS}, never=(0,)) is None


@pytest.mark.parametrize("heard", [True, False])
def test_who_hears_fewer_than_a_quorum_is_cut_off_itself_and_replaces_nobody(heard: bool) -> None:
    """As when a switch starts anew: all leaders hear nobody for some seconds."""
    silent = dict.fromkeys((0, 2, 3, 4), 3 * LEASE_MS)
    for many in (3, 4):
        some = dict(list(silent.items())[:many])
        assert successor(some, never=() if heard else tuple(some)) is None


def test_the_first_leader_waits_for_members_that_start_later() -> None:
    assert successor({0: 5 * LEASE_MS, 3: 5 * LEASE_MS}, never=(0, 3), ballot=OPENING) is None


@pytest.mark.parametrize("silent_ms", [2.6 * LEASE_MS, 5.0 * LEASE_MS])
def test_where_f_is_one_a_restart_does_not_move_the_group(silent_ms: float) -> None:
    assert successor({0: silent_ms}, never=(0,), seats=3) is None


def test_where_nobody_else_lives_the_config_stays() -> None:
    assert successor({0: LEASE_MS, 3: LEASE_MS}, never=(0, 3), living=NODES[:5]) is None


@pytest.mark.parametrize(("silent_ms", "waits_ms"), [(0.0, LANDING_MS), (3.0 * LEASE_MS, LEASE_MS)])
def test_how_long_a_handoff_waits_for_commands_under_way(silent_ms: float, waits_ms: float) -> None:
    config = Config(GROUP, 1, 0, tuple(Seat(node, 7) for node in NODES[:5]), LEASE_MS, 1)
    deadlines = Deadlines(Timer("group", "due", config.mark))
    replica = SimpleNamespace(config=config, rank=1, lease_ms=LEASE_MS, deadlines=deadlines)
    serving = SimpleNamespace(in_flight=True, holds_back=False)
    leadership = SimpleNamespace(
        ballot=ELECTED,
        serving=serving,
        silent_ms=lambda rank, _step: silent_ms if rank in (0, 3) else 0.0,
        was_heard=lambda _rank: True,
    )
    handoff = Handoff(cast("Any", replica), cast("Any", leadership))
    assert not handoff._landed(Step(1.0, 1.0))
    assert serving.holds_back
    assert not handoff._landed(Step(waits_ms, 1.0))
    assert handoff._landed(Step(1.0 + waits_ms, 1.0))

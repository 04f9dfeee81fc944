"""Which elections experiments see: those of candidates that came to serve, from their first Ask on."""

from types import SimpleNamespace
from typing import Any, cast

from comesh.core.effects import LeaderChanged
from comesh.core.group.config import Config, unbound
from comesh.core.group.replica import DOUBT
from comesh.core.group_messages import Ask, Body, Claim, InConfig, Sync, Update
from comesh.core.ids import GroupId, NodeId
from comesh.core.stamps import FIRST_ERA, OPENING, Ballot
from comesh.experiments.measures.mesh_operations import Elections

GROUP = GroupId("c1")
N1, N2, N3 = (NodeId(name) for name in ("n1", "n2", "n3"))
CONFIG = Config(GROUP, 1, 0, unbound((N1, N2, N3)), 1000, 1)
LOST, WON = Ballot(1, 1), Ballot(2, 2)


def elections(*said: tuple[float, NodeId, NodeId, Body]) -> list[tuple[float, float, float]]:
    """When the winner n3 had asked, claimed and served, after these messages."""
    mesh = SimpleNamespace(world=SimpleNamespace(senders=[], observers=[]))
    found = Elections(cast("Any", mesh))
    for at_ms, by, to, body in said:
        mesh.world.senders[0](at_ms, by, to, InConfig(GROUP, 1, 0, 0, body), 10)
    told = LeaderChanged(GROUP, CONFIG, WON, "serving", 1, 0, FIRST_ERA)
    mesh.world.observers[0](90.0, N3, told)
    return [(one.asked_ms, one.claimed_ms, one.serving_ms) for one in found.done]


def test_a_rival_that_only_tried_does_not_hide_the_winner() -> None:
    rival = (30.0, N2, N3, Sync(LOST, 1, 0, FIRST_ERA, 0))
    asked, claimed = (10.0, N3, N2, Ask(WON)), (50.0, N3, N2, Claim(WON))
    assert elections(asked, rival, claimed) == [(10.0, 50.0, 90.0)]


def test_what_was_asked_before_a_leader_was_heard_is_over() -> None:
    heard = (30.0, N1, N3, Update(OPENING, 1, (), 0, 0))
    first, again = (10.0, N3, N2, Ask(LOST)), (40.0, N3, N2, Ask(WON))
    assert elections(first, heard, again, (50.0, N3, N2, Claim(WON))) == [(40.0, 50.0, 90.0)]


def test_a_doubt_is_no_election_yet() -> None:
    doubt, asked = (10.0, N3, N1, DOUBT), (20.0, N3, N2, Ask(WON))
    assert elections(doubt, asked, (50.0, N3, N2, Claim(WON))) == [(20.0, 50.0, 90.0)]

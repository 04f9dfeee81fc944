"""A leader that dies is missed soon, one that lives is left alone, and who wrote to a dead one hears of the
next."""

import pytest
from staging import HALL, HOP_MS, KITCHEN, Stage, lights, proposes, sends

from comesh.core.effects import Effect, LeaderChanged, Observation, Send
from comesh.core.group_messages import Ask, Claim, Update
from comesh.core.ids import GroupId, NodeId
from comesh.core.program import ProtocolSettings
from comesh.core.records import HandoffRecord, Record
from comesh.core.work_messages import GroupMessage, LockRequest, NotLeader

LEASE_MS = 1000.0
GOSSIP_MS = 200.0
"""Until six nodes know."""


class Watched:
    """A stage, and what was said and led on it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.led: list[tuple[float, NodeId, GroupId]] = []
        stage.world.observers.append(self._observe)

    def _observe(self, _now_ms: float, node: NodeId, told: Observation) -> None:
        if isinstance(told, LeaderChanged) and told.state == "serving":
            self.led.append((self.stage.world.now_ms, node, told.group))

    def times(self, kind: type, **which: str) -> list[float]:
        """When messages of a kind are sent, from now on."""
        found: list[float] = []
        for _ in range(20):
            self.stage.after(sends(kind, **which), lambda: found.append(self.stage.world.now_ms))
        return found


def _kitchen() -> Watched:
    return Watched(Stage(lights("evening", "kettle")))


@pytest.mark.parametrize("after_s", [0.1, 0.4, 0.7, 1.0])
def test_an_idle_leader_that_dies_is_followed_within_two_leases(after_s: float) -> None:
    watched = _kitchen()
    stage = watched.stage
    stage.run(seconds=after_s)
    died_ms = stage.world.now_ms
    stage.crash("n1")
    stage.run(seconds=4.0)
    served_ms, node, group = watched.led[0]
    assert (node, group) == ("n2", KITCHEN)
    assert served_ms - died_ms < 1.6 * LEASE_MS


def test_a_leader_that_missed_one_touch_is_asked_and_left_alone() -> None:
    watched = _kitchen()
    stage = watched.stage
    asked, others = watched.times(Ask, by="n2", to="n1"), watched.times(Ask, by="n2", to="n3")
    touched, claims = watched.times(Update, by="n1", to="n3"), watched.times(Claim)
    stage.lose(sends(Update, by="n1", to="n2", of=KITCHEN))
    stage.run(seconds=4.0)
    assert len(asked) == 1
    assert not others, "no pre-vote"
    assert not claims
    assert not watched.led
    assert 3 <= len(touched) <= 5, "only who asks is touched"


def test_nobody_asks_a_leader_that_is_heard() -> None:
    watched = _kitchen()
    asked = watched.times(Ask)
    watched.stage.run(seconds=10.0)
    assert not asked


def _dies_when_asked_for_a_lock() -> Watched:
    """The leader of the hall dies as the kitchen's asks it for the lamp."""
    watched = Watched(Stage(lights("evening", "lamp")))
    watched.stage.dies_after(sends(LockRequest, by="n1", to="n4"), "n4")
    watched.stage.fire("evening")
    return watched


def test_who_wrote_to_a_dead_leader_hears_of_the_next_from_itself() -> None:
    watched = _dies_when_asked_for_a_lock()
    asked = watched.times(LockRequest, by="n1", to="n5")
    watched.stage.run(seconds=4.0)
    served_ms = next(at_ms for at_ms, node, group in watched.led if (node, group) == ("n5", HALL))
    assert asked[0] - served_ms <= 2 * HOP_MS


def test_else_from_the_directory_and_asks_at_once() -> None:
    watched = Watched(Stage(lights("evening", "lamp")))
    stage = watched.stage
    stage.crash("n4")
    stage.run(seconds=0.8)
    stage.fire("evening")
    asked = watched.times(LockRequest, by="n1", to="n5")
    stage.lose(sends(NotLeader, by="n5", to="n1"))
    stage.run(seconds=4.0)
    served_ms = next(at_ms for at_ms, node, group in watched.led if (node, group) == ("n5", HALL))
    assert asked[0] - served_ms < GOSSIP_MS


def test_a_leader_that_hands_off_names_the_next() -> None:
    stage = Stage(lights("evening", "kettle"), settings=ProtocolSettings(epoch_ms=60_000), seed=3)
    heirs: list[NodeId] = []
    named: list[NodeId | None] = []

    def is_handoff(record: Record) -> bool:
        if isinstance(record, HandoffRecord):
            heirs.append(record.successor.nodes[0])
        return isinstance(record, HandoffRecord)

    def corrects(machine: str, effect: Effect) -> bool:
        if machine == "n1" and isinstance(effect, Send) and effect.to == "n6":
            body = effect.message.body if isinstance(effect.message, GroupMessage) else None
            if isinstance(body, NotLeader):
                named.append(body.leader)
        return False

    stage.after(corrects, lambda: None)
    stage.after(proposes(is_handoff, of=KITCHEN), lambda: stage.fire("evening", node="n6"))
    stage.until_epoch_ends(KITCHEN)
    stage.run(seconds=5.0)
    assert heirs[0] != "n1"
    assert named[0] == heirs[0]

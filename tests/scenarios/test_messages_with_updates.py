"""Letters that come with the update that they wait for: sooner, and as sure as after the commit."""

from collections.abc import Callable

import msgspec
import pytest
from staging import CALM, HOP_MS, KITCHEN, Stage, commits, lights, sends

from comesh.core.effects import Answered, CommitKnown, Committed, Effect, Observation, Persist
from comesh.core.group import leadership
from comesh.core.group_messages import Ready, Update, UpdateWithMessages
from comesh.core.ids import NodeId
from comesh.core.journal import Appended
from comesh.core.records import HandoffRecord, Record, RoutineRecord


class Asked:
    """A stage on which n3, a member of the kitchen, asks for a firing; what was observed, and when."""

    def __init__(self, stage: Stage | None = None) -> None:
        self.stage = stage or Stage(lights("evening", "kettle"))
        self.seen: list[tuple[float, NodeId, Observation]] = []
        self.stage.world.observers.append(lambda at_ms, node, told: self.seen.append((at_ms, node, told)))
        self.began_ms = self.stage.world.now_ms

    def fire(self) -> None:
        self.stage.fire("evening", "mine", node="n3")

    def when(self, kind: type[Observation], node: str) -> float | None:
        """How long after the beginning a node first told that."""
        times = [at for at, by, told in self.seen if isinstance(told, kind) and by == node]
        return times[0] - self.began_ms if times else None

    def answer(self, request: str = "mine") -> Answered:
        answers = [told for _, _, told in self.seen if isinstance(told, Answered)]
        return next(told for told in answers if told.request == request)

    def end(self) -> None:
        self.stage.checks.finish()
        assert self.stage.checks.violations == []


def _fired(record: Record) -> bool:
    return isinstance(record, RoutineRecord) and bool(record.requests)


def test_a_member_that_asks_hears_of_the_commit_with_the_update() -> None:
    asked = Asked()
    asked.fire()
    asked.stage.run(1)
    assert asked.when(CommitKnown, "n3") == 2 * HOP_MS
    assert asked.when(Answered, "n3") == 2 * HOP_MS, "the request, and the update with the answer"
    assert asked.when(Committed, "n1") == 3 * HOP_MS, "its leader hears the acknowledgement"
    asked.end()


def test_an_answer_is_not_sent_twice() -> None:
    asked = Asked()
    messages: list[str] = []
    asked.stage.after(sends(Update, by="n1", to="n3"), lambda: messages.append("update"))
    asked.fire()
    asked.stage.run(1)
    told = [line for line in asked.stage.telling.lines if "who asked" in line]
    assert messages == ["update"]
    assert told == [], "only answers without a run are told, and there is none after the commit"
    assert len([one for _, _, one in asked.seen if isinstance(one, Answered)]) == 1
    asked.end()


def test_a_lost_update_loses_no_answer() -> None:
    asked = Asked()
    asked.stage.lose(sends(UpdateWithMessages, to="n3"))
    asked.fire()
    asked.stage.run(1)
    assert asked.when(CommitKnown, "n3") is None
    assert asked.answer().run is not None
    asked.end()


def test_what_a_member_knows_outlives_the_leader_that_died_before_it_knew() -> None:
    asked = Asked()
    asked.stage.dies_after(sends(UpdateWithMessages, by="n1", to="n3"), "n1")
    asked.fire()
    asked.stage.run(10)
    assert asked.when(Committed, "n1") is None
    run = asked.answer().run
    assert run is not None
    finished = [told for _, _, told in asked.seen if isinstance(told, Committed) and told.group == KITCHEN]
    assert any("evening" in str(record) for told in finished for record in told.entry)
    assert asked.stage.world.devices["kettle"].read()["on"] is True
    asked.end()


def test_a_commit_is_told_by_its_leader_as_ever() -> None:
    asked = Asked()
    heard: list[str] = []
    asked.stage.after(commits(_fired, of=KITCHEN), lambda: heard.append("committed"))
    asked.fire()
    asked.stage.run(1)
    assert heard == ["committed"]
    asked.end()


def _writes_handoff(machine: str, effect: Effect) -> bool:
    if not isinstance(effect, Persist) or not isinstance(effect.record, Appended):
        return False
    return machine == "n1" and any(isinstance(one, HandoffRecord) for one in effect.record.entry)


def test_no_letter_goes_with_an_entry_that_is_not_written_yet() -> None:
    """Four entries are on their way to n3, so a fifth and its letter wait; then the group hands off, and its
    leader ends before it has written that. n3 must not count the handoff: the two others go on without it."""
    settings = msgspec.structs.replace(CALM, epoch_ms=30_000, ready_wait_ms=2000.0)
    routines = [f"routine-{number}" for number in range(6)]
    asked = Asked(Stage(*(lights(name, "lamp") for name in routines), settings=settings))
    stage = asked.stage
    stage.kill("n2")
    stage.run(3)
    stage.until_epoch_ends(KITCHEN)
    ready: list[float] = []
    is_ready = sends(Ready, to="n1", of=KITCHEN)
    stage.after(is_ready, lambda: ready.append(stage.world.now_ms))
    for _ in range(3):
        stage.hold(is_ready, 300.0)
    stage.dies_instead(_writes_handoff, "n1", power=False)
    while not ready:
        stage.run(0.001)
    stage.run((ready[0] + 300.0 - 2 * HOP_MS - stage.world.now_ms) / 1000 + 0.004)
    for routine, node in zip(routines, ("n4", "n5", "n6", "n4", "n3"), strict=False):
        stage.fire(routine, routine, node)
        stage.run(0.001)
    stage.run(0.03)
    assert not stage.world.runs(NodeId("n1")), "it ended where it was about to write the handoff"
    stage.kill("n3")
    stage.start("n1", "n2")
    stage.run(10)
    stage.fire(routines[5], "after", "n2")
    stage.run(5)
    assert asked.answer("after").run is not None
    asked.end()


def _writes_firing(routine: str) -> Callable[[str, Effect], bool]:
    def wanted(machine: str, effect: Effect) -> bool:
        if not isinstance(effect, Persist) or not isinstance(effect.record, Appended):
            return False
        return machine == "n1" and any(one.key == f"run/{routine}" for one in effect.record.entry)

    return wanted


def test_a_late_letter_speaks_of_what_came_with_it_only() -> None:
    """It comes after another entry, which its leader had sent, and ended before it wrote that."""
    asked = Asked(Stage(lights("evening", "lamp"), lights("night", "fan")))
    stage = asked.stage
    stage.kill("n2")
    stage.run(3)
    stage.hold(sends(UpdateWithMessages, to="n3"), 3000.0)
    asked.fire()
    stage.run(2.9)
    stage.dies_instead(_writes_firing("night"), "n1", power=False)
    stage.fire("night", "other", "n4")
    stage.run(0.2)
    assert not stage.world.runs(NodeId("n1")), "it ended where it was about to write that"
    stage.kill("n3")
    stage.start("n1", "n2")
    stage.run(10)
    stage.fire("evening", "after", "n2")
    stage.run(5)
    assert asked.answer("after").run is not None
    asked.end()


def test_what_waits_with_a_letter_goes_with_the_next_acknowledgement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leadership, "MAX_IN_FLIGHT", 1)
    asked = Asked(Stage(lights("evening", "lamp"), lights("night", "fan")))
    asked.fire()
    asked.stage.run(0.001)
    asked.stage.fire("night", "other", node="n3")
    asked.stage.run(1)
    times = [at - asked.began_ms for at, _, told in asked.seen if isinstance(told, Answered)]
    assert times == [2 * HOP_MS, 4 * HOP_MS], "n2 is the nearest, and n3 waits for the letter"
    asked.end()

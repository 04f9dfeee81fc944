"""Letters that come with the update that they wait for: sooner, and as sure as after the commit."""

from staging import HOP_MS, KITCHEN, Stage, commits, lights, sends

from comesh.core.effects import Answered, CommitKnown, Committed, Observation
from comesh.core.group_messages import Lettered, Update
from comesh.core.ids import NodeId
from comesh.core.records import Record, RoutineRecord


class Asked:
    """A stage on which n3, a member of the kitchen, asks for a firing; what was observed, and when."""

    def __init__(self) -> None:
        self.stage = Stage(lights("evening", "kettle"))
        self.seen: list[tuple[float, NodeId, Observation]] = []
        self.stage.world.observers.append(lambda at_ms, node, told: self.seen.append((at_ms, node, told)))
        self.began_ms = self.stage.world.now_ms

    def fire(self) -> None:
        self.stage.fire("evening", "mine", node="n3")

    def when(self, kind: type[Observation], node: str) -> float | None:
        """How long after the beginning a node first told that."""
        times = [at for at, by, told in self.seen if isinstance(told, kind) and by == node]
        return times[0] - self.began_ms if times else None

    def answer(self) -> Answered:
        return next(told for _, _, told in self.seen if isinstance(told, Answered))

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
    letters: list[str] = []
    asked.stage.after(sends(Update, by="n1", to="n3"), lambda: letters.append("update"))
    asked.fire()
    asked.stage.run(1)
    told = [line for line in asked.stage.telling.lines if "who asked" in line]
    assert letters == ["update"]
    assert told == [], "only answers without a run are told, and there is none after the commit"
    assert len([one for _, _, one in asked.seen if isinstance(one, Answered)]) == 1
    asked.end()


def test_a_lost_update_loses_no_answer() -> None:
    asked = Asked()
    asked.stage.lose(sends(Lettered, to="n3"))
    asked.fire()
    asked.stage.run(1)
    assert asked.when(CommitKnown, "n3") is None
    assert asked.answer().run is not None
    asked.end()


def test_what_a_member_knows_outlives_the_leader_that_died_before_it_knew() -> None:
    asked = Asked()
    asked.stage.dies_after(sends(Lettered, by="n1", to="n3"), "n1")
    asked.fire()
    asked.stage.run(10)
    assert asked.when(Committed, "n1") is None
    run = asked.answer().run
    assert run is not None
    finished = [told for _, _, told in asked.seen if isinstance(told, Committed) and told.group == KITCHEN]
    assert any("evening" in str(record) for told in finished for record in told.entry)
    assert asked.stage.world.devices.read("kettle", asked.stage.world.now_ms)["on"] is True
    asked.end()


def test_a_commit_is_told_by_its_leader_as_ever() -> None:
    asked = Asked()
    heard: list[str] = []
    asked.stage.after(commits(_fired, of=KITCHEN), lambda: heard.append("committed"))
    asked.fire()
    asked.stage.run(1)
    assert heard == ["committed"]
    asked.end()

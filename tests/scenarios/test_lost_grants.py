"""A group passes a lock request on, and then loses the grant after which it did.

`movie` is granted the lamp by the hall, which asks the porch for the lantern on its behalf, and loses power
before it tells the kitchen, where both routines are. The porch grants the lantern. The hall goes on in a new
era, without the grant. `evening` wants the same two devices and is older, but its first request was lost.

If nobody gave back, the hall would now grant the lamp to `evening`, for it goes by age since its era. Then
each run would have what the other waits for: in the hall the holder is the older one, so that nobody is
wounded, and the porch goes by first come, first served. So before the hall grants anything, it asks, and runs
that may have later locks give back (decision 29).
"""

from collections.abc import Callable

import msgspec
import pytest
from staging import CALM, HALL, PORCH, PROGRESS_MS, WITH_PORCH, Stage, commits, lights, sends

from comesh.core.effects import Committed, Observation
from comesh.core.ids import NodeId
from comesh.core.records import DeviceRecord, GroupRecord, Record, RunRecord
from comesh.core.routines import answers
from comesh.core.work_messages import LockRequest, LockState
from comesh.sim.checks import Promise

HALL_NODES = WITH_PORCH[HALL].nodes
LOST_BY_ALL = (1, 4, 9)
"""Seeds with which no disk of the hall keeps the grant."""
KEPT_BY_SOME = (2,)
"""A seed with which one does. The run has not heard of it, so that the grant is dropped all the same."""
TOLD = pytest.mark.parametrize("told", [True, False], ids=["told", "not-told"])
"""Whether the answer of the porch comes home, so that the run knows that it has the lantern."""
LONG_S = 2 * PROGRESS_MS / 1000.0


class Outage:
    """The stage, up to where the members of the hall are back."""

    def __init__(self, seed: int, *, told: bool) -> None:
        settings = msgspec.structs.replace(CALM, cold_wait_ms=6700.0)
        routines = (lights(name, "lamp", "lantern") for name in ("evening", "movie"))
        self.stage = stage = Stage(*routines, rooms=WITH_PORCH, settings=settings, seed=seed)
        self.has: dict[str, str | None] = {}
        """By device: whose run the lock is, as its group committed last."""
        self.knows: dict[str, set[str]] = {}
        """By routine: the locks that its run knows of."""
        self.attempts: dict[str, int] = {}
        self.with_era: dict[str, int] = {}
        """By routine: the attempt of its run, of runs in the entry that takes note of the era of the hall."""
        stage.world.observers.append(self._observe)
        self.granted: list[str] = []
        for group, device in ((HALL, "lamp"), (PORCH, "lantern")):
            stage.after(commits(_is_granted(device, "movie"), of=group), self._note(device))
        stage.lose(sends(LockRequest, by="n1", of=HALL))
        stage.dies_after(sends(LockRequest, by="n4", of=PORCH), *HALL_NODES)
        if not told:
            stage.lose(sends(LockState, by="n7"))
        stage.fire("evening", "one")
        stage.run(0.2)
        stage.fire("movie", "two")
        stage.run(0.8)
        assert self.granted == ["lamp", "lantern"], "the hall granted and passed on, and so the porch granted"
        assert not any(stage.world.runs(node) for node in HALL_NODES)
        assert self.knows == {"evening": set(), "movie": {"lantern"} if told else set()}
        stage.start(*HALL_NODES)

    def _note(self, device: str) -> Callable[[], None]:
        return lambda: self.granted.append(device)

    def _observe(self, _at_ms: float, _node: NodeId, told: Observation) -> None:
        entry = told.entry if isinstance(told, Committed) else ()
        if any(isinstance(record, GroupRecord) and HALL in record.eras for record in entry):
            runs = [record for record in entry if isinstance(record, RunRecord)]
            self.with_era |= {record.run.routine: record.attempt for record in runs}
        for record in entry:
            match record:
                case DeviceRecord():
                    self.has[record.device] = None if record.hold is None else record.hold.run.routine
                case RunRecord():
                    self.knows[record.run.routine] = {one.device for one in record.held}
                    self.attempts[record.run.routine] = record.attempt
                case _:
                    pass

    def lost(self) -> list[int]:
        """How many committed entries the hall lost, in each lossy election."""
        return [loss.entries for loss in self.stage.checks.losses if loss.group == HALL]


def _is_granted(device: str, routine: str) -> Callable[[Record], bool]:
    def is_it(record: Record) -> bool:
        if not isinstance(record, DeviceRecord) or record.device != device or record.hold is None:
            return False
        return record.hold.run.routine == routine

    return is_it


@TOLD
@pytest.mark.parametrize("seed", LOST_BY_ALL + KEPT_BY_SOME)
def test_who_was_passed_on_with_a_lost_grant_does_not_wait_for_ever(seed: int, told: bool) -> None:
    outage = Outage(seed, told=told)
    outage.stage.run(30)
    outcome = outage.stage.finish()
    assert outage.lost() == ([1] if seed in LOST_BY_ALL else [0])
    assert outcome[:4] == [
        "run evening#1 finished",
        "run movie#1 finished",
        "lamp acted 2 times, and is on",
        "lantern acted 2 times, and is on",
    ]
    assert outage.with_era["movie"] == 2, "it gave back before the hall could grant anything"
    assert outage.has["lamp"] is None and outage.has["lantern"] is None
    assert outage.stage.checks.violations == []


@TOLD
@pytest.mark.parametrize("seed", (LOST_BY_ALL[0], KEPT_BY_SOME[0]))
def test_without_giving_back_two_runs_wait_for_each_other(
    seed: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stage is set as it is meant: without the rule the circle closes, and the checks find it."""
    monkeypatch.setattr(answers, "went_past", lambda run, group: False)
    outage = Outage(seed, told=told)
    outage.stage.run(LONG_S)
    outcome = outage.stage.finish()
    assert outage.has["lamp"] == "evening" and outage.has["lantern"] == "movie"
    assert outage.attempts == {"evening": 1, "movie": 1} and outage.with_era == {}
    assert outcome[:2] == ["run evening#1 is not over", "run movie#1 is not over"]
    assert [violation.promise for violation in outage.stage.checks.violations] == [Promise.PROGRESS] * 2

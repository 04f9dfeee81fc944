"""The leader of the routine's group dies in each stage of a run (paper, 3.5: a new leader resumes the
stage)."""

from repertoire import scenario
from staging import KITCHEN, Stage, commits, lights

from comesh.core.records import Record, RunRecord
from comesh.core.records import Stage as RunStage


def _dies_in(run_stage: RunStage, progress: int = 0) -> Stage:
    stage = Stage(lights("evening", "lamp", "fan"))

    def is_it(record: Record) -> bool:
        return (
            isinstance(record, RunRecord) and record.stage is run_stage and len(record.progress) >= progress
        )

    stage.dies_after(commits(is_it, of=KITCHEN), "n1")
    stage.fire("evening")
    stage.run(seconds=12.0)
    return stage


@scenario("leader-dies-acquiring")
def leader_dies_acquiring() -> Stage:
    """The routine's leader dies in ACQUIRING_LOCKS: the firing is committed, no lock is asked for. The next
    leader holds the firing and asks."""
    return _dies_in(RunStage.ACQUIRING_LOCKS)


@scenario("leader-dies-executing")
def leader_dies_executing() -> Stage:
    """The routine's leader dies in EXECUTING, the first of two steps committed as done. The next leader
    fences the devices, hears what was done, and goes on with the second step: nothing is done twice."""
    return _dies_in(RunStage.EXECUTING, progress=1)


@scenario("leader-dies-releasing")
def leader_dies_releasing() -> Stage:
    """The routine's leader dies in RELEASING_LOCKS, before any release was sent. The next leader releases."""
    return _dies_in(RunStage.RELEASING_LOCKS)

"""The records of a routine as they are staged, and the trace of its runs."""

from comesh.core.effects import RunTraced
from comesh.core.group.serving import Serving
from comesh.core.ids import RoutineId
from comesh.core.program import RoutineProgram
from comesh.core.records import RoutineRecord, RunRecord, routine_key, run_key
from comesh.core.stamps import RunId
from comesh.core.traces import Trace


def routine_record(serving: Serving, routine: RoutineProgram) -> RoutineRecord:
    """Returns the record of a routine. A routine that was removed and added again begins anew."""
    record = serving.get(routine_key(routine.id), RoutineRecord)
    if record is None or record.birth != routine.birth:
        return RoutineRecord(routine.id, routine.birth)
    return record


def live_run(serving: Serving, routine: RoutineId) -> RunRecord | None:
    return serving.get(run_key(routine), RunRecord)


def new_run(serving: Serving, routine: RoutineProgram) -> RunId:
    return RunId(routine.id, routine.birth, serving.stamp())


def trace(serving: Serving, run: RunId, what: Trace) -> None:
    """Told after the commit of what is staged."""
    serving.tell(RunTraced(run, what))

"""Fires routines: on a clause that becomes true, a schedule, an event, or a person's request (section 7).

Rules:
- a clause fires when it becomes true after it was false or never known; while it is unknown its last truth
  stands. Its truth and the start of `for:` are committed when they change, in one entry with the firing, so
  that a new leader neither repeats nor misses an edge;
- `for:` counts wall time from that start and goes on while the clause is unknown; false ends it. A new leader
  waits for the current readings before it fires what came due in between;
- a schedule commits the instant that it fires for. Of instants missed while nobody led, the latest fires if
  it is not older than MISSED_MS;
- an event is taken once, in order: its mark is in the entry of the firing. A mark stays as long as the
  routine, also while it does not listen to the device: devices count on, even when removed and added again;
- a firing by hand happens once per request id and ignores the cooldown. Any other firing within the cooldown
  is suppressed and traced.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from comesh.core.group.serving import Serving
from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.orders.audit import remember
from comesh.core.orders.standing import paused
from comesh.core.program import Predicate, ReadingName, RoutineProgram
from comesh.core.records import RoutineRecord
from comesh.core.routines.ledger import new_run, routine_record, trace
from comesh.core.routines.pending_requests import PART, PendingRequests
from comesh.core.routines.readings import Readings
from comesh.core.routines.runs import MAX_WAITING, Runs
from comesh.core.stamps import RunId
from comesh.core.step import Step
from comesh.core.traces import BecameTrue, ByHand, CameDue, Cause, EventCame, Ignored, Seen, StayedTrue
from comesh.core.values import Value
from comesh.core.work_messages import DeviceEvents, EventsSeen, Fire, GroupMessage, Ordered, Reading

MOMENT, FOR, SCHEDULE = "moment", "for", "schedule"
CLAUSE_CHECK_MS = 1000.0
"""Interval at which clauses that name the time are evaluated."""
TIMES = frozenset({"now", "sun"})
"""Names in clauses that are no devices."""
MISSED_MS = 3_600_000.0
"""Maximum age of a missed instant that still fires; later it would only surprise."""
MAX_SLEEP_MS = 600_000.0
"""Maximum time between two checks of the wall clock for a schedule, because the clock may be set."""
MAX_REQUESTS = 64
"""Maximum request ids of firings by hand that are remembered."""


class Triggers:
    def __init__(self, serving: Serving, runs: Runs, pending_requests: PendingRequests) -> None:
        self._serving = serving
        self._runs = runs
        program = serving.program
        own = [program.routines[routine] for routine in program.routines_of(serving.group)]
        self._routines: dict[RoutineId, RoutineProgram] = {routine.id: routine for routine in own}
        self._clauses: dict[RoutineId, Predicate] = {
            routine.id: routine.when for routine in own if routine.when is not None
        }
        self._reads: dict[RoutineId, tuple[ReadingName, ...]] = {
            routine: tuple(sorted(name for name in clause.reads if name[0] not in TIMES))
            for routine, clause in self._clauses.items()
        }
        self._timed: tuple[RoutineId, ...] = tuple(
            routine
            for routine, clause in self._clauses.items()
            if any(name in TIMES for name, _ in clause.reads)
        )
        self._readers: dict[DeviceId, list[RoutineId]] = {}
        for routine, names in self._reads.items():
            for device in dict.fromkeys(DeviceId(name) for name, _ in names):
                self._readers.setdefault(device, []).append(routine)
        self._readings = Readings(serving, pending_requests, tuple(sorted(self._readers)))
        self._became_true: dict[RoutineId, int] = {}
        """Entries in which a routine last fired because its clause became true."""

    def begin(self, step: Step) -> None:
        self._readings.begin(step)
        for routine in self._routines.values():
            record = routine_record(self._serving, routine)
            if record.true_since_ms is not None and routine.id in self._clauses:
                left_ms = record.true_since_ms + routine.for_ms - step.wall_ms
                # The current readings come first; they may have changed since the earlier leader fell silent.
                grace_ms = self._serving.settings.request_resend_ms
                self._serving.set_timer(PART, FOR, routine.id, max(grace_ms, left_ms), step)
            self._look_at_schedule(routine, step)
        self._on_moment(step)

    def on_timer(self, what: str, routine: RoutineId, step: Step) -> None:
        if what == MOMENT:
            self._on_moment(step)
        elif what == FOR:
            self._on_stayed_true(self._routines[routine], step)
        elif what == SCHEDULE:
            self._look_at_schedule(self._routines[routine], step)

    # -- clauses -----------------------------------------------------------------------------------------

    def on_reading(self, message: GroupMessage, body: Reading, sender: NodeId, step: Step) -> None:
        if self._readings.on_reading(message, body, sender, step):
            for routine in self._readers.get(body.device, ()):
                self._look_at_clause(routine, step)

    def _on_moment(self, step: Step) -> None:
        for routine in self._timed:
            self._look_at_clause(routine, step)
        if self._timed:
            self._serving.set_timer(PART, MOMENT, "", CLAUSE_CHECK_MS, step)

    def _values(self, routine: RoutineId, step: Step) -> dict[ReadingName, Value | None]:
        values: dict[ReadingName, Value | None] = {}
        for name in self._reads[routine]:
            value = self._readings.value(name)
            if value is not None:
                values[name] = value
        if routine in self._timed:
            values.update(self._serving.program.moment(step.wall_ms))
        return values

    def _look_at_clause(self, routine_id: RoutineId, step: Step) -> None:
        routine = self._routines[routine_id]
        values = self._values(routine_id, step)
        truth = self._clauses[routine_id].evaluate(values)
        record = routine_record(self._serving, routine)
        if truth is None or truth == record.truth:
            return
        counts = truth and routine.for_ms > 0
        self._serving.put(replace(record, truth=truth, true_since_ms=step.wall_ms if counts else None))
        if counts:
            self._serving.set_timer(PART, FOR, routine_id, routine.for_ms, step)
        elif truth:
            # Readings that arrive together after a silence may make it flicker: that counts as one change.
            if self._became_true.get(routine_id) != self._serving.next_entry:
                self._became_true[routine_id] = self._serving.next_entry
                self._fire(routine, BecameTrue(self._seen(routine_id, values)), step)
        else:
            self._serving.cancel_timer(PART, FOR, routine_id, step)

    def _on_stayed_true(self, routine: RoutineProgram, step: Step) -> None:
        record = routine_record(self._serving, routine)
        if record.true_since_ms is None:
            return
        left_ms = record.true_since_ms + routine.for_ms - step.wall_ms
        if left_ms > 0:
            self._serving.set_timer(PART, FOR, routine.id, left_ms, step)
            return
        self._serving.put(replace(record, true_since_ms=None))
        seen = self._seen(routine.id, self._values(routine.id, step))
        self._fire(routine, StayedTrue(routine.for_ms, seen), step)

    def _seen(self, routine: RoutineId, values: Mapping[ReadingName, Value | None]) -> Seen:
        names = sorted(self._clauses[routine].reads)
        return {f"{one}.{reading}": values.get((one, reading)) for one, reading in names}

    def _fire(self, routine: RoutineProgram, cause: Cause, step: Step) -> None:
        order = paused(self._serving, routine.id)
        if order is not None:
            run = new_run(self._serving, routine)
            trace(self._serving, run, Ignored(cause, paused_by=order.by))
            return
        record = routine_record(self._serving, routine)
        left_ms = record.cooldown_until_ms - step.wall_ms
        if left_ms > 0:
            run = new_run(self._serving, routine)
            trace(self._serving, run, Ignored(cause, cooldown_ms=left_ms))
            return
        self._runs.fire(routine, cause, step)

    # -- schedules ---------------------------------------------------------------------------------------

    def _look_at_schedule(self, routine: RoutineProgram, step: Step) -> None:
        if routine.schedule is None:
            return
        record = routine_record(self._serving, routine)
        if record.instant_ms is None:
            record = replace(record, instant_ms=step.wall_ms)
            self._serving.put(record)
        since_ms = max(record.instant_ms or 0.0, step.wall_ms - MISSED_MS)
        latest_ms, next_ms = None, routine.schedule(since_ms)
        while next_ms is not None and next_ms <= step.wall_ms:
            latest_ms, next_ms = next_ms, routine.schedule(next_ms)
        if latest_ms is not None:
            self._serving.put(replace(record, instant_ms=latest_ms))
            self._fire(routine, CameDue(latest_ms), step)
        if next_ms is not None:
            sleep_ms = min(next_ms - step.wall_ms, MAX_SLEEP_MS)
            self._serving.set_timer(PART, SCHEDULE, routine.id, sleep_ms, step)

    # -- events and people -------------------------------------------------------------------------------

    def on_events(self, message: GroupMessage, body: DeviceEvents, sender: NodeId, step: Step) -> None:
        routine = self._routines.get(body.routine)
        if routine is None or routine.on_event is None:
            if body.routine not in self._serving.program.listeners.get(body.device, ()) and body.events:
                # No routine fires on them any more: the device need not keep them.
                last = max(event.sequence for event in body.events)
                self._serving.answer(message, sender, EventsSeen(body.device, body.routine, last))
            return
        for event in sorted(body.events, key=lambda event: event.sequence):
            record = routine_record(self._serving, routine)
            if self._is_taken(record, body.device, event.sequence):
                continue
            self._serving.put(replace(record, marks={**record.marks, body.device: event.sequence}))
            values = {(str(body.device), reading): value for reading, value in event.values.items()}
            if routine.on_event.evaluate(values):
                self._fire(routine, EventCame(body.device, event.sequence, event.values), step)
        mark = routine_record(self._serving, routine).marks.get(body.device, 0)
        self._serving.answer(message, sender, EventsSeen(body.device, body.routine, mark))

    def _is_taken(self, record: RoutineRecord, device: DeviceId, sequence: int) -> bool:
        return sequence <= record.marks.get(device, 0)

    def on_fire(self, message: GroupMessage, body: Fire, sender: NodeId, step: Step) -> None:
        routine = self._routines.get(body.routine)
        if routine is None:
            why_not = f"{self._serving.group} has no routine {body.routine}"
            self._serving.prove()
            self._serving.answer(message, sender, Ordered(body.request, None, why_not))
            return
        run = dict(routine_record(self._serving, routine).requests).get(body.request)
        order = paused(self._serving, routine.id)
        why_not = ""
        if run is None and order is not None:
            why_not = f"paused by {order.by}"
        elif run is None:
            run = self._fire_by_hand(routine, body, step)
            why_not = "" if run is not None else f"{MAX_WAITING} firings wait already"
        if why_not:
            self._serving.prove()
        self._serving.answer(message, sender, Ordered(body.request, run, why_not))

    def _fire_by_hand(self, routine: RoutineProgram, body: Fire, step: Step) -> RunId | None:
        run = self._runs.fire(routine, ByHand(body.by or body.request), step)
        if run is not None:
            record = routine_record(self._serving, routine)
            requests = (*record.requests, (body.request, run))[-MAX_REQUESTS:]
            self._serving.put(replace(record, requests=requests))
            if body.by:
                remember(
                    self._serving, step.wall_ms, body.by, f"fire {routine.id}", request=body.request, run=run
                )
        return run

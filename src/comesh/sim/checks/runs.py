"""Follows runs in the committed history: which execute, which fired, which ended (promises 1 and 4).

A run executes from the commit that says so until the commit that leaves that stage. What an entry ends is
judged before what it begins: one entry may end a run and grant its locks to the next.

A firing is committed as the live run of its routine or as one that waits; from then on it may only leave by
ending. The end is in the routine's record; where one entry ends several, or their routine was removed, in
their traces, which come right after the commit: within the instant in virtual time, and within `instant_ms`
where the steps of several processes overlap.

A reported loss takes ends along: what lives in the state that the era begins with may go on and end again,
whether its routine leaves a record or, as that of a command by hand, none. What had ended before that state
stays ended.

What fires is committed with it: an instant, an event's mark, a request, a person's order. A firing that none
of them explains, or a second one by the same, is one too many. A clause becomes true at most once within one
entry.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import Final

from comesh.core.effects import RunTraced
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.orders.standing import ALL, is_by_hand
from comesh.core.records import (
    AuditRecord,
    DeviceRecord,
    Kind,
    Record,
    RoutineRecord,
    RunRecord,
    Stage,
    routine_key,
    run_key,
    standing_key,
)
from comesh.core.stamps import RunId
from comesh.core.strategies import StrategyName
from comesh.core.traces import Ending
from comesh.sim.checks.history import Change, State
from comesh.sim.checks.violation import Promise, Verdicts

KEPT_ENDED: Final = 20_000
"""Maximum ended runs remembered; none of them may come back."""
KEPT_REQUESTS: Final = 20_000
KEPT_TOKENS: Final = 5000
"""Maximum events remembered per group."""


class LiveRun:
    """A firing that has not ended. stage and strategy are None while it waits for the run before it."""

    __slots__ = ("budget_ms", "devices", "group", "run", "since_ms", "stage", "strategy")

    def __init__(self, run: RunId, group: GroupId, at_ms: float) -> None:
        self.run = run
        self.group = group
        self.stage: Stage | None = None
        self.strategy: StrategyName | None = None
        self.since_ms = at_ms
        """Time at which it entered its stage; of one that waits, when its turn may last have come."""
        self.devices: tuple[DeviceId, ...] = ()
        self.budget_ms = 0.0
        """Total time that its commands may take."""


class Runs:
    def __init__(self, verdicts: Verdicts, *, instant_ms: float = 0.0) -> None:
        self._verdicts = verdicts
        self._instant_ms = instant_ms
        self.untold = 0
        """Runs that ended without a trace, because the process that was to write it died."""
        self.live: dict[GroupId, dict[RunId, LiveRun]] = {}
        self._executing: dict[DeviceId, RunId] = {}
        self._ended: OrderedDict[RunId, None] = OrderedDict()
        self._requests: OrderedDict[tuple[RoutineId, str], RunId] = OrderedDict()
        self._tokens: dict[GroupId, OrderedDict[tuple[DeviceId, str], None]] = {}
        self._routines: dict[GroupId, set[RoutineId]] = {}
        """Routines that each group had a record of; a loss may have removed it."""
        self._fired: list[RunId] = []
        """Runs fired by the current entry."""
        self._missing: dict[RunId, tuple[float, GroupId]] = {}
        """Runs that are not live and not known to have ended: their trace must follow within the instant."""

    # -- what is told ------------------------------------------------------------------------------------

    def on_entry(self, at_ms: float, group: GroupId, changes: list[Change], state: State) -> None:
        self.judge_missing(at_ms)
        left: list[RunId] = []
        begun: list[RunRecord] = []
        causes: dict[RoutineId, int] = {}
        for _, before, after in changes:
            if isinstance(before, RoutineRecord) or isinstance(after, RoutineRecord):
                left.extend(self._on_routine(at_ms, group, _routine(before), _routine(after)))
                if isinstance(after, RoutineRecord):
                    causes[after.routine] = _causes(_routine(before), after)
            elif isinstance(before, RunRecord):
                if not isinstance(after, RunRecord) or after.run != before.run:
                    left.append(before.run)
                elif after.stage is not Stage.EXECUTING:
                    self._stop(before.run, group)
            if isinstance(after, RunRecord):
                begun.append(after)
            elif isinstance(after, AuditRecord) and after.run is not None and is_by_hand(after.run):
                causes[after.run.routine] = 1
            elif isinstance(after, DeviceRecord):
                self._test_token(at_ms, group, before if isinstance(before, DeviceRecord) else None, after)
        for run in left:
            self._leave(at_ms, group, run, state)
        for record in begun:
            self._on_run(at_ms, group, record)
        if self._fired:
            self._test_causes(at_ms, causes)

    def on_traced(self, at_ms: float, node: NodeId, told: RunTraced) -> None:
        if isinstance(told.trace, Ending) and self._missing.pop(told.run, None) is not None:
            self._end(told.run)

    def on_state(
        self, at_ms: float, group: GroupId, records: dict[str, Record], *, lossy: bool
    ) -> list[RunId]:
        """After a loss no run executes until that is committed again: its locks must be confirmed first."""
        known = self._routines.setdefault(group, set())
        if lossy:
            self._tokens.pop(group, None)
            self._forget_ends(records.values())
            self._forget_requests(known)
        before = self.live.get(group, {})
        for run in before:
            self._stop(run, group)
        self.live[group] = {}
        for record in records.values():
            if isinstance(record, RoutineRecord):
                known.add(record.routine)
                for firing in record.waiting:
                    self._enter(at_ms, group, firing.run)
                if record.ended is not None:
                    self._end(record.ended.run)
        for record in records.values():
            if isinstance(record, RunRecord):
                live = self._enter(at_ms, group, record.run)
                _take(live, record, at_ms)
                if record.stage is Stage.EXECUTING and not lossy:
                    self._execute(at_ms, live)
        self._fired.clear()
        after = self.live[group]
        return [run for run in before if run not in after and run not in self._ended]

    def _forget_ends(self, records: Iterable[Record]) -> None:
        """Forget the ends of runs that are live in the state that an era begins with: they may end again."""
        for record in records:
            if isinstance(record, RunRecord):
                self._ended.pop(record.run, None)
            elif isinstance(record, RoutineRecord):
                for firing in record.waiting:
                    self._ended.pop(firing.run, None)

    def _forget_requests(self, routines: Collection[RoutineId]) -> None:
        """Forget requests that were lost: they may be made again."""
        for key in [one for one in self._requests if one[0] in routines]:
            del self._requests[key]

    # -- routines ----------------------------------------------------------------------------------------

    def _on_routine(
        self, at_ms: float, group: GroupId, before: RoutineRecord | None, after: RoutineRecord | None
    ) -> list[RunId]:
        """Judge the change of a routine's record; returns the firings that stop waiting."""
        was = () if before is None else before.waiting
        if after is None:
            return [firing.run for firing in was]
        self._routines.setdefault(group, set()).add(after.routine)
        if after.ended is not None and (before is None or after.ended != before.ended):
            self._end(after.ended.run)
        if before is not None and before.birth == after.birth:
            self._test_marks(at_ms, before, after)
        if before is None or after.requests != before.requests:
            self._test_requests(at_ms, after)
        if after.waiting == was:
            return []
        for firing in after.waiting:
            self._enter(at_ms, group, firing.run)
        still = {firing.run for firing in after.waiting}
        return [firing.run for firing in was if firing.run not in still]

    def _test_marks(self, at_ms: float, before: RoutineRecord, after: RoutineRecord) -> None:
        """Check that the mark of a device's events never falls or disappears: an event below it would fire
        again."""
        if before.marks is after.marks:
            return
        for device, mark in before.marks.items():
            left = after.marks.get(device, 0)
            if left < mark:
                what = f"{after.routine} took event {mark} of {device}, and goes back to {left}"
                self._verdicts.broken(Promise.FIRED_ONCE, at_ms, what, runs=self._of(after.routine))

    def _test_token(
        self, at_ms: float, group: GroupId, before: DeviceRecord | None, after: DeviceRecord
    ) -> None:
        """Check that an event of a device is taken once, however often the device repeats it."""
        was = ("", ()) if before is None else (before.token, before.tokens)
        if (after.token, after.tokens) == was:
            return
        taken = self._tokens.setdefault(group, OrderedDict())
        if (after.device, after.token) in taken:
            what = f"{group} took event {after.token} of {after.device} twice"
            self._verdicts.broken(Promise.FIRED_ONCE, at_ms, what, devices=(after.device,))
        taken[after.device, after.token] = None
        while len(taken) > KEPT_TOKENS:
            taken.popitem(last=False)

    def _test_requests(self, at_ms: float, after: RoutineRecord) -> None:
        for request, run in after.requests:
            first = self._requests.setdefault((after.routine, request), run)
            if first != run:
                what = f"request {request!r} fired {first} and {run}"
                self._verdicts.broken(Promise.FIRED_ONCE, at_ms, what, runs=(first, run))
        while len(self._requests) > KEPT_REQUESTS:
            self._requests.popitem(last=False)

    def _test_causes(self, at_ms: float, causes: dict[RoutineId, int]) -> None:
        fired: dict[RoutineId, list[RunId]] = {}
        for run in self._fired:
            fired.setdefault(run.routine, []).append(run)
        self._fired.clear()
        for routine, runs in fired.items():
            if len(runs) > causes.get(routine, 0):
                what = f"{', '.join(map(str, runs))} fired, but the entry has {causes.get(routine, 0)} causes"
                self._verdicts.broken(Promise.FIRED_ONCE, at_ms, what, runs=runs)

    def _of(self, routine: RoutineId) -> list[RunId]:
        return [run for group in self.live.values() for run in group if run.routine == routine]

    # -- runs --------------------------------------------------------------------------------------------

    def _on_run(self, at_ms: float, group: GroupId, record: RunRecord) -> None:
        live = self._enter(at_ms, group, record.run)
        executed = live.stage is Stage.EXECUTING
        _take(live, record, at_ms)
        if record.stage is Stage.EXECUTING and not executed:
            self._execute(at_ms, live)

    def _enter(self, at_ms: float, group: GroupId, run: RunId) -> LiveRun:
        of_group = self.live.setdefault(group, {})
        live = of_group.get(run)
        if live is None:
            live = of_group[run] = LiveRun(run, group, at_ms)
            self._fired.append(run)
            self._missing.pop(run, None)
            if run in self._ended:
                what = f"{run} had ended, and is live again"
                self._verdicts.broken(Promise.NO_LOSS, at_ms, what, runs=(run,))
        return live

    def _leave(self, at_ms: float, group: GroupId, run: RunId, state: State) -> None:
        """Remove a run from its place: it continues elsewhere in the group, or it must have ended.

        Of what nobody told there are no traces either: only the record can say more.
        """
        records = state.records
        live = records.get(run_key(run.routine))
        if isinstance(live, RunRecord) and live.run == run:
            return
        routine = records.get(routine_key(run.routine))
        if isinstance(routine, RoutineRecord) and any(firing.run == run for firing in routine.waiting):
            return
        self._stop(run, group)
        left = self.live.get(group, {}).pop(run, None)
        for other in self.live.get(group, {}).values():
            if other.stage is None and other.run.routine == run.routine:
                other.since_ms = at_ms
        if run in self._ended:
            return
        released = left is not None and left.stage is Stage.RELEASING_LOCKS
        if routine is None and (released or not state.told):
            self._end(run)  # its routine was removed, and with it the record of the run's end
        elif not state.told and left is not None and (_is_passed(run, routine) or _is_dropped(left, records)):
            # One entry ended several runs, and its proposer died before it traced them.
            self._end(run)
            self.untold += 1
        else:
            self._missing[run] = (at_ms, group)

    def _end(self, run: RunId) -> None:
        self._ended[run] = None
        while len(self._ended) > KEPT_ENDED:
            self._ended.popitem(last=False)

    def _execute(self, at_ms: float, live: LiveRun) -> None:
        for device in live.devices:
            other = self._executing.get(device)
            if other is not None and other != live.run:
                what = f"{live.run} and {other} execute at once, and both command {device}"
                self._verdicts.broken(Promise.SAFETY, at_ms, what, runs=(other, live.run), devices=(device,))
            self._executing[device] = live.run

    def _stop(self, run: RunId, group: GroupId) -> None:
        live = self.live.get(group, {}).get(run)
        if live is not None and live.stage is Stage.EXECUTING:
            for device in live.devices:
                if self._executing.get(device) == run:
                    del self._executing[device]

    def excuse_missing(self, from_ms: float, groups: Collection[GroupId]) -> None:
        """Excuse missing traces of these groups: their leader died before it traced what it had committed."""
        for run, (since_ms, group) in list(self._missing.items()):
            if group in groups and since_ms >= from_ms:
                del self._missing[run]
                self._end(run)
                self.untold += 1

    def judge_missing(self, at_ms: float) -> None:
        """Report runs of earlier instants that are still missing: they are lost."""
        if not self._missing:
            return
        for run, (since_ms, group) in list(self._missing.items()):
            if since_ms + self._instant_ms < at_ms:
                del self._missing[run]
                what = f"{run} of {group} was fired, and is gone without an end"
                self._verdicts.broken(Promise.NO_LOSS, at_ms, what, runs=(run,))


def _is_passed(run: RunId, routine: Record | None) -> bool:
    """True if a later run of its routine has ended; that run begins only after this one has ended."""
    return isinstance(routine, RoutineRecord) and routine.ended is not None and routine.ended.run > run


def _is_dropped(left: LiveRun, records: dict[str, Record]) -> bool:
    """True if the firing was dropped. Waiting firings overtake a live run only when their routine was removed
    or paused; a pause may end that run in the same entry."""
    if left.stage is not None:
        return False
    paused = any(standing_key(Kind.PAUSED, of) in records for of in (ALL, left.run.routine))
    return paused or isinstance(records.get(run_key(left.run.routine)), RunRecord)


def _routine(record: Record | None) -> RoutineRecord | None:
    return record if isinstance(record, RoutineRecord) else None


def _causes(before: RoutineRecord | None, after: RoutineRecord) -> int:
    """Returns how many firings the change of a routine's record explains."""
    if before is None or before.birth != after.birth:
        before = RoutineRecord(after.routine, after.birth)
    was = before.marks
    events = sum(max(0, mark - was.get(device, 0)) for device, mark in after.marks.items())
    known = {request for request, _ in before.requests}
    requests = sum(request not in known for request, _ in after.requests)
    instant = after.instant_ms != before.instant_ms
    return events + requests + instant + _may_be_edge(after)


def _may_be_edge(after: RoutineRecord) -> bool:
    """True if the clause may have become true, or have been true for long enough. Two readings in one message
    may hide an edge: the clause is then as before. Nothing fires while `for:` counts."""
    return after.truth is not None and after.true_since_ms is None


def _take(live: LiveRun, record: RunRecord, at_ms: float) -> None:
    if live.stage is not record.stage:
        live.stage, live.since_ms = record.stage, at_ms
    live.strategy = record.strategy
    live.devices = tuple(record.groups)
    live.budget_ms = sum(step.action.timeout_ms for step in record.steps)

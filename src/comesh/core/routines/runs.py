"""The life of a run, from its firing to its end (protocol, section 7).

    (fired) -> ACQUIRING_LOCKS -> EXECUTING -> RELEASING_LOCKS -> (ended)

Rules:
- every change is staged in the run's record first; messages follow from the record alone (`_wanted`) and are
  sent after the commit. A new leader takes a run up by looking at its record;
- one run of a routine is live at a time; at most MAX_WAITING further firings wait, committed;
- an attempt is given back as a whole: the next number is staged together with what is to be released;
- a leader that finds a run EXECUTING fences its devices before it commands them, so that no command of an
  earlier leader can come between;
- a run whose era is older than its group's may have lost committed steps: one that has all of its locks goes
  back to ACQUIRING_LOCKS and is not woundable until its devices confirm every lock; any other fails, because
  it may have ended already.
"""

from typing import assert_never

from msgspec.structs import replace

from comesh.core.actions import Origin, RoutineStep
from comesh.core.group.serving import Serving
from comesh.core.ids import DeviceId, GroupId, RoutineId
from comesh.core.orders.standing import by_hand
from comesh.core.program import RoutineProgram
from comesh.core.records import (
    Ended,
    Firing,
    Outcome,
    RoutineRecord,
    RunRecord,
    Stage,
    routine_key,
    run_key,
)
from comesh.core.routines.confirmation import Confirmation
from comesh.core.routines.ledger import live_run, new_run, routine_record, trace
from comesh.core.routines.locks import (
    by_group,
    holds_all,
    manner_of,
    maybe_asked,
    onward,
    released,
    request_name,
    to_ask,
)
from comesh.core.routines.pending_requests import PART, PendingRequest, PendingRequests
from comesh.core.routines.stages import moved
from comesh.core.stamps import RunId
from comesh.core.step import Step
from comesh.core.strategies import MAX_REST_MS, Strategy, StrategyName, doubling_rest, strategy_of
from comesh.core.traces import (
    AttemptBegan,
    ByHand,
    Cause,
    CommandSent,
    Dropped,
    Executing,
    Failed,
    Finished,
    Fired,
    LeaderTookOver,
    LockAsked,
    LockPassedOn,
    Releasing,
    shortened,
)
from comesh.core.work_messages import Command, FenceAsked, LockRequest, Release, SetDevice

MAX_WAITING = 8
"""Maximum firings of one routine that wait for its live run to end."""
REST = "rest"


class Runs:
    def __init__(self, serving: Serving, pending_requests: PendingRequests) -> None:
        self.serving = serving
        self._pending_requests = pending_requests
        self.confirmations: dict[RoutineId, Confirmation] = {}
        """Confirmations of live runs whose devices this leader has to fence before it goes on."""
        self._resting: dict[RoutineId, RunId] = {}
        """Runs between two attempts. Not committed: a new leader asks at once."""
        self._passed_on: dict[RoutineId, tuple[RunId, int, frozenset[GroupId]]] = {}
        """Groups that others asked for locks on behalf of a run, in this attempt."""

    # -- firing ------------------------------------------------------------------------------------------

    def fire(self, routine: RoutineProgram, cause: Cause, step: Step) -> RunId | None:
        """Fire a routine now, or once its live run has ended. None: too many wait already."""
        record = routine_record(self.serving, routine)
        run = new_run(self.serving, routine)
        live = live_run(self.serving, routine.id)
        if live is not None and len(record.waiting) >= MAX_WAITING:
            trace(self.serving, run, Dropped(f"{MAX_WAITING} firings wait already", cause))
            return None
        firing = Firing(run, step.wall_ms, cause)
        waiting = record.waiting if live is None else (*record.waiting, firing)
        until_ms = step.wall_ms + routine.cooldown_ms
        self.serving.put(replace(record, waiting=waiting, cooldown_until_ms=until_ms))
        trace(self.serving, run, Fired(cause, None if live is None else str(live.run)))
        if live is None:
            self._start(routine, firing, step)
        return run

    def command_by_hand(self, wish: SetDevice, by: str, step: Step) -> tuple[RunId | None, str]:
        """Start a run of one step, of a routine that no document has: like one of a removed routine, it ends
        and leaves nothing. None: and why not."""
        routine = by_hand(wish.device)
        live = live_run(self.serving, routine)
        if live is not None:
            return None, f"{live.run} commands {wish.device} by hand already; wait for its end"
        run = RunId(routine, 0, self.serving.stamp())
        only = RoutineStep(wish.device, wish.action)
        cause = ByHand(by)
        trace(self.serving, run, Fired(cause))
        self._begin_run(
            Firing(run, step.wall_ms, cause),
            Strategy.SEQUENTIAL,
            (only,),
            {wish.device: self.serving.group},
            step,
        )
        return run, ""

    def _start(self, routine: RoutineProgram, firing: Firing, step: Step) -> None:
        homes = self.serving.program.group_of_device
        groups = {one.device: homes[one.device] for one in routine.steps}
        self._begin_run(firing, routine.strategy, routine.steps, groups, step)

    def _begin_run(
        self,
        firing: Firing,
        strategy: StrategyName,
        steps: tuple[RoutineStep, ...],
        groups: dict[DeviceId, GroupId],
        step: Step,
    ) -> None:
        run = RunRecord(
            run=firing.run,
            stage=Stage.ACQUIRING_LOCKS,
            attempt=1,
            fired_ms=firing.fired_ms,
            cause=firing.cause,
            strategy=strategy,
            steps=steps,
            groups=groups,
            era=self.serving.era,
        )
        self.serving.put(run)
        trace(self.serving, run.run, AttemptBegan(1, str(run.strategy)))
        self.advance(run, step)

    # -- taking up ---------------------------------------------------------------------------------------

    def begin(self, step: Step) -> None:
        for run in self.serving.all(RunRecord):
            took_over = LeaderTookOver(self.serving.surroundings.own, str(self.serving.ballot))
            trace(self.serving, run.run, took_over)
            self._take_up(run, step)
        for record in self.serving.all(RoutineRecord):
            routine = self._program_of(record.routine)
            if routine is None or record.birth != routine.birth:
                self._forget(record)
                continue
            if live_run(self.serving, record.routine) is None:
                self._next(record.routine, step)

    def _take_up(self, run: RunRecord, step: Step) -> None:
        if run.stage is Stage.RELEASING_LOCKS or (
            run.stage is Stage.ACQUIRING_LOCKS and run.era >= self.serving.era
        ):
            self.advance(run, step)
        elif holds_all(run):
            # It was executing, and perhaps went back to ACQUIRING_LOCKS after an outage: no run that merely
            # acquires has all of its locks.
            self.confirmations[run.run.routine] = Confirmation()
            if run.era < self.serving.era and run.stage is not Stage.ACQUIRING_LOCKS:
                run = moved(run, Stage.ACQUIRING_LOCKS)
                self.serving.put(run)
            self.advance(run, step)
        else:
            # It may have continued, and even ended, in the lost entries: its commands must not be repeated.
            reason = "outage: how far it came is not known"
            self.fail(replace(run, era=self.serving.era), step, reason, devices=list(run.groups))

    def _forget(self, record: RoutineRecord) -> None:
        """Forget a removed routine: a live run finishes, waiting firings do not start."""
        for firing in record.waiting:
            trace(self.serving, firing.run, Dropped("the routine was removed"))
        if live_run(self.serving, record.routine) is None:
            self.serving.drop(routine_key(record.routine))
        elif record.waiting:
            self.serving.put(replace(record, waiting=()))

    def _program_of(self, routine: RoutineId) -> RoutineProgram | None:
        program = self.serving.program
        here = program.group_of_routine.get(routine) == self.serving.group
        return program.routines.get(routine) if here else None

    # -- transitions -------------------------------------------------------------------------------------

    def advance(self, run: RunRecord, step: Step) -> None:
        """Take a run as far as its staged record lets it, then send the messages that it wants sent."""
        routine = run.run.routine
        confirming = routine in self.confirmations
        if run.stage is Stage.ACQUIRING_LOCKS and not confirming and holds_all(run):
            run = self._become_executing(run)
        if run.stage is Stage.EXECUTING and not confirming:
            failure = _failure(run)
            if failure or len(run.progress) == len(run.steps):
                run = self._become_releasing(run, failure, [one.device for one in run.held])
        if run.stage is Stage.RELEASING_LOCKS and not run.to_release:
            self._end(run, step)
            return
        for pending in self._pending_requests.keep(routine, self._wanted(run), step):
            if pending.trace is not None:
                trace(self.serving, run.run, pending.trace)

    def fail(self, run: RunRecord, step: Step, reason: str, *, devices: list[DeviceId] | None = None) -> None:
        """Give up: release these devices, or all that it may have asked for."""
        self.confirmations.pop(run.run.routine, None)
        if devices is None:
            devices = maybe_asked(run, self.serving.settings)
        self.advance(self._become_releasing(run, reason, devices), step)

    def stop(self, routine: RoutineId | None, why: str, step: Step) -> None:
        """End a routine's run and its waiting firings; None: those of all routines."""
        for record in self.serving.all(RoutineRecord):
            if record.waiting and routine in (None, record.routine):
                for firing in record.waiting:
                    trace(self.serving, firing.run, Dropped(why))
                self.serving.put(replace(record, waiting=()))
        for run in self.serving.all(RunRecord):
            if routine in (None, run.run.routine):
                self.stop_run(run, why, step)

    def stop_run(self, run: RunRecord, why: str, step: Step) -> None:
        """Stop a run: it sends no more commands, and gives back every lock that it may have asked for."""
        if run.stage is not Stage.RELEASING_LOCKS:
            self.fail(replace(run, era=self.serving.era), step, why, devices=list(run.groups))

    def give_back(
        self,
        run: RunRecord,
        step: Step,
        why: str,
        *,
        rest: bool = False,
        devices: list[DeviceId] | None = None,
        beyond: int = 0,
    ) -> None:
        """Give the whole attempt back and begin the next one, after a rest or at once.

        beyond: an attempt that the devices know of and this record does not, since an outage.
        """
        if devices is None:
            devices = maybe_asked(run, self.serving.settings)
        last = max(run.attempt, beyond)
        run = replace(
            run,
            attempt=last + 1,
            held=(),
            to_release=released(run, devices, last),
            era=self.serving.era,
        )
        self.serving.put(run)
        trace(self.serving, run.run, AttemptBegan(run.attempt, str(run.strategy), why))
        if rest:
            self._rest(run, step)
        self.advance(run, step)

    def _rest(self, run: RunRecord, step: Step) -> None:
        given_back, round_trip_ms = run.attempt - 1, self.serving.settings.usual_round_trip_ms
        rest = strategy_of(run.strategy).manner(given_back).rest or doubling_rest
        mean_ms = min(max(rest(given_back, round_trip_ms), round_trip_ms), MAX_REST_MS)
        self._resting[run.run.routine] = run.run
        rest_ms = mean_ms * self.serving.draws.between(0.5, 1.5)
        self.serving.set_timer(PART, REST, run.run.routine, rest_ms, step)

    def on_rested(self, routine: RoutineId, step: Step) -> None:
        rested = self._resting.pop(routine, None)
        run = live_run(self.serving, routine)
        if run is not None and run.run == rested:
            self.advance(run, step)

    def _become_executing(self, run: RunRecord) -> RunRecord:
        run = moved(run, Stage.EXECUTING)
        self.serving.put(run)
        trace(self.serving, run.run, Executing(run.attempt, len(run.steps)))
        return run

    def _become_releasing(self, run: RunRecord, reason: str, devices: list[DeviceId]) -> RunRecord:
        run = replace(
            moved(run, Stage.RELEASING_LOCKS),
            reason=reason,
            held=(),
            to_release=released(run, devices, run.attempt),
        )
        self.serving.put(run)
        trace(self.serving, run.run, Releasing(shortened(reason)))
        return run

    def _end(self, run: RunRecord, step: Step) -> None:
        routine_id = run.run.routine
        self._pending_requests.keep(routine_id, (), step)
        self._passed_on.pop(routine_id, None)
        if self._resting.pop(routine_id, None) is not None:
            self.serving.cancel_timer(PART, REST, routine_id, step)
        self.serving.drop(run_key(routine_id))
        trace(self.serving, run.run, Failed(shortened(run.reason)) if run.reason else Finished())
        routine = self._program_of(routine_id)
        if routine is None:
            self.serving.drop(routine_key(routine_id))
            return
        record = routine_record(self.serving, routine)
        self.serving.put(replace(record, ended=Ended(run.run, run.reason)))
        self._next(routine_id, step)

    def _next(self, routine_id: RoutineId, step: Step) -> None:
        """Start the firing that waits longest."""
        routine = self._program_of(routine_id)
        if routine is None:
            return
        record = routine_record(self.serving, routine)
        if not record.waiting:
            return
        firing, left = record.waiting[0], record.waiting[1:]
        if self._is_doubtful(firing):
            # In an entry of its own: the record reports one end at a time.
            self.serving.then(lambda step: self._end_doubtful(routine, firing, step))
            return
        self.serving.put(replace(record, waiting=left))
        self._start(routine, firing, step)

    def _end_doubtful(self, routine: RoutineProgram, firing: Firing, step: Step) -> None:
        record = routine_record(self.serving, routine)
        if live_run(self.serving, routine.id) is not None or firing not in record.waiting[:1]:
            return
        reason = "outage: whether it started is not known"
        self.serving.put(replace(record, waiting=record.waiting[1:], ended=Ended(firing.run, reason)))
        trace(self.serving, firing.run, Failed(reason))
        self._next(routine.id, step)

    def _is_doubtful(self, firing: Firing) -> bool:
        """True if the firing waited when an outage lost updates: it may have started, and even ended, in
        those."""
        era, stamp = self.serving.era, firing.run.stamp
        return (stamp.config, stamp.ballot) < (era.config, era.ballot)

    # -- the requests of a run ---------------------------------------------------------------------------

    def _wanted(self, run: RunRecord) -> list[PendingRequest]:
        wanted = self._releases(run)
        confirmation = self.confirmations.get(run.run.routine)
        if confirmation is not None:
            return wanted + self._fences(run, confirmation.unanswered(run))
        match run.stage:
            case Stage.ACQUIRING_LOCKS:
                return wanted if run.run.routine in self._resting else wanted + self._lock_requests(run)
            case Stage.EXECUTING:
                return [*wanted, *(self._command(run, number) for number in under_way(run))]
            case Stage.RELEASING_LOCKS:
                return wanted
            case _:
                assert_never(run.stage)

    def _releases(self, run: RunRecord) -> list[PendingRequest]:
        together: dict[tuple[GroupId, int], list[DeviceId]] = {}
        for device, group, attempt in run.to_release:
            together.setdefault((group, attempt), []).append(device)
        return [
            PendingRequest(("release", group, attempt), group, Release(run.run, attempt, tuple(devices)))
            for (group, attempt), devices in together.items()
        ]

    def _lock_requests(self, run: RunRecord) -> list[PendingRequest]:
        settings = self.serving.settings
        word = manner_of(run).at_devices.value
        rest = onward(run, settings, self.serving.group)
        passed_on = self._asked_by_others(run)
        return [
            PendingRequest(
                ("lock", request_name(run, settings, (group, devices)), run.attempt),
                group,
                LockRequest(
                    run.run, run.attempt, devices, run.fired_ms, word, self.serving.fence, onward=rest
                ),
                (LockPassedOn if group in passed_on else LockAsked)(devices, group, run.attempt),
                said=group in passed_on,
            )
            for group, devices in to_ask(run, settings)
        ]

    def passed_on(self, run: RunRecord, to: GroupId) -> None:
        """Note that the group that granted earlier locks has asked this group on the run's behalf."""
        groups = self._asked_by_others(run) | {to}
        self._passed_on[run.run.routine] = (run.run, run.attempt, groups)

    def _asked_by_others(self, run: RunRecord) -> frozenset[GroupId]:
        owner, attempt, groups = self._passed_on.get(run.run.routine, (None, 0, frozenset()))
        return groups if (owner, attempt) == (run.run, run.attempt) else frozenset()

    def _fences(self, run: RunRecord, devices: list[DeviceId]) -> list[PendingRequest]:
        return [
            PendingRequest(
                ("fence", group, run.attempt),
                group,
                FenceAsked(run.run, run.attempt, self.serving.fence, members),
            )
            for group, members in by_group(run, devices)
        ]

    def _command(self, run: RunRecord, number: int) -> PendingRequest:
        one = run.steps[number]
        origin = Origin(run.run, run.attempt, number)
        return PendingRequest(
            ("command", one.device, number),
            run.groups[one.device],
            Command(origin, one.device, one.action, self.serving.fence),
            CommandSent(number, one.device, one.action.command, one.action.argument),
        )


def under_way(run: RunRecord) -> range:
    """Returns the steps that are due: the first without a result, and those that run together with it. Each
    device is commanded once at a time."""
    first = last = len(run.progress)
    devices = {run.steps[first].device}
    while last + 1 < len(run.steps):
        following = run.steps[last + 1]
        if not following.together or following.device in devices:
            break
        devices.add(following.device)
        last += 1
    return range(first, last + 1)


def _failure(run: RunRecord) -> str:
    """Returns why a step makes the run fail; empty: none does."""
    for result, one in zip(run.progress, run.steps, strict=False):
        if not one.best_effort and result.outcome is not Outcome.DONE:
            return f"{one.device}: {one.action.command}: {result.detail or result.outcome}"
    return ""

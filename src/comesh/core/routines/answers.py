"""Handles messages of other groups to a run.

Every message may come late, twice, or to a leader that was deposed without knowing it. So each is checked
against the staged record first: the run, its attempt, its stage. What a deposed leader stages is never
committed, and its messages wait for that commit; only `_free` answers for runs without a record.
"""

from msgspec.structs import replace

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.records import (
    Held,
    Outcome,
    RoutineRecord,
    RunRecord,
    Stage,
    StepResult,
    routine_key,
)
from comesh.core.routines.ledger import live_run, trace
from comesh.core.routines.locks import acknowledged, manner_of, maybe_asked, went_past
from comesh.core.routines.runs import Runs, under_way
from comesh.core.routines.stages import moved
from comesh.core.stamps import FIRST_ERA, Era, Fence, RunId
from comesh.core.step import Step
from comesh.core.traces import (
    CommandAnswered,
    Executing,
    LockGranted,
    LockQueued,
    LockRefused,
    Wounded,
    shortened,
)
from comesh.core.work_messages import (
    CommandState,
    Fenced,
    GroupMessage,
    LockAnswer,
    LockState,
    Release,
    Released,
    RunQuery,
    RunState,
    Wound,
)

MAX_OVERTAKEN = 8
"""Maximum times in a row that a run's attempts may be behind what its devices have released. Only an outage
causes that, and it loses a few attempts at most; beyond, a later run is what they released."""


class Answers:
    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._serving = runs.serving
        self._overtaken: dict[RoutineId, tuple[RunId, int]] = {}
        self._early: dict[RoutineId, tuple[RunId, int, dict[int, StepResult]]] = {}
        self._queued: dict[RoutineId, tuple[RunId, int, frozenset[DeviceId]]] = {}
        """Devices for which the run is known to wait, in this attempt."""

    # -- locks -------------------------------------------------------------------------------------------

    def on_lock_state(self, message: GroupMessage, body: LockState, step: Step) -> None:
        run = self._live(body.run)
        if run is None or body.attempt < run.attempt or run.stage is Stage.RELEASING_LOCKS:
            granted = tuple(one.device for one in body.answers if one.granted is not None)
            self._free(message, body.run, body.attempt, granted)
            return
        if run.stage is not Stage.ACQUIRING_LOCKS or run.era < self._serving.era:
            return
        if body.attempt > run.attempt:
            self._runs.give_back(
                run, step, "an outage lost attempts", devices=list(run.groups), beyond=body.attempt
            )
            return
        held = {one.device for one in run.held}
        refused = [
            one
            for one in body.answers
            if one.refused
            and one.device not in held
            # A group with an older deployment version may not know the device yet.
            and not (one.refused == "unknown" and message.version < self._serving.config.version)
        ]
        if refused:
            self._on_refused(run, refused, step)
            return
        self._trace_queued(run, body)
        if body.passed_on is not None:
            self._runs.passed_on(run, body.passed_on)
        taken = self._with_grants(run, body.answers)
        if taken is not run:
            self._serving.put(taken)
            self._runs.advance(taken, step)

    def _with_grants(self, run: RunRecord, answers: tuple[LockAnswer, ...]) -> RunRecord:
        held = {one.device: one for one in run.held}
        eras = self._serving.group_record.eras
        changed = False
        for one in answers:
            group = run.groups.get(one.device)
            if one.granted is None or group is None or one.era < eras.get(group, FIRST_ERA):
                # Older than the era that this group confirmed: its devices' group has forgotten it.
                continue
            before = held.get(one.device)
            if before is None or (before.era, before.stamp) < (one.era, one.granted):
                held[one.device] = Held(one.device, one.granted, one.era)
                trace(self._serving, run.run, LockGranted(one.device, str(one.granted)))
                changed = True
        return replace(run, held=tuple(held[device] for device in sorted(held))) if changed else run

    def _on_refused(self, run: RunRecord, refused: list[LockAnswer], step: Step) -> None:
        for one in refused:
            trace(self._serving, run.run, LockRefused(one.device, one.refused))
        unknown = [one.device for one in refused if one.refused == "unknown"]
        if unknown:
            asked = maybe_asked(run, self._serving.settings)
            known = [device for device in asked if device not in unknown]
            self._runs.fail(run, step, f"{', '.join(unknown)}: no such device", devices=known)
        elif any(one.refused == "released" for one in refused):
            self._on_overtaken(run, refused[0].device, step)
        else:
            self._runs.give_back(run, step, f"{refused[0].device} is held", rest=True)

    def _on_overtaken(self, run: RunRecord, device: DeviceId, step: Step) -> None:
        before, times = self._overtaken.get(run.run.routine, (run.run, 0))
        times = times + 1 if before == run.run else 1
        self._overtaken[run.run.routine] = (run.run, times)
        if times > MAX_OVERTAKEN:
            self._runs.fail(run, step, f"outage: {device} has released a later run")
        else:
            self._runs.give_back(run, step, f"{device} has released this attempt")

    def _trace_queued(self, run: RunRecord, body: LockState) -> None:
        told_run, told_attempt, told = self._queued.get(run.run.routine, (run.run, 0, frozenset()))
        if (told_run, told_attempt) != (run.run, run.attempt):
            told = frozenset()
        queued = [one.device for one in body.answers if one.queued and one.device not in told]
        for device in queued:
            trace(self._serving, run.run, LockQueued(device))
        self._queued[run.run.routine] = (run.run, run.attempt, told.union(queued))

    def on_wound(self, message: GroupMessage, body: Wound, step: Step) -> None:
        run = self._live(body.run)
        if run is None or body.attempt < run.attempt:
            self._free(message, body.run, body.attempt, (body.device,))
        elif body.stop:
            self._runs.stop_run(run, f"{body.stop} broke its lock of {body.device}", step)
        elif self._gives_back(run):
            trace(self._serving, run.run, Wounded(body.device, run.attempt))
            rest = manner_of(run).rest is not None
            self._runs.give_back(run, step, f"wounded at {body.device}", rest=rest, beyond=body.attempt)

    def _gives_back(self, run: RunRecord) -> bool:
        """True if the run may give the lock back: not once it executes, nor while that is unknown."""
        return run.stage is Stage.ACQUIRING_LOCKS and run.era >= self._serving.era

    def on_released(self, body: Released, step: Step) -> None:
        run = self._live(body.run)
        if run is None:
            return
        pending = acknowledged(run, body.devices, body.attempt)
        if pending != run.to_release:
            run = replace(run, to_release=pending)
            self._serving.put(run)
            self._runs.advance(run, step)

    def _free(self, message: GroupMessage, run: RunId, attempt: int, devices: tuple[DeviceId, ...]) -> None:
        """Free a lock that is held for a run that has ended, or for an attempt that was given back.

        A deposed leader must not say so of a run that it merely has not heard of: runs of later leaders have
        higher stamps than its own.
        """
        live = live_run(self._serving, run.routine)
        if live is not None and live.run == run:
            pending = {device: upto for device, _, upto in live.to_release}
            devices = tuple(device for device in devices if pending.get(device, -1) < attempt)
        record = self._serving.get(routine_key(run.routine), RoutineRecord)
        waits = record is not None and any(firing.run == run for firing in record.waiting)
        unheard = Fence(run.stamp.config, run.stamp.ballot) > self._serving.fence
        if devices and message.sender is not None and not waits and not unheard:
            self._serving.send(message.sender, Release(run, attempt, devices))

    # -- commands ----------------------------------------------------------------------------------------

    def on_fenced(self, message: GroupMessage, body: Fenced, step: Step) -> None:
        run = self._live(body.run)
        confirmation = self._runs.confirmations.get(body.run.routine)
        if run is None or confirmation is None:
            return
        if (
            body.attempt != run.attempt
            or body.fence != self._serving.fence
            or self._outdated(message, body.era)
        ):
            return
        if any(
            one.held is None and self._is_outdated_denial(message, run, one.device) for one in body.devices
        ):
            return
        confirmation.take(body)
        if confirmation.unanswered(run):
            self._runs.advance(run, step)
            return
        lost = confirmation.lost(run)
        outage = run.era < self._serving.era
        if lost:
            reason = f"lost the lock of {', '.join(lost)}"
            self._runs.fail(run, step, f"outage: {reason}" if outage else reason)
            return
        del self._runs.confirmations[run.run.routine]
        merged = replace(moved(confirmation.merged(run), Stage.EXECUTING), era=self._serving.era)
        if merged != run:
            self._serving.put(merged)
            trace(self._serving, run.run, Executing(run.attempt, len(run.steps), len(merged.progress)))
        self._runs.advance(merged, step)

    def _outdated(self, message: GroupMessage, era: Era) -> bool:
        if message.sender is None:
            return True
        return era < self._serving.group_record.eras.get(message.sender, FIRST_ERA)

    def _is_outdated_denial(self, message: GroupMessage, run: RunRecord, device: DeviceId) -> bool:
        """True if a leader older than the one that granted the lock denies it: it was deposed and cannot
        know."""
        granted = next((one.stamp for one in run.held if one.device == device), None)
        if granted is None or message.by is None:
            return True
        return message.by < Fence(granted.config, granted.ballot)

    def on_command_state(self, message: GroupMessage, body: CommandState, step: Step) -> None:
        run = self._live(body.run)
        if run is None or run.stage is not Stage.EXECUTING or body.attempt != run.attempt:
            return
        outcome, number = body.state.outcome, body.state.step
        if outcome is None or run.run.routine in self._runs.confirmations or number not in under_way(run):
            return
        early = self._early_results(run)
        if number in early:
            return
        if outcome is Outcome.REFUSED and (
            body.fence != self._serving.fence or self._is_outdated_denial(message, run, body.device)
        ):
            return  # The earlier leader was refused, or the refusing leader does not know.
        answered = CommandAnswered(number, body.device, str(outcome), shortened(body.state.detail))
        trace(self._serving, run.run, answered)
        early[number] = StepResult(outcome, body.state.detail)
        progress = list(run.progress)
        while len(progress) in early:
            progress.append(early.pop(len(progress)))
        if len(progress) > len(run.progress):
            run = replace(run, progress=tuple(progress))
            self._serving.put(run)
            self._runs.advance(run, step)

    def _early_results(self, run: RunRecord) -> dict[int, StepResult]:
        """Results of steps that run together with one that has none yet. They are not committed: their
        devices keep them for as long as the run holds the locks, and send them to the next leader."""
        owner, attempt, early = self._early.get(run.run.routine, (run.run, run.attempt, {}))
        if (owner, attempt) != (run.run, run.attempt):
            early = {}
        self._early[run.run.routine] = (run.run, run.attempt, early)
        return early

    # -- questions ---------------------------------------------------------------------------------------

    def on_run_query(self, message: GroupMessage, body: RunQuery, sender: NodeId, step: Step) -> None:
        """Answer a question about a run, under a lease only: a deposed leader does not know the latest
        runs."""
        if not self._serving.has_lease(step.now_ms):
            return
        if body.era is not None and message.sender is not None:
            self._raise_era(message.sender, body.era, step)
        live = live_run(self._serving, body.routine)
        if live is not None and (body.era is not None or body.run is None or body.run == live.run):
            asked = frozenset(body.devices)
            state = RunState(
                run=live.run,
                routine=body.routine,
                stage=live.stage,
                attempt=live.attempt,
                held=tuple(one for one in live.held if one.device in asked),
                devices=body.devices,
                era=body.era,
                fired_ms=live.fired_ms,
                strategy=manner_of(live).at_devices.value,
            )
        else:
            state = self._of_no_live_run(body)
        self._serving.answer(message, sender, state)

    def _of_no_live_run(self, body: RunQuery) -> RunState:
        """Returns the answer for a run that has ended, or waits for its turn."""
        record = self._serving.get(routine_key(body.routine), RoutineRecord)
        waits = record is not None and any(firing.run == body.run for firing in record.waiting)
        stage = Stage.ACQUIRING_LOCKS if waits else None
        return RunState(body.run, body.routine, stage, 0, (), body.devices, body.era)

    def _raise_era(self, group: GroupId, era: Era, step: Step) -> None:
        """Handle a new era of the group. A grant that it passed on, and that had no effect here, may be lost:
        a run would hold a later lock while it waits for an earlier one. So it gives back before the group
        grants anything."""
        record = self._serving.group_record
        if era <= record.eras.get(group, FIRST_ERA):
            return
        self._serving.put(replace(record, eras={**record.eras, group: era}))
        if group == self._serving.group:
            return  # the group passes no request on
        for run in self._serving.all(RunRecord):
            if self._gives_back(run) and went_past(run, group):
                why = f"outage: {group} may have lost what it granted and passed on"
                self._runs.give_back(run, step, why)

    def _live(self, run: RunId) -> RunRecord | None:
        live = live_run(self._serving, run.routine)
        return live if live is not None and live.run == run else None

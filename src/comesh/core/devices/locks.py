"""Locks of devices: requests, releases, wounds, and runs that fell silent (protocol, section 7).

Rules:
- every change is staged on the record and answered after commit; the rules of the queue are in
  `lock_queue.py`;
- a device is granted when nobody holds it, no call of a former holder may still land, and it is settled in
  the era of its group. A removed device serves its holder and its waiters, and no new requests;
- a request that is granted at once is passed on to the next group of its order. After one that waited, the
  run asks the next group by itself. None of that is remembered: a run without an answer asks again;
- a later grant is sent once. A run that missed it asks again, as it does for everything not granted;
- for a hold or waiter older than `probe_after_ms` the leader asks the run's group, and only its answer frees
  the device. A waiter repeats its request, so it is asked about only when it stops doing so.
"""

from collections.abc import Callable

from msgspec.structs import replace

from comesh.core.devices.cluster import Cluster
from comesh.core.devices.lock_queue import (
    enqueued,
    granted_next,
    highest,
    is_quiet,
    marks,
    released,
    renewed,
    to_wound,
    waiter_of,
)
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.orders.standing import standing
from comesh.core.records import Call, DeviceRecord, Hold, Kind, Standing, Waiter
from comesh.core.stamps import FIRST_ERA, RunId
from comesh.core.step import Step
from comesh.core.strategies import AtDevices, Strategy, strategy_of
from comesh.core.work_messages import (
    GroupMessage,
    Home,
    LockAnswer,
    LockRequest,
    LockState,
    Release,
    Released,
    RunQuery,
    RunState,
    Wound,
)

NeverLeft = Callable[[DeviceId, Call], bool]


class _Probe:
    """A run that holds or waits for a device, and when its group is asked about it."""

    __slots__ = ("ask_ms",)

    def __init__(self, now_ms: float, after_ms: float) -> None:
        self.ask_ms = now_ms + after_ms


class _Wounded:
    __slots__ = ("attempt", "run", "times")

    def __init__(self, hold: Hold) -> None:
        self.run = hold.run
        self.attempt = hold.attempt
        self.times = 0


class Locks:
    def __init__(self, cluster: Cluster, never_left: NeverLeft) -> None:
        self._cluster = cluster
        self._serving = cluster.serving
        self._never_left = never_left
        self._probes: dict[DeviceId, dict[RunId, _Probe]] = {}
        self._wounded: dict[DeviceId, _Wounded] = {}
        self._grants: dict[tuple[RunId, int], tuple[GroupId | None, list[LockAnswer]]] = {}
        """Grants of this step, sent together."""
        strategies = {routine.strategy for routine in self._serving.program.routines.values()}
        aged = any(strategy_of(strategy).uses(AtDevices.BY_AGE) for strategy in strategies)
        self._by_age = aged or self._serving.era > FIRST_ERA

    def begin(self, step: Step) -> None:
        for device in tuple(self._cluster.occupied):
            self.advance(device, step)

    # -- requests ----------------------------------------------------------------------------------------

    def on_request(self, request: LockRequest, message: GroupMessage, sender: NodeId, step: Step) -> None:
        home = request.home
        if home is None and message.sender is not None:
            home = Home(message.sender, sender)
        group = None if home is None else home.group
        answers = tuple([self._request(request, device, group, step) for device in request.devices])
        passes_on = home is not None and all(answer.granted is not None for answer in answers)
        if not self._serving.has_lease(step.now_ms):
            # Another leader may lead by now and know the device: such a refusal would fail the run.
            answers = tuple(answer for answer in answers if answer.refused != "unknown")
        self._grants.pop((request.run, request.attempt), None)
        passed_on = None
        if passes_on and request.onward:
            (passed_on, devices), *further = request.onward
            passed = replace(request, devices=devices, home=home, onward=tuple(further))
            self._serving.send(passed_on, passed)
        state = LockState(request.run, request.attempt, answers, passed_on)
        if group is None:
            self._serving.answer(message, sender, state)
        else:
            self._serving.send(group, state)

    def _request(
        self, request: LockRequest, device: DeviceId, home: GroupId | None, step: Step
    ) -> LockAnswer:
        record = self._cluster.find(device)
        if record is None:
            return self._refusal(device, "unknown")
        if marks(record, request.run, request.attempt) or _is_dead(record, request):
            return self._refusal(device, "released")
        hold = record.hold
        settled = self._cluster.is_settled(record)
        if hold is not None and settled and hold.run == request.run and hold.attempt == request.attempt:
            fence = highest(hold.fence, request.fence)
            if fence != hold.fence:
                self._cluster.put(replace(record, hold=replace(hold, fence=fence)))
            return LockAnswer(device, hold.stamp, self._serving.era)
        refused = self._why_not_wait(record, request, settled)
        if refused:
            return self._refusal(device, refused)
        if hold is not None and hold.run.routine == request.run.routine and hold.run != request.run:
            self._ask(
                device, hold
            )  # a routine has one live run: the holder has ended, or will be found to have
        waiter = Waiter(request.run, request.attempt, request.strategy, request.fired_ms, request.fence, home)
        if waiter_of(record, request.run.routine) != waiter:
            self._cluster.put(enqueued(record, waiter, by_age=self._by_age))
        self.advance(device, step)
        record = self._cluster.find(device)
        hold = None if record is None else record.hold
        if settled and hold is not None and hold.run == request.run:
            return LockAnswer(device, hold.stamp, self._serving.era)
        self._put_off(device, request.run, step)
        return LockAnswer(device, None, self._serving.era)

    def _why_not_wait(self, record: DeviceRecord, request: LockRequest, settled: bool) -> str:
        """Returns why this request neither renews a hold nor takes a place in the queue; empty: it may."""
        hold = record.hold
        optimistic = request.strategy is Strategy.OPTIMISTIC
        if hold is not None and hold.run == request.run and (settled or not optimistic):
            return ""
        if not self._cluster.knows(record.device):
            waits = waiter_of(record, request.run.routine)
            return "" if waits is not None and waits.run == request.run else "unknown"
        free = hold is None and not record.queue and settled and is_quiet(record)
        return "held" if optimistic and not free else ""

    def _refusal(self, device: DeviceId, why: str) -> LockAnswer:
        return LockAnswer(device, None, self._serving.era, why)

    # -- releases ----------------------------------------------------------------------------------------

    def on_release(self, release: Release, message: GroupMessage, sender: NodeId, step: Step) -> None:
        for device in release.devices:
            self.free(device, release.run, release.attempt, step)
        self._serving.answer(message, sender, Released(release.run, release.attempt, release.devices))

    def free(self, device: DeviceId, run: RunId, attempt: int, step: Step) -> None:
        record = self._cluster.find(device)
        if record is None:
            return
        left = tuple(
            call
            for call in record.calls
            if call.origin.run == run and not call.landed and not self._never_left(device, call)
        )
        after = released(record, run, attempt, left, self._serving.program.routines)
        if after != record:
            self._cluster.put(after)
            self.advance(device, step)

    # -- what follows from the record --------------------------------------------------------------------

    def advance(self, device: DeviceId, step: Step) -> None:
        """Grant what can be granted, ask for what must be asked; always safe to repeat."""
        record = self._cluster.find(device)
        if record is None:
            self._drop_breaking(device)
            return
        if self._cluster.is_settled(record):
            record = self._grant(record)
        self._update_probes(record, step)
        self._wound(record, step)

    def _grant(self, record: DeviceRecord) -> DeviceRecord:
        hold = record.hold
        if hold is not None:
            again = waiter_of(record, hold.run.routine)
            if again is None or again.run != hold.run or again.attempt <= hold.attempt:
                return record
            record = renewed(record, hold, again, self._serving.stamp())
        elif record.queue and is_quiet(record):
            record = granted_next(record, self._serving.stamp())
        else:
            return record
        self._cluster.put(record)
        hold = record.hold
        assert hold is not None
        told = self._grants.setdefault((hold.run, hold.attempt), (self._cluster.home(hold), []))
        told[1].append(LockAnswer(record.device, hold.stamp, self._serving.era))
        return record

    def tell_grants(self) -> None:
        """Send the grants of this step to the runs that waited for them."""
        for (run, attempt), (home, answers) in self._grants.items():
            if home is not None:
                self._serving.send(home, LockState(run, attempt, tuple(answers)))
        self._grants.clear()

    # -- wounds ------------------------------------------------------------------------------------------

    def on_wound_timer(self, device: DeviceId, step: Step) -> None:
        wounded = self._wounded.get(device)
        record = self._cluster.find(device)
        if wounded is None or record is None or record.hold is None:
            return
        wounded.times += 1
        self._send_wound(device, record.hold, wounded, step)

    def on_reached(self, group: GroupId, step: Step) -> None:
        for device, wounded in self._wounded.items():
            record = self._cluster.find(device)
            if record is not None and record.hold is not None and self._cluster.home(record.hold) == group:
                wounded.times = 0
                self._send_wound(device, record.hold, wounded, step)

    def break_hold(self, device: DeviceId, step: Step) -> None:
        """Carry out an order to break the lock: ask the holder to give back, even if it was asked before."""
        self._wounded.pop(device, None)
        self.advance(device, step)

    def _breaking(self, record: DeviceRecord) -> Standing | None:
        """Returns the order to break the lock of this holder; one for a former holder is carried out."""
        order = standing(self._serving, Kind.BREAKING, record.device)
        if order is not None and (record.hold is None or record.hold.run != order.run):
            self._serving.drop(order.key)
            return None
        return order

    def _drop_breaking(self, device: DeviceId) -> None:
        """Drop the order to break a lock: the deployment removed the device, and nobody holds it any more."""
        order = standing(self._serving, Kind.BREAKING, device)
        if order is not None:
            self._serving.drop(order.key)

    def _wound(self, record: DeviceRecord, step: Step) -> None:
        device, hold = record.device, record.hold
        breaking = self._breaking(record)
        if (
            hold is None
            or not self._cluster.is_settled(record)
            or not (breaking or to_wound(record, by_age=self._by_age))
        ):
            if self._wounded.pop(device, None) is not None:
                self._cluster.cancel_timer("wound", device, step)
            return
        wounded = self._wounded.get(device)
        if wounded is None or (wounded.run, wounded.attempt) != (hold.run, hold.attempt):
            self._wounded[device] = wounded = _Wounded(hold)
            self._send_wound(device, hold, wounded, step)

    def _send_wound(self, device: DeviceId, hold: Hold, wounded: _Wounded, step: Step) -> None:
        home = self._cluster.home(hold)
        if home is not None:
            record = self._cluster.find(device)
            order = None if record is None else self._breaking(record)
            stop = "" if order is None else order.by
            self._serving.send(home, Wound(hold.run, hold.attempt, device, stop))
        self._cluster.set_timer("wound", device, self._cluster.resend_ms(wounded.times), step)

    # -- runs that are not heard of ----------------------------------------------------------------------

    def _update_probes(self, record: DeviceRecord, step: Step) -> None:
        device = record.device
        old = self._probes.pop(device, {})
        after_ms = self._serving.settings.probe_after_ms
        probes = {
            one.run: old.get(one.run) or _Probe(step.now_ms, after_ms) for one in _holds_and_waiters(record)
        }
        if probes:
            self._probes[device] = probes
            if not old:
                self._cluster.set_timer("stale", device, after_ms, step)
        elif old:
            self._cluster.cancel_timer("stale", device, step)

    def _put_off(self, device: DeviceId, run: RunId, step: Step) -> None:
        """Delay the question about a run: its group has just sent a message about it, and repeats that if it
        still waits."""
        probe = self._probes.get(device, {}).get(run)
        if probe is not None:
            settings = self._serving.settings
            probe.ask_ms = step.now_ms + settings.probe_after_ms + settings.max_request_resend_ms

    def on_stale_timer(self, device: DeviceId, step: Step) -> None:
        record = self._cluster.find(device)
        probes = self._probes.get(device)
        if record is None or not probes:
            return
        for one in _holds_and_waiters(record):
            probe = probes.get(one.run)
            if probe is not None and probe.ask_ms <= step.now_ms:
                probe.ask_ms = step.now_ms + self._serving.settings.probe_after_ms
                self._ask(device, one)
        next_ms = min(probe.ask_ms for probe in probes.values())
        self._cluster.set_timer("stale", device, next_ms - step.now_ms, step)
        self._wound(record, step)

    def _ask(self, device: DeviceId, one: Hold | Waiter) -> None:
        home = self._cluster.home(one)
        if home is not None:
            self._serving.send(home, RunQuery(one.run, one.run.routine, (device,), None))

    def on_run_state(self, state: RunState, step: Step) -> None:
        """Handle the state of a run: one that has ended, or began a newer attempt without a device, no longer
        has it."""
        if state.run is None:
            return
        held = [lock.device for lock in state.held]
        for device in state.devices:
            record = self._cluster.find(device)
            if record is None:
                continue
            for one in _holds_and_waiters(record):
                if one.run != state.run:
                    continue
                if state.stage is None:
                    self.free(device, one.run, one.attempt, step)
                elif state.attempt > one.attempt and device not in held:
                    self.free(device, one.run, state.attempt - 1, step)


def _holds_and_waiters(record: DeviceRecord) -> tuple[Hold | Waiter, ...]:
    return record.queue if record.hold is None else (record.hold, *record.queue)


def _is_dead(record: DeviceRecord, request: LockRequest) -> bool:
    """True if a newer run or attempt of the routine has asked already."""
    return any(
        one.run.routine == request.run.routine and (one.run, one.attempt) > (request.run, request.attempt)
        for one in _holds_and_waiters(record)
    )

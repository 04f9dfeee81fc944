"""Checks that there are no stray commands (promise 6): the devices' acts against the committed lock holders.

Every act in the devices' own log must be of a run that held the lock, with a committed intent, when the
command was sent; and when it lands, no other run may hold it. A command that stays in the air for longer than
its intent allows (timeout and flight) may find another holder: that is the documented window of devices that
do not fence by themselves; it is counted, not judged. A step that is not idempotent is done at most once.
The fence of a hold never falls: a leader of the routine that another one followed is not obeyed.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from comesh.core.actions import Origin
from comesh.core.ids import DeviceId, GroupId
from comesh.core.records import Call, DeviceRecord, Record
from comesh.core.stamps import RunId
from comesh.drivers.virtual.devices import Acted
from comesh.sim.checks.history import Change, State
from comesh.sim.checks.violation import Promise, Verdicts

KEPT_SPANS: Final = 64
"""Maximum holds remembered per device: more than can follow each other while a command is in the air."""
KEPT_INTENTS: Final = 256
"""Maximum intents remembered per device."""
KEPT_ACTS: Final = 20_000
"""Maximum acts remembered, of all devices, that must not be repeated."""
DRIFT: Final = 0.02
"""Maximum fraction by which a leader's clock is fast, and grants a device so much sooner."""


class _Span:
    """The time in which a run had the lock, until to_ms."""

    __slots__ = ("from_ms", "run", "to_ms")

    def __init__(self, run: RunId, from_ms: float) -> None:
        self.run = run
        self.from_ms = from_ms
        self.to_ms = float("inf")


class _DeviceLocks:
    __slots__ = ("cuts", "group", "intents", "spans")

    def __init__(self, group: GroupId) -> None:
        self.group = group
        self.cuts = 0
        """Number of times the group lost history."""
        self.spans: deque[_Span] = deque(maxlen=KEPT_SPANS)
        self.intents: OrderedDict[Origin, tuple[float, Call]] = OrderedDict()
        """Intents, with the time at which each was first committed."""

    @property
    def holder(self) -> RunId | None:
        return self.spans[-1].run if self.spans and self.spans[-1].to_ms == float("inf") else None

    def hold(self, run: RunId | None, at_ms: float) -> None:
        if run != self.holder:
            if self.holder is not None:
                self.spans[-1].to_ms = at_ms
            if run is not None:
                self.spans.append(_Span(run, at_ms))

    def held(self, run: RunId, at_ms: float) -> bool:
        return any(span.run == run and span.from_ms <= at_ms <= span.to_ms for span in reversed(self.spans))

    def intend(self, calls: tuple[Call, ...], at_ms: float) -> None:
        for call in calls:
            first = self.intents.get(call.origin)
            self.intents[call.origin] = (at_ms if first is None else first[0], call)
        while len(self.intents) > KEPT_INTENTS:
            self.intents.popitem(last=False)


class Locks:
    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self._devices: dict[DeviceId, _DeviceLocks] = {}
        self._done: OrderedDict[tuple[DeviceId, RunId, int], int] = OrderedDict()
        """Acts that must not be repeated, and how often the device's group had lost history by then."""
        self.acts = 0
        self.late_acts = 0
        """Acts that landed after their time: not judged by who held the lock then."""

    # -- what is committed -------------------------------------------------------------------------------

    def on_entry(self, at_ms: float, group: GroupId, changes: list[Change], state: State) -> None:
        for _, before, after in changes:
            if isinstance(after, DeviceRecord):
                if isinstance(before, DeviceRecord):
                    self._test_fence(at_ms, before, after)
                self._on_device(at_ms, group, after)
            elif isinstance(before, DeviceRecord):
                self._forget(at_ms, group, before.device)

    def on_state(
        self, at_ms: float, group: GroupId, records: dict[str, Record], *, lossy: bool
    ) -> list[RunId]:
        for device, locks in self._devices.items():
            if locks.group == group:
                locks.cuts += lossy
                if "device/" + device not in records:
                    locks.hold(None, at_ms)
        for record in records.values():
            if isinstance(record, DeviceRecord):
                self._on_device(at_ms, group, record)
        return []

    def _test_fence(self, at_ms: float, before: DeviceRecord, after: DeviceRecord) -> None:
        """Check that the fence of a hold never falls: a leader that another one followed no longer
        commands."""
        was, now = before.hold, after.hold
        if was is None or now is None or (was.run, was.attempt) != (now.run, now.attempt):
            return
        if was.fence is not None and (now.fence is None or now.fence < was.fence):
            what = f"{after.device} obeys {now.fence} of {now.run} after it was fenced by {was.fence}"
            self._verdicts.broken(Promise.NO_STRAY, at_ms, what, runs=(now.run,), devices=(after.device,))

    def _on_device(self, at_ms: float, group: GroupId, record: DeviceRecord) -> None:
        locks = self._devices.get(record.device)
        if locks is None:
            locks = self._devices[record.device] = _DeviceLocks(group)
        locks.group = group
        locks.hold(None if record.hold is None else record.hold.run, at_ms)
        if record.calls:
            locks.intend(record.calls, at_ms)

    def _forget(self, at_ms: float, group: GroupId, device: DeviceId) -> None:
        locks = self._devices.get(device)
        if locks is not None and locks.group == group:
            locks.hold(None, at_ms)

    def contended(self, devices: Iterable[DeviceId], run: RunId, since_ms: float) -> bool:
        """True if another run held one of these devices at some time since then."""
        return any(
            span.run != run and span.to_ms >= since_ms
            for device in devices
            if device in self._devices
            for span in self._devices[device].spans
        )

    # -- what was done -----------------------------------------------------------------------------------

    def on_act(self, act: Acted) -> None:
        """Judge an act; acts come in order of time, among the commits."""
        if act.refused is not None:
            return
        self.acts += 1
        device, command = act.device, act.command
        action, origin, sent_ms = command.action, command.origin, command.sent_ms
        if origin is None:
            self._stray(act, f"{device} acted on {action.command} of no run", ())
            return
        run = origin.run
        locks = self._devices.get(device)
        if locks is None or not locks.held(run, sent_ms):
            self._stray(act, f"{device} acted for {run}, which did not hold it when that was sent", (run,))
            return
        since_ms, intent = locks.intents.get(replace(origin, grant=None), (act.at_ms, None))
        if intent is None or since_ms > sent_ms or intent.action != action:
            of = f"{run} step {origin.step}"
            what = f"{device} acted on {action.command} of {of}, sent without a committed intent"
            self._stray(act, what, (run,))
            return
        holder = locks.holder
        if act.at_ms - sent_ms > (action.timeout_ms + intent.flight_ms) * (1.0 - DRIFT):
            self.late_acts += 1
        elif holder is not None and holder != run:
            self._stray(act, f"{device} acted for {run} while {holder} held it", (run, holder))
        if not action.idempotent:
            self._test_once(act, origin, locks.cuts)

    def _test_once(self, act: Acted, origin: Origin, cuts: int) -> None:
        """Check that an act is not repeated. A group that lost history in between may not know that it was
        done."""
        run, step = origin.run, origin.step
        key = (act.device, run, step)
        if self._done.get(key) == cuts:
            did = f"{act.device} did {act.command.action.command} of {run} step {step}"
            self._stray(act, f"{did} twice, which is not idempotent", (run,))
        self._done[key] = cuts
        while len(self._done) > KEPT_ACTS:
            self._done.popitem(last=False)

    def _stray(self, act: Acted, what: str, runs: tuple[RunId, ...]) -> None:
        self._verdicts.broken(Promise.NO_STRAY, act.at_ms, what, runs=runs, devices=(act.device,))

"""Sends commands to devices and tracks their outcomes (protocol, section 7).

Rules:
- only the holder's attempt, by a leader whose fence is not below the highest seen, commands a device, and
  each step once. The intent is committed before the command is sent, and it is sent only under a lease;
- a device answers done or failed. Without an answer within the timeout the outcome is unknown, and the
  command may still land until its flight time is over; until then the device is granted to nobody else.
  Durations count from when it was sent;
- a new leader cannot know whether or when an open call was sent. It waits timeout and flight time in full
  from when it began to serve, and grants the device to nobody else before. For idempotent commands the run
  need not wait: the device is read back at once, and commanded again if it does not show the effect. Others
  are read back when nothing can land any more; without the effect the outcome is unknown;
- each command has a stamp of its own, higher than all before. A device that fences refuses lower ones, so
  its answer to the latest settles all earlier ones;
- a device in maintenance is commanded by hand only; any other command fails, untried, and none is repeated:
  the outcome of what an earlier leader may have sent is unknown;
- a run that commands a later step knows the outcomes of the earlier ones: they are not repeated;
- nothing is refused without a lease: the current leader may have granted it;
- a call that was never sent ends with its run; one that was sent stays in the record until it cannot land.
"""

from msgspec.structs import replace

from comesh.core.actions import Origin
from comesh.core.devices.cluster import Cluster
from comesh.core.devices.locks import Locks
from comesh.core.effects import CommandDevice, ReadDevice
from comesh.core.events import DeviceAnswered
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.orders.standing import is_by_hand, maintained
from comesh.core.records import Call, DeviceRecord, Hold, Outcome, Standing
from comesh.core.stamps import Fence, RunId
from comesh.core.step import Step
from comesh.core.values import Value
from comesh.core.work_messages import (
    Command,
    CommandState,
    FenceAsked,
    Fenced,
    FencedDevice,
    GroupMessage,
    StepState,
)

NO_ANSWER = "no answer"
"""The driver's error for a device that did not answer in time."""
TOO_LATE = "too late"
"""The runtime's error for a command that it did not send, because the lease had ended."""
LEASE_TRIES = 10
"""Number of times per lease that a leader without one checks whether it has one again."""
READ_BACK_MS = 5000.0
"""Timeout of the read that checks the outcome of a command."""
NEVER_MS = float("inf")

Key = tuple[DeviceId, Origin]
"""A call of a device, by which its record names it, without a grant."""


class _Flight:
    """The state of a committed call that may still land, as this leader knows it."""

    __slots__ = (
        "clear_ms",
        "first_left_ms",
        "inherited",
        "left_ms",
        "numbers",
        "older_until_ms",
        "read_until_ms",
    )

    def __init__(self) -> None:
        self.left_ms: float | None = None
        """Time at which it was sent; None: this leader did not send it."""
        self.first_left_ms = NEVER_MS
        """Time at which it was first sent: a call that always arrives too late ends with its timeout."""
        self.clear_ms = NEVER_MS
        """Time from which nothing of it can happen any more."""
        self.inherited = False
        """True if an earlier leader committed it, so that it may or may not have been sent."""
        self.older_until_ms = -NEVER_MS
        """Time until which a call that the earlier leader sent may land."""
        self.read_until_ms: float | None = None
        """Deadline of the read that checks its outcome."""
        self.numbers: list[int] = []


class Calls:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._serving = cluster.serving
        self._flights: dict[Key, _Flight] = {}
        self._numbers: dict[int, Key] = {}
        self.locks = Locks(cluster, self._never_left)

    def begin(self, step: Step) -> None:
        for record in self._cluster.records():
            for call in record.calls:
                if not call.landed:
                    flight = self._flights[record.device, call.origin] = _Flight()
                    flight.inherited = True
                    flight.clear_ms = flight.older_until_ms = step.now_ms + self._landing_ms(call)
            self.look(record.device, step)
        self.locks.begin(step)

    # -- what routines ask -------------------------------------------------------------------------------

    def on_command(self, command: Command, message: GroupMessage, sender: NodeId, step: Step) -> None:
        record = self._cluster.find(command.device)
        if record is not None and not self._cluster.is_settled(record):
            return  # the holder is not known yet: the command will be repeated
        why_not = _why_refused(record, command)
        if record is None or record.hold is None or why_not:
            if not self._serving.has_lease(step.now_ms):
                return  # another leader may lead by now, and may have granted it
            state = StepState(command.origin.step, Outcome.REFUSED, why_not)
            self._answer(command, state, message, sender)
            return
        hold = replace(record.hold, fence=command.fence, home=message.sender or record.hold.home)
        known = _find(record, command.origin)
        calls = record.calls
        if known is None and self._serving.holds_back:
            return  # the next config takes it: the command will be repeated
        if known is None:
            call = self._call(command)
            calls = (*(_passed(call, command) for call in calls), call)
            if call.landed:
                known = call
            else:
                key = (command.device, call.origin)
                self._serving.then(lambda step: self._may_leave(key, step))
        if calls is not record.calls or hold != record.hold:
            self._cluster.put(replace(record, hold=hold, calls=calls))
        if known is not None:
            self._answer(command, _state(known), message, sender)

    def _call(self, command: Command) -> Call:
        """Returns the call to commit; for a device in maintenance, a call that was not tried."""
        flight_ms = self._cluster.flight_ms(command.device)
        order = self._withheld(command.origin.run, command.device)
        if order is None:
            return Call(command.origin, command.action, flight_ms)
        why = _in_maintenance(order)
        return Call(command.origin, command.action, flight_ms, Outcome.FAILED, why, landed=True)

    def _answer(self, command: Command, state: StepState, message: GroupMessage, sender: NodeId) -> None:
        origin = command.origin
        body = CommandState(origin.run, origin.attempt, command.device, command.fence, state)
        self._serving.answer(message, sender, body)

    def on_fence(self, asked: FenceAsked, message: GroupMessage, sender: NodeId) -> None:
        """Answer a new leader of a routine; not while the holder is unknown, nor a leader that another
        followed."""
        records = [self._cluster.find(device) for device in asked.devices]
        if any(record is not None and not self._cluster.is_settled(record) for record in records):
            return
        holds = [_hold_of(record, asked) for record in records]
        if any(hold is not None and _is_fenced_off(hold, asked.fence) for hold in holds):
            return
        devices: list[FencedDevice] = []
        for device, record, hold in zip(asked.devices, records, holds, strict=True):
            if record is None or hold is None:
                devices.append(FencedDevice(device, None, ()))
                continue
            raised = replace(hold, fence=asked.fence, home=message.sender or hold.home)
            if raised != hold:
                self._cluster.put(replace(record, hold=raised))
            steps = tuple(
                _state(call)
                for call in record.calls
                if call.origin.run == asked.run and call.origin.attempt == asked.attempt
            )
            devices.append(FencedDevice(device, hold.stamp, steps))
        body = Fenced(asked.run, asked.attempt, asked.fence, tuple(devices), self._serving.era)
        self._serving.answer(message, sender, body)

    # -- calls under way ---------------------------------------------------------------------------------

    def _may_leave(self, key: Key, step: Step) -> None:
        """Send a call whose intent has been committed."""
        if key not in self._flights and _find_open(self._cluster.find(key[0]), key) is not None:
            self._flights[key] = _Flight()
            self.look(key[0], step)
            self.locks.tell_grants()

    def _never_left(self, device: DeviceId, call: Call) -> bool:
        flight = self._flights.get((device, call.origin))
        return flight is None or (flight.left_ms is None and flight.older_until_ms == -NEVER_MS)

    def look(self, device: DeviceId, step: Step) -> None:
        """Do what is due for the open calls of a device; always safe to repeat."""
        record = self._cluster.find(device)
        for key in [key for key in self._flights if key[0] == device and _find_open(record, key) is None]:
            self._forget_numbers(self._flights.pop(key))
        if record is None or not record.calls:
            return
        next_ms = NEVER_MS
        for call in record.calls:
            key = (device, call.origin)
            flight = self._flights.get(key)
            if flight is not None and not call.landed:
                next_ms = min(next_ms, self._look_at(key, call, flight, step))
        if next_ms < NEVER_MS:
            self._cluster.set_timer("call", device, next_ms - step.now_ms, step)

    def _look_at(self, key: Key, call: Call, flight: _Flight, step: Step) -> float:
        """Do what is due for one call; returns when to check again."""
        now_ms = step.now_ms
        if call.outcome is not None or (flight.left_ms is not None and not self._is_held(key)):
            if now_ms >= flight.clear_ms:
                self._land(key, step)
                return NEVER_MS
            return flight.clear_ms
        if flight.left_ms is not None:
            if now_ms >= flight.left_ms + call.action.timeout_ms:
                self._end(key, Outcome.UNKNOWN, NO_ANSWER, landed=False, step=step)
                return flight.clear_ms
            return flight.left_ms + call.action.timeout_ms
        if flight.inherited:
            return self._look_at_inherited(key, call, flight, step)
        return self._leave(key, call, flight, step)

    def _look_at_inherited(self, key: Key, call: Call, flight: _Flight, step: Step) -> float:
        now_ms = step.now_ms
        if now_ms < flight.clear_ms and not (call.action.idempotent and self._is_held(key)):
            return flight.clear_ms
        record = self._cluster.find(key[0])
        if record is not None and not self._cluster.is_settled(record):
            return NEVER_MS  # settling checks again
        if not self._is_held(key):
            self._land(key, step)
            return NEVER_MS
        if call.action.expects is None:
            return self._not_shown(key, call, flight, step)
        if flight.read_until_ms is None:
            flight.read_until_ms = now_ms + READ_BACK_MS
            step.do(ReadDevice(key[0], self._number(key, flight)))
        if now_ms >= flight.read_until_ms:
            return self._not_shown(key, call, flight, step)
        return flight.read_until_ms

    def _not_shown(self, key: Key, call: Call, flight: _Flight, step: Step) -> float:
        """Repeat a command whose effect the device does not show if it is idempotent; end it as unknown
        otherwise."""
        if call.action.idempotent:
            flight.inherited = False
            flight.read_until_ms = None
            self._forget_numbers(flight)
            return self._leave(key, call, flight, step)
        self._end(key, Outcome.UNKNOWN, "its leader changed", landed=True, step=step)
        return NEVER_MS

    def _leave(self, key: Key, call: Call, flight: _Flight, step: Step) -> float:
        record = self._cluster.find(key[0])
        hold = _hold_of(record, call.origin)
        if record is None or hold is None:
            if step.now_ms < flight.older_until_ms:
                return flight.older_until_ms
            self._land(key, step)
            return NEVER_MS
        serving = self._serving
        order = self._withheld(call.origin.run, key[0])
        if order is not None:
            return self._withhold(key, flight, order, step)
        if not serving.has_lease(step.now_ms):
            return step.now_ms + serving.config.lease_ms / LEASE_TRIES
        older_ms = self._older_until_ms(key)
        if step.now_ms < older_ms:
            return older_ms
        flight.left_ms = step.now_ms
        flight.first_left_ms = min(flight.first_left_ms, step.now_ms)
        flight.clear_ms = max(step.now_ms + self._landing_ms(call), flight.older_until_ms)
        step.do(
            CommandDevice(
                device=key[0],
                call=self._number(key, flight),
                action=call.action,
                origin=replace(call.origin, grant=serving.stamp()),
                until_ms=serving.lease_until_ms,
            )
        )
        return step.now_ms + call.action.timeout_ms

    def _withheld(self, run: RunId, device: DeviceId) -> Standing | None:
        return None if is_by_hand(run) else maintained(self._serving, device)

    def _withhold(self, key: Key, flight: _Flight, order: Standing, step: Step) -> float:
        sent_before = flight.older_until_ms > -NEVER_MS
        outcome = Outcome.UNKNOWN if sent_before else Outcome.FAILED
        landed = step.now_ms >= flight.older_until_ms
        self._end(key, outcome, _in_maintenance(order), landed=landed, step=step)
        return NEVER_MS if landed else flight.older_until_ms

    def _older_until_ms(self, key: Key) -> float:
        """Returns until when another step of an earlier leader may land on this device, and undo a command
        sent now."""
        if self._cluster.fences(key[0]):
            return -NEVER_MS
        flights = [one for other, one in self._flights.items() if other[0] == key[0] and other != key]
        return max((one.older_until_ms for one in flights), default=-NEVER_MS)

    def _number(self, key: Key, flight: _Flight) -> int:
        number = self._serving.next_call()
        self._numbers[number] = key
        flight.numbers.append(number)
        return number

    # -- answers -----------------------------------------------------------------------------------------

    def is_ours(self, number: int) -> bool:
        return number in self._numbers

    def on_answer(self, event: DeviceAnswered, readings: dict[str, Value], step: Step) -> None:
        """Take the answer of a device. readings: those that its declaration accepts."""
        key = self._numbers.pop(event.call)
        flight, call = self._flights.get(key), _find_open(self._cluster.find(key[0]), key)
        if flight is None or call is None:
            return
        older = step.now_ms < flight.older_until_ms
        if flight.read_until_ms is not None:
            if event.error is None and _shows(readings, call.action.expects):
                self._end(key, Outcome.DONE, "read back", landed=not older, step=step)
            else:
                flight.read_until_ms = step.now_ms
        elif event.error == TOO_LATE and step.now_ms < flight.first_left_ms + call.action.timeout_ms:
            flight.left_ms = None
            flight.clear_ms = max(step.now_ms, flight.older_until_ms)
        elif event.error == NO_ANSWER:
            self._end(key, Outcome.UNKNOWN, NO_ANSWER, landed=False, step=step)
        else:
            self._on_word(key, flight, event.error, older, step)
        self.look(key[0], step)

    def _on_word(self, key: Key, flight: _Flight, error: str | None, older: bool, step: Step) -> None:
        """Take a device's result. An error may be a node's, of which the device never heard: it does not
        fence off what an earlier leader sent, which may have been done or may still be."""
        flight.clear_ms = flight.older_until_ms
        if error is None:
            landed = not older or self._cluster.fences(key[0])
            self._end(key, Outcome.DONE, "", landed=landed, step=step)
        else:
            outcome = Outcome.UNKNOWN if older else Outcome.FAILED
            self._end(key, outcome, error, landed=not older, step=step)

    def _end(self, key: Key, outcome: Outcome, detail: str, *, landed: bool, step: Step) -> None:
        """End a call with its outcome. One that was unknown before stays so, because the run was told so."""
        record = self._cluster.find(key[0])
        call = _find_open(record, key)
        if record is None or call is None:
            return
        hold = _hold_of(record, call.origin)
        if hold is not None and call.outcome is None:
            ended = replace(call, outcome=outcome, detail=detail)
            self._cluster.put(_with(record, call, ended))
            self._tell(key, ended, hold)
        if landed:
            self._land(key, step)

    def _tell(self, key: Key, call: Call, hold: Hold) -> None:
        home: GroupId | None = self._cluster.home(hold)
        fence: Fence = hold.fence or self._serving.fence
        if home is not None:
            origin = call.origin
            self._serving.send(home, CommandState(origin.run, origin.attempt, key[0], fence, _state(call)))

    def _land(self, key: Key, step: Step) -> None:
        """Close a call of which nothing can happen any more: the holder keeps its outcome, other calls are
        dropped."""
        flight = self._flights.pop(key, None)
        if flight is not None:
            self._forget_numbers(flight)
        record = self._cluster.find(key[0])
        call = _find_open(record, key)
        if record is None or call is None:
            return
        kept = None if _hold_of(record, key[1]) is None else replace(call, landed=True)
        self._cluster.put(_with(record, call, kept))
        self.locks.advance(key[0], step)

    def _forget_numbers(self, flight: _Flight) -> None:
        for number in flight.numbers:
            self._numbers.pop(number, None)
        flight.numbers.clear()

    # -- small questions ---------------------------------------------------------------------------------

    def _landing_ms(self, call: Call) -> float:
        """Returns how long after it was sent a call may have effects, by a clock that may be fast, where the
        clock that counted its timeout may have been slow."""
        return (call.action.timeout_ms + call.flight_ms) * (1.0 + 2 * self._serving.settings.drift)

    def _is_held(self, key: Key) -> bool:
        return _hold_of(self._cluster.find(key[0]), key[1]) is not None


def _find_open(record: DeviceRecord | None, key: Key) -> Call | None:
    call = None if record is None else _find(record, key[1])
    return None if call is None or call.landed else call


def _passed(call: Call, command: Command) -> Call:
    """Returns an earlier step of the same attempt as a call that nothing waits for."""
    was, now = call.origin, command.origin
    same = (was.run, was.attempt) == (now.run, now.attempt)
    if not same or was.step >= now.step or call.outcome is not None:
        return call
    return replace(call, outcome=Outcome.UNKNOWN, detail="the run went on")


def _in_maintenance(order: Standing) -> str:
    return f"in maintenance by {order.by}"


def _state(call: Call) -> StepState:
    return StepState(call.origin.step, call.outcome, call.detail)


def _find(record: DeviceRecord, origin: Origin) -> Call | None:
    for call in record.calls:
        if call.origin == origin:
            return call
    return None


def _with(record: DeviceRecord, old: Call, new: Call | None) -> DeviceRecord:
    calls = [new if call is old else call for call in record.calls]
    return replace(record, calls=tuple(filter(None, calls)))


def _hold_of(record: DeviceRecord | None, wanted: Origin | FenceAsked) -> Hold | None:
    """Returns the lock, if this attempt of this run has it."""
    hold = None if record is None else record.hold
    return hold if hold is not None and hold.run == wanted.run and hold.attempt == wanted.attempt else None


def _why_refused(record: DeviceRecord | None, command: Command) -> str:
    if record is None:
        return "unknown device"
    hold = _hold_of(record, command.origin)
    if hold is None:
        return "the run does not hold the lock"
    if _is_fenced_off(hold, command.fence):
        return "a newer leader of the routine has spoken"
    return ""


def _is_fenced_off(hold: Hold, fence: Fence) -> bool:
    return hold.fence is not None and fence < hold.fence


def _shows(readings: dict[str, Value], expects: dict[str, Value] | None) -> bool:
    return expects is not None and all(readings.get(name) == value for name, value in expects.items())

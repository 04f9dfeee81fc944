"""Virtual devices: they can be read and commanded, change by themselves, and can misbehave.

A device has named readings, each with a source (`sources.py`), and named commands. A command sets readings,
and they stay set. An event device keeps its events until they are acknowledged. The same class serves the
simulator and real processes: it knows time from a `Scheduler` only, and is told what has reached it.

Rules:
- a read is answered after the device's latency, a command after that and the time that acting takes;
- a device that fences refuses a command under an older grant than it has seen; one that comes again under the
  same grant is done once, or refused;
- an event is told again every REPEAT_MS until it is acknowledged, oldest first, one at a time. Tokens rise,
  as text too, and carry the life of the device: no acknowledgement means an event of another life;
- a device that pushes tells its readings when they have changed: at once where a person or its source changed
  them, LOOK_MS after a command or a subscription, so that the same does not follow an answer in a report;
- how it can misbehave is in `misbehaviour.py`;
- what it was to do while its process was stopped, it does not do (`ages.py`).

Everything that a device really did, and every event it had, is told to `record`, from the device's own view:
checkers compare it with what the nodes believe (docs/simulator.md). Its sources begin with its life.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from comesh.core.actions import Action, Origin
from comesh.core.draws import Draws
from comesh.core.ids import DeviceId
from comesh.core.stamps import RunId, Stamp
from comesh.core.streams import stream
from comesh.core.values import Value
from comesh.drivers.ages import MAX_PAUSE_MS
from comesh.drivers.interface import DeviceCommand, Readings, Report
from comesh.drivers.scheduler import Scheduler, Timer
from comesh.drivers.virtual.misbehaviour import FINE, Misbehaviour
from comesh.drivers.virtual.sources import Constant, Shown, Source, next_change_ms

EVENTS_KEPT: Final = 64
"""Maximum number of events that a device keeps until they are acknowledged; it drops further ones."""
REPEAT_MS: Final = 1000.0
LOOK_MS: Final = 200.0
"""Delay after a command or a subscription before a pushing device checks for changes to report."""
MAX_WAITING: Final = 256
"""Maximum number of requests that a device works on; further ones are ignored."""


class CommandSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The effect of one command, as the document defines it."""

    sets: str | dict[str, Value] | None = None
    """The reading that is set to the argument, or readings with their new values."""
    toggles: str | None = None
    """The reading that is inverted."""
    takes_ms: float = 0.0
    """Duration of the action: readings change at its end, and then the answer is sent."""


class DeviceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The behaviour of one device."""

    sources: dict[str, Source] = {}
    """Sources by the name of the reading."""
    commands: dict[str, CommandSpec] = {}
    latency_ms: float = 5.0
    """Time from a request at the device to its answer, besides the time that acting takes."""
    fences: bool = False
    """Refuses commands under an older grant than the newest it has seen, or under another's."""
    event: bool = False
    """The readings of this device are events."""
    presses_ms: tuple[float, float] | None = None
    """Range of times between events that an event device has by itself."""

    def __post_init__(self) -> None:
        for name, command in self.commands.items():
            targets = {command.sets} if isinstance(command.sets, str) else set(command.sets or ())
            targets |= set() if command.toggles is None else {command.toggles}
            unknown = sorted(targets - set(self.sources))
            if unknown:
                raise ValueError(f"command {name} sets {unknown[0]}, which is no reading of its device")


SWITCH: Final = DeviceSpec(
    sources={"on": Constant(False)},
    commands={
        "set": CommandSpec(sets="on", takes_ms=20.0),
        "on": CommandSpec(sets={"on": True}, takes_ms=20.0),
        "off": CommandSpec(sets={"on": False}, takes_ms=20.0),
    },
)
"""The behaviour of a device without a spec."""


class Request(msgspec.Struct, frozen=True, array_like=True):
    """A request to a device; a read has no command."""

    device: DeviceId
    call: int
    command: DeviceCommand | None = None


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """All readings of the device, or the reason why there are none."""

    device: DeviceId
    call: int
    readings: dict[str, Value] = {}
    error: str | None = None


class Acted(msgspec.Struct, frozen=True):
    """A device carried out or refused a command; readings are those after it."""

    at_ms: float
    device: DeviceId
    call: int
    command: DeviceCommand
    readings: dict[str, Value]
    refused: str | None = None
    began_ms: float = 0.0
    """When it reached the device."""

    @property
    def run(self) -> RunId | None:
        return None if self.command.origin is None else self.command.origin.run


class Pressed(msgspec.Struct, frozen=True):
    """An event device had an event, which it keeps, or (dropped) has no room for."""

    at_ms: float
    device: DeviceId
    token: str
    values: dict[str, Value]
    dropped: bool = False


Answer = Callable[[Reply], None]
Record = Callable[[Acted | Pressed], None]


def _always() -> bool:
    return True


class VirtualDevice:
    """One virtual device. life: distinguishes its tokens from those of another life."""

    __slots__ = (
        "_born_ms",
        "_done",
        "_events",
        "_grant",
        "_has_power",
        "_pushed",
        "_pushes",
        "_record",
        "_report",
        "_scheduler",
        "_seed",
        "_set_to",
        "_shown",
        "_timers",
        "_tokens",
        "_under_grant",
        "_waiting",
        "counters",
        "life",
        "misbehaviour",
        "name",
        "spec",
    )

    def __init__(
        self,
        name: DeviceId,
        spec: DeviceSpec,
        scheduler: Scheduler,
        *,
        seed: int,
        life: str = "",
        record: Record | None = None,
        pushes: bool = False,
        has_power: Callable[[], bool] = _always,
    ) -> None:
        self.name = name
        self.spec = spec
        self.life = life
        self.misbehaviour = FINE
        self.counters: Counter[str] = Counter()
        self._scheduler = scheduler
        self._seed = seed
        self._record = record
        self._pushes = pushes and not spec.event
        self._has_power = has_power
        self._born_ms = scheduler.now_ms()
        self._shown = {
            reading: Shown(source, stream(seed, f"device {name} {reading}"))
            for reading, source in spec.sources.items()
        }
        self._set_to: Readings = {}
        """Readings that commands and people have set."""
        self._grant: Stamp | None = None
        """The highest grant seen, if the device fences."""
        self._under_grant: tuple[Action, Origin | None] | None = None
        """The last command that came under that grant."""
        self._done: Stamp | None = None
        """The grant of the last command that it carried out."""
        self._events: deque[Pressed] = deque()
        self._tokens = 0
        self._report: Report | None = None
        self._pushed: Readings | None = None
        self._timers: dict[str, tuple[float, Timer]] = {}
        """The device's own timers by name, and when they are due."""
        self._waiting: set[Timer] = set()
        """Requests that the device is working on."""

    def open(self) -> None:
        if self.spec.event and self.spec.presses_ms is not None:
            self._press_later(self.spec.presses_ms, stream(self._seed, f"presses {self.name}"))

    def close(self) -> None:
        """Cancel everything that the device was about to do."""
        for timer in (*self._waiting, *(timer for _, timer in self._timers.values())):
            timer.cancel()
        self._timers.clear()
        self._waiting.clear()
        self._report = None

    # -- what it shows -----------------------------------------------------------------------------------

    def readings(self) -> Readings:
        """Returns the true readings, whatever the device answers."""
        now_ms = self._scheduler.now_ms() - self._born_ms
        return {
            reading: self._set_to[reading] if reading in self._set_to else shown.at(now_ms)
            for reading, shown in self._shown.items()
        }

    @property
    def read_ms(self) -> float:
        """Returns how long answering a read takes."""
        return self.spec.latency_ms + self.misbehaviour.slow_ms

    def read(self) -> Readings | None:
        """Returns the readings as the device answers them; None: it does not answer."""
        misbehaviour = self.misbehaviour
        if misbehaviour is FINE:
            return self.readings()
        return self.readings() | misbehaviour.wrong if misbehaviour.hears else None

    # -- requests ----------------------------------------------------------------------------------------

    def ask(self, request: Request, answer: Answer) -> None:
        """Handle a request that reached the device. It answers once, now or later; or never, if it is silent
        or fails meanwhile."""
        call, command = request.call, request.command
        if self.misbehaviour.gone:
            answer(Reply(self.name, call, error=f"{self.name} is gone"))
        elif command is None:
            self._after(self.read_ms, lambda: self._answer_read(call, answer))
        elif self.misbehaviour.late_ms:
            self._after(self.misbehaviour.late_ms, lambda: self._begin(call, command, None))
        else:
            self._begin(call, command, answer)

    def read_now(self) -> Readings | None:
        """Answer a read at once; None: that is not possible."""
        return None if self.read_ms > 0 else self.read()

    def command_now(self, call: int, command: DeviceCommand) -> Reply | None:
        """Answer a command at once; None: that is not possible, and nothing was done."""
        spec = self.spec.commands.get(command.action.command)
        takes_ms = self.spec.latency_ms + (0.0 if spec is None else spec.takes_ms)
        if self.misbehaviour is not FINE or takes_ms > 0:
            return None
        return self._act(call, command, self._fenced(command), self._scheduler.now_ms())

    def _answer_read(self, call: int, answer: Answer) -> None:
        readings = self.read()
        if readings is not None:
            answer(Reply(self.name, call, readings))

    def _begin(self, call: int, command: DeviceCommand, answer: Answer | None) -> None:
        """Begin a request. answer None: nobody waits for it any more."""
        if not self.misbehaviour.hears:
            return
        began_ms = self._scheduler.now_ms()
        refused = self._fenced(command)
        spec = self.spec.commands.get(command.action.command)
        takes_ms = 0.0 if spec is None or refused is not None else spec.takes_ms

        def act() -> None:
            reply = self._act(call, command, refused, began_ms)
            if reply is not None and answer is not None:
                answer(reply)

        self._after(self.read_ms + takes_ms, act)

    def _act(self, call: int, command: DeviceCommand, refused: str | None, began_ms: float) -> Reply | None:
        """Carry a command out, unless it was refused or done before, and answer; None: the device went down
        meanwhile. A command that was done before is not recorded again."""
        if not (self.misbehaviour.hears and self._has_power()):
            return None
        grant = _grant_of(command)
        if refused is None and self._is_outdated(grant):
            refused = f"fenced: grant {grant} is older than {self._grant}"
        if refused is not None or not self._has_done(grant):
            if refused is None:
                refused = self._carry_out(command.action)
            if refused is None:
                self._done = grant
            now_ms = self._scheduler.now_ms()
            self._keep(Acted(now_ms, self.name, call, command, self.readings(), refused, began_ms))
        self._look_later(LOOK_MS)
        if refused is not None:
            return Reply(self.name, call, error=refused)
        return Reply(self.name, call, readings=self.readings() | self.misbehaviour.wrong)

    def _fenced(self, command: DeviceCommand) -> str | None:
        """Remember the grant of a command; returns why it is refused, if it is."""
        grant = _grant_of(command)
        if not self.spec.fences or grant is None:
            return None
        if self._is_outdated(grant):
            return f"fenced: grant {grant} is older than {self._grant}"
        wanted = (command.action, command.origin)
        if grant == self._grant and wanted != self._under_grant:
            return f"fenced: grant {grant} is another command's"
        self._grant, self._under_grant = grant, wanted
        return None

    def _has_done(self, grant: Stamp | None) -> bool:
        """True if this command is a duplicate that was carried out before."""
        return self.spec.fences and grant is not None and grant == self._done

    def _is_outdated(self, grant: Stamp | None) -> bool:
        """True if a newer command has arrived, also since this one began."""
        return self.spec.fences and grant is not None and self._grant is not None and grant < self._grant

    def _carry_out(self, action: Action) -> str | None:
        """Carry out a command; returns why not, if it fails."""
        spec = self.spec.commands.get(action.command)
        if spec is None:
            return f"no command {action.command!r}"
        match spec.sets:
            case str() as reading:
                if action.argument is None:
                    return f"{action.command!r} needs an argument"
                self._set_to[reading] = action.argument
            case dict() as values:
                self._set_to.update(values)
            case None:
                pass
        if spec.toggles is not None:
            self._set_to[spec.toggles] = not self.readings()[spec.toggles]
        return None

    def _after(self, wait_ms: float, then: Callable[[], None]) -> None:
        if wait_ms <= 0:
            then()
            return
        if len(self._waiting) >= MAX_WAITING:
            self.counters["dropped: too many requests at once"] += 1
            return
        due_ms = self._scheduler.now_ms() + wait_ms

        def due() -> None:
            self._waiting.discard(timer)
            if self._scheduler.now_ms() - due_ms > MAX_PAUSE_MS:
                self.counters["dropped: the process was stopped"] += 1
            else:
                then()

        timer = self._scheduler.later(wait_ms, due)
        self._waiting.add(timer)

    # -- what people do to it ----------------------------------------------------------------------------

    def set_reading(self, reading: str, value: Value) -> None:
        """Set a reading, as when somebody opens a door. ValueError: it has no such reading."""
        self._check_readings([reading])
        self._set_to[reading] = value
        self._push()

    def set_misbehaviour(self, misbehaviour: Misbehaviour) -> None:
        """Replace the misbehaviour. ValueError: it has no such reading."""
        self._check_readings(misbehaviour.wrong)
        self.misbehaviour = FINE if misbehaviour == FINE else misbehaviour
        self._push()

    def misbehave(self, **changes: Any) -> None:
        """Add to the misbehaviour."""
        self.set_misbehaviour(msgspec.structs.replace(self.misbehaviour, **changes))

    def press(self, values: Readings) -> str | None:
        """Create an event; without values, it has the current readings. Returns its token; None: there was no
        room for it, or the device is gone. ValueError: it is no event device, or has no such reading."""
        if not self.spec.event:
            raise ValueError(f"{self.name} is no event device")
        self._check_readings(values)
        if self.misbehaviour.gone:
            return None
        self._tokens += 1
        token = f"{self.life}.{self._tokens:08d}" if self.life else f"{self._tokens:08d}"
        dropped = len(self._events) >= EVENTS_KEPT
        event = Pressed(self._scheduler.now_ms(), self.name, token, values or self.readings(), dropped)
        self._keep(event)
        if dropped:
            return None
        self._events.append(event)
        if "tell" not in self._timers:
            self._tell()
        return token

    def _check_readings(self, readings: Iterable[str]) -> None:
        for reading in readings:
            if reading not in self.spec.sources:
                known = ", ".join(self.spec.sources) or "none"
                raise ValueError(f"{self.name} has no reading {reading!r}; its readings: {known}")

    def _press_later(self, between_ms: tuple[float, float], draws: Draws) -> None:
        def press() -> None:
            self.press({})
            self._press_later(between_ms, draws)

        self._set_timer("press", draws.between(*between_ms), press)

    # -- what it tells by itself -------------------------------------------------------------------------

    def subscribe(self, report: Report) -> None:
        """Replace the subscriber."""
        self._report = report
        self._tell()
        self._look_later(LOOK_MS)

    def acknowledge(self, token: str) -> None:
        """Confirm events up to this one: they are not repeated."""
        if token.rpartition(".")[0] != self.life or not self.misbehaviour.hears:
            return
        before = self.next_event
        while self._events and self._events[0].token <= token:
            self._events.popleft()
        if before is not self.next_event:
            self._tell()

    @property
    def next_event(self) -> Pressed | None:
        """Returns the oldest event that is not acknowledged."""
        return self._events[0] if self._events else None

    def _tell(self) -> None:
        """Report the oldest event, and repeat it as long as there is one and a subscriber."""
        self._cancel_timer("tell")
        event = self.next_event
        if event is None or self._report is None:
            return
        self._set_timer("tell", REPEAT_MS, self._tell)
        if self.misbehaviour.hears and self._has_power():
            self._report(dict(event.values), event.token)

    def _look_later(self, after_ms: float) -> None:
        """Check for changes to report after that time, unless an earlier check is planned."""
        if self._report is None or not self._pushes:
            return
        due_ms, _ = self._timers.get("look", (math.inf, None))
        if due_ms > self._scheduler.now_ms() + after_ms:
            self._set_timer("look", after_ms, self._look)

    def _look(self) -> None:
        self._timers.pop("look", None)
        self._push()
        now_ms = self._scheduler.now_ms() - self._born_ms
        changes_ms = [next_change_ms(source, now_ms) for source in self.spec.sources.values()]
        coming_ms = [at_ms for at_ms in changes_ms if at_ms is not None]
        if coming_ms:
            self._look_later(min(coming_ms) - now_ms)

    def _push(self) -> None:
        if self._report is None or not self._pushes or not self._has_power():
            return
        readings = self.read()
        if readings is not None and readings != self._pushed:
            self._pushed = readings
            self._report(dict(readings), None)

    # -- time, and the record ----------------------------------------------------------------------------

    def _keep(self, entry: Acted | Pressed) -> None:
        if self._record is not None:
            self._record(entry)

    def _set_timer(self, name: str, after_ms: float, then: Callable[[], None]) -> None:
        self._cancel_timer(name)
        due_ms = self._scheduler.now_ms() + after_ms
        self._timers[name] = (due_ms, self._scheduler.later(after_ms, then))

    def _cancel_timer(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer[1].cancel()


def _grant_of(command: DeviceCommand) -> Stamp | None:
    return None if command.origin is None else command.origin.grant

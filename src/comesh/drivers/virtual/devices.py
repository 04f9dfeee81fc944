"""Virtual devices: things that can be read and commanded, with a will and faults of their own.

A device has named readings, each with a source (`sources.py`), and named commands. A command sets
readings, and they stay set. A device may be down (no answer), slow, or wrong (it answers something that
the type or range of a reading forbids), and its commands may land late. One that fences refuses what comes
under an older grant than it has seen; what comes under the same one is the same command again, which it does
once, or refused. An event device keeps its events until they are acknowledged (`device_events.py`).

Everything that a device really did, and every event it had, is in its log, from the device's own view:
checkers compare it with what the nodes believe (docs/simulator.md).
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

import msgspec

from comesh.core.actions import Action, Origin
from comesh.core.ids import DeviceId
from comesh.core.stamps import RunId, Stamp
from comesh.core.streams import stream
from comesh.core.values import Value
from comesh.drivers.interface import DeviceCommand
from comesh.drivers.virtual.sources import Constant, Shown, Source

EVENTS_KEPT: Final = 64
"""That a device keeps until they are acknowledged; further ones it drops."""


class CommandSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one command does, as a command of the document says it."""

    sets: str | dict[str, Value] | None = None
    """The reading that becomes the argument, or readings with their new values."""
    toggles: str | None = None
    """The reading that becomes its opposite."""
    takes_ms: float = 0.0
    """How long acting takes: readings change at its end, and then the answer leaves."""


class DeviceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one device behaves."""

    sources: dict[str, Source] = {}
    """By the name of the reading."""
    commands: dict[str, CommandSpec] = {}
    latency_ms: float = 5.0
    """From a request at the device to its answer, besides the time that acting takes."""
    fences: bool = False
    """It refuses commands under an older grant than the newest it has seen, or under another's."""
    event: bool = False
    """Its readings are events."""
    presses_ms: tuple[float, float] | None = None
    """An event device has events by itself, after times between these."""

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
"""What a device is of which nothing is said."""


class Request(msgspec.Struct, frozen=True, array_like=True):
    """What a device is sent; a read has no command."""

    device: DeviceId
    call: int
    command: DeviceCommand | None = None


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """All readings of the device, or why there are none."""

    device: DeviceId
    call: int
    readings: dict[str, Value] = {}
    error: str | None = None


class Acted(msgspec.Struct, frozen=True):
    """A device carried a command out, or refused it and says why; readings are what was so afterwards."""

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


class _Device:
    __slots__ = (
        "done",
        "down",
        "events",
        "extra_ms",
        "grant",
        "late_ms",
        "set_to",
        "shown",
        "spec",
        "tokens",
        "under_grant",
        "wrong",
    )

    def __init__(self, name: DeviceId, spec: DeviceSpec, seed: int) -> None:
        self.spec = spec
        self.down = False
        self.extra_ms = 0.0
        self.late_ms = 0.0
        self.grant: Stamp | None = None
        """The highest seen, if it fences."""
        self.under_grant: tuple[Action, Origin | None] | None = None
        """What came under it."""
        self.done: Stamp | None = None
        """The grant of the last command that it carried out."""
        self.events: deque[Pressed] = deque()
        self.tokens = 0
        self.wrong: dict[str, Value] = {}
        self.set_to: dict[str, Value] = {}
        self.shown = {
            reading: Shown(source, stream(seed, f"device {name} {reading}"))
            for reading, source in spec.sources.items()
        }

    def true_readings(self, now_ms: float) -> dict[str, Value]:
        return {
            reading: self.set_to[reading] if reading in self.set_to else shown.at(now_ms)
            for reading, shown in self.shown.items()
        }

    def fenced(self, command: DeviceCommand) -> str | None:
        """Remember the grant of a command that came; or say why it is refused."""
        grant = _grant_of(command)
        if not self.spec.fences or grant is None:
            return None
        if self.is_outdated(grant):
            return f"fenced: grant {grant} is older than {self.grant}"
        wanted = (command.action, command.origin)
        if grant == self.grant and wanted != self.under_grant:
            return f"fenced: grant {grant} is another command's"
        self.grant, self.under_grant = grant, wanted
        return None

    def has_done(self, grant: Stamp | None) -> bool:
        """It came twice, and was carried out the first time."""
        return self.spec.fences and grant is not None and grant == self.done

    def is_outdated(self, grant: Stamp | None) -> bool:
        """Something newer has come, also since this began."""
        return self.spec.fences and grant is not None and self.grant is not None and grant < self.grant

    def act(self, action: Action, now_ms: float) -> str | None:
        """Carry a command out; or say why not."""
        if action.command not in self.spec.commands:
            return f"no command {action.command!r}"
        spec = self.spec.commands[action.command]
        match spec.sets:
            case str() as reading:
                if action.argument is None:
                    return f"{action.command!r} needs an argument"
                self.set_to[reading] = action.argument
            case dict() as values:
                self.set_to.update(values)
            case None:
                pass
        if spec.toggles is not None:
            self.set_to[spec.toggles] = not self.true_readings(now_ms)[spec.toggles]
        return None


def _grant_of(command: DeviceCommand) -> Stamp | None:
    return None if command.origin is None else command.origin.grant


class VirtualDevices:
    """All devices of a world."""

    def __init__(
        self, names: Mapping[DeviceId, int], specs: Mapping[DeviceId, DeviceSpec], seed: int
    ) -> None:
        unknown = sorted(set(specs) - set(names))
        if unknown:
            raise ValueError(f"no device {unknown[0]} in this topology")
        self._devices = {name: _Device(name, specs.get(name, SWITCH), seed) for name in sorted(names)}
        self.log: list[Acted] = []
        self.events: list[Pressed] = []

    def reading_names(self, device: DeviceId) -> tuple[str, ...]:
        return tuple(self._devices[device].spec.sources)

    def spec(self, device: DeviceId) -> DeviceSpec:
        return self._devices[device].spec

    def event_devices(self) -> list[DeviceId]:
        return [name for name, device in self._devices.items() if device.spec.event]

    def readings(self, device: DeviceId, now_ms: float) -> dict[str, Value]:
        """What is really so, whatever the device answers."""
        return self._devices[device].true_readings(now_ms)

    def is_down(self, device: DeviceId) -> bool:
        return self._devices[device].down

    def set_down(self, device: DeviceId, down: bool) -> None:
        self._devices[device].down = down

    def set_slow(self, device: DeviceId, extra_ms: float) -> None:
        self._devices[device].extra_ms = extra_ms

    def set_late(self, device: DeviceId, late_ms: float) -> None:
        """From now on its commands reach it so much later."""
        self._devices[device].late_ms = late_ms

    def late_ms(self, device: DeviceId) -> float:
        return self._devices[device].late_ms

    def set_wrong(self, device: DeviceId, reading: str, value: Value | None) -> None:
        """Answer this value of a reading, whatever is so; None ends it."""
        wrong = self._devices[device].wrong
        if value is None:
            wrong.pop(reading, None)
        else:
            wrong[reading] = value

    def set_reading(self, device: DeviceId, reading: str, value: Value) -> None:
        """It is so from now on, as if somebody had done it by hand."""
        self._devices[device].set_to[reading] = value

    def read_ms(self, device: DeviceId) -> float:
        """How long the device takes to answer a read, if it does."""
        asked = self._devices[device]
        return asked.spec.latency_ms + asked.extra_ms

    def read(self, device: DeviceId, now_ms: float) -> dict[str, Value] | None:
        """What it answers; None: it is down."""
        asked = self._devices[device]
        if asked.down:
            return None
        shown = asked.true_readings(now_ms)
        return shown | asked.wrong if asked.wrong else shown

    def begin(self, name: DeviceId, command: DeviceCommand) -> tuple[float, str | None] | None:
        """A command reached the device: how long until it answers, and why it refuses, if it does.

        None: it does not hear it.
        """
        device = self._devices[name]
        if device.down:
            return None
        waits_ms = device.spec.latency_ms + device.extra_ms
        refused = device.fenced(command)
        if refused is not None:
            return waits_ms, refused
        spec = device.spec.commands.get(command.action.command)
        return waits_ms + (0.0 if spec is None else spec.takes_ms), None

    def act(
        self,
        name: DeviceId,
        call: int,
        command: DeviceCommand,
        now_ms: float,
        *,
        refused: str | None = None,
        began_ms: float = 0.0,
    ) -> Reply | None:
        """Carry a command out, unless it was refused or done before, and answer; None if it went down
        meanwhile. What was done before is not in the log again."""
        device = self._devices[name]
        if device.down:
            return None
        grant = _grant_of(command)
        if refused is None and device.is_outdated(grant):
            refused = f"fenced: grant {grant} is older than {device.grant}"
        if refused is None and device.has_done(grant):
            return Reply(name, call, readings=device.true_readings(now_ms) | device.wrong)
        if refused is None:
            refused = device.act(command.action, now_ms)
        if refused is None:
            device.done = grant
        readings = device.true_readings(now_ms)
        self.log.append(Acted(now_ms, name, call, command, readings, refused, began_ms))
        if refused is not None:
            return Reply(name, call, error=refused)
        return Reply(name, call, readings=readings | device.wrong)

    # Events

    def press(self, name: DeviceId, values: dict[str, Value], now_ms: float) -> bool:
        """An event device has an event, whether it is up or down; False: it had no room for it.

        Tokens rise, as text too.
        """
        device = self._devices[name]
        if not device.spec.event:
            raise ValueError(f"{name} is no event device")
        device.tokens += 1
        dropped = len(device.events) >= EVENTS_KEPT
        pressed = Pressed(now_ms, name, f"{device.tokens:08d}", values, dropped)
        self.events.append(pressed)
        if not dropped:
            device.events.append(pressed)
        return not dropped

    def next_event(self, name: DeviceId) -> Pressed | None:
        """The oldest event that is not acknowledged."""
        events = self._devices[name].events
        return events[0] if events else None

    def acknowledge(self, name: DeviceId, token: str) -> None:
        """Events up to this one need not be told again."""
        events = self._devices[name].events
        while events and events[0].token <= token:
            events.popleft()

"""Virtual devices: things that can be read and commanded, with a will and faults of their own.

A device has named readings, each with a source (`sources.py`), and named commands. A command sets
readings, and they stay set. A device may be down (no answer), slow, or wrong (it answers something that
the type or range of a reading forbids).

Everything that a device really did is in its log, from the device's own view: checkers compare it with
what the nodes believe (docs/simulator.md).
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from comesh.core.ids import DeviceId, NodeId
from comesh.core.values import Value
from comesh.sim.sources import Constant, Shown, Source
from comesh.sim.streams import stream


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
    """What a device is sent; a read has no command. Its encoded size is what the radio carries."""

    device: DeviceId
    call: int
    command: str | None = None
    argument: Value | None = None


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
    by: NodeId
    call: int
    command: str
    argument: Value | None
    readings: dict[str, Value]
    refused: str | None = None


class _Device:
    __slots__ = ("down", "extra_ms", "set_to", "shown", "spec", "wrong")

    def __init__(self, name: DeviceId, spec: DeviceSpec, seed: int) -> None:
        self.spec = spec
        self.down = False
        self.extra_ms = 0.0
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

    def act(self, command: str, argument: Value | None, now_ms: float) -> str | None:
        """Carry a command out; or say why not."""
        if command not in self.spec.commands:
            return f"no command {command!r}"
        match self.spec.commands[command].sets:
            case str() as reading:
                if argument is None:
                    return f"{command!r} needs an argument"
                self.set_to[reading] = argument
            case dict() as values:
                self.set_to.update(values)
            case None:
                pass
        toggled = self.spec.commands[command].toggles
        if toggled is not None:
            self.set_to[toggled] = not self.true_readings(now_ms)[toggled]
        return None


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

    def reading_names(self, device: DeviceId) -> tuple[str, ...]:
        return tuple(self._devices[device].spec.sources)

    def readings(self, device: DeviceId, now_ms: float) -> dict[str, Value]:
        """What is really so, whatever the device answers."""
        return self._devices[device].true_readings(now_ms)

    def is_down(self, device: DeviceId) -> bool:
        return self._devices[device].down

    def set_down(self, device: DeviceId, down: bool) -> None:
        self._devices[device].down = down

    def set_slow(self, device: DeviceId, extra_ms: float) -> None:
        self._devices[device].extra_ms = extra_ms

    def set_wrong(self, device: DeviceId, reading: str, value: Value | None) -> None:
        """Answer this value of a reading, whatever is so; None ends it."""
        wrong = self._devices[device].wrong
        if value is None:
            wrong.pop(reading, None)
        else:
            wrong[reading] = value

    def acting_ms(self, request: Request) -> float:
        """How long a healthy device acts on a request: what its driver knows, and waits for."""
        command = self._devices[request.device].spec.commands.get(request.command or "")
        return 0.0 if command is None else command.takes_ms

    def takes_ms(self, request: Request) -> float | None:
        """How long the device will work on a request; None: it does not hear it."""
        device = self._devices[request.device]
        if device.down:
            return None
        return device.spec.latency_ms + self.acting_ms(request) + device.extra_ms

    def answer(self, request: Request, by: NodeId, now_ms: float) -> Reply | None:
        """Act, and answer, at the end of that time; None if it went down meanwhile."""
        device = self._devices[request.device]
        if device.down:
            return None
        if request.command is not None:
            refused = device.act(request.command, request.argument, now_ms)
            self.log.append(
                Acted(
                    at_ms=now_ms,
                    device=request.device,
                    by=by,
                    call=request.call,
                    command=request.command,
                    argument=request.argument,
                    readings=device.true_readings(now_ms),
                    refused=refused,
                )
            )
            if refused is not None:
                return Reply(request.device, request.call, error=refused)
        return Reply(request.device, request.call, readings=device.true_readings(now_ms) | device.wrong)

"""Virtual devices: things that can be read and commanded, with a will and faults of their own.

What a device would show by itself is its *source*, a function of time and seed that does not depend on
who asks or how often. A command sets the reading, and it stays set. A device may be down (no answer),
slow, or wrong (it answers something that its type or range forbids).

Everything that a device really did is in its log, from the device's own view: checkers compare it with
what the nodes believe (protocol.md, section 9).
"""

from collections.abc import Mapping
from typing import assert_never

import msgspec

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, NodeId
from comesh.sim.streams import stream

Reading = bool | int | float | str


class Constant(msgspec.Struct, frozen=True, tag="constant", tag_field="kind", forbid_unknown_fields=True):
    value: Reading = False


class RandomWalk(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="random-walk",
    tag_field="kind",
    forbid_unknown_fields=True,
):
    """Every every_ms up or down by step, kept between low and high."""

    start: float = 20.0
    step: float = 0.1
    low: float = 10.0
    high: float = 30.0
    every_ms: float = 1000.0


class SquareWave(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="square-wave",
    tag_field="kind",
    forbid_unknown_fields=True,
):
    """first for half of period_ms, then second, and so on."""

    first: Reading = False
    second: Reading = True
    period_ms: float = 10_000.0


class Script(msgspec.Struct, frozen=True, tag="script", tag_field="kind", forbid_unknown_fields=True):
    """Each value from its time on, in order of time; before the first one, the first value."""

    points: tuple[tuple[float, Reading], ...]

    def __post_init__(self) -> None:
        times_ms = [at_ms for at_ms, _ in self.points]
        if not times_ms or times_ms != sorted(times_ms):
            raise ValueError("a script needs at least one point, in order of time")


Source = Constant | RandomWalk | SquareWave | Script


class DeviceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one device behaves."""

    source: Source = Constant()
    latency_ms: float = 5.0
    """From a request at the device to its answer."""
    command_ms: float = 20.0
    """How long acting takes: the reading changes at its end, and then the answer leaves."""


class Request(msgspec.Struct, frozen=True, array_like=True):
    """What a device is sent; a read has no command. Its encoded size is what the radio carries."""

    device: DeviceId
    call: int
    command: str | None = None
    argument: Reading | None = None


class Reply(msgspec.Struct, frozen=True, array_like=True):
    device: DeviceId
    call: int
    reading: Reading | None = None
    error: str | None = None


class Acted(msgspec.Struct, frozen=True):
    """A device carried a command out, or refused it and says why."""

    at_ms: float
    device: DeviceId
    by: NodeId
    call: int
    command: str
    argument: Reading | None
    reading: Reading
    refused: str | None = None


class _Device:
    __slots__ = ("_draws", "_steps", "_walked", "down", "extra_ms", "set_to", "spec", "wrong")

    def __init__(self, spec: DeviceSpec, draws: Draws) -> None:
        self.spec = spec
        self.down = False
        self.extra_ms = 0.0
        self.wrong: Reading | None = None
        self.set_to: Reading | None = None
        self._draws = draws
        self._steps = 0
        self._walked = spec.source.start if isinstance(spec.source, RandomWalk) else 0.0

    def true_reading(self, now_ms: float) -> Reading:
        if self.set_to is not None:
            return self.set_to
        source = self.spec.source
        match source:
            case Constant():
                return source.value
            case SquareWave():
                return source.first if now_ms % source.period_ms * 2 < source.period_ms else source.second
            case Script():
                past = [value for at_ms, value in source.points if at_ms <= now_ms]
                return past[-1] if past else source.points[0][1]
            case RandomWalk():
                return self._walk(source, int(now_ms // source.every_ms))
            case _:
                assert_never(source)

    def _walk(self, walk: RandomWalk, steps: int) -> float:
        while self._steps < steps:
            self._steps += 1
            moved = self._walked + (walk.step if self._draws.chance(0.5) else -walk.step)
            self._walked = min(max(moved, walk.low), walk.high)
        return self._walked


class VirtualDevices:
    """All devices of a world."""

    def __init__(
        self, names: Mapping[DeviceId, int], specs: Mapping[DeviceId, DeviceSpec], seed: int
    ) -> None:
        unknown = sorted(set(specs) - set(names))
        if unknown:
            raise ValueError(f"no device {unknown[0]} in this topology")
        self._devices = {
            name: _Device(specs.get(name, DeviceSpec()), stream(seed, f"device {name}"))
            for name in sorted(names)
        }
        self.log: list[Acted] = []

    def reading(self, device: DeviceId, now_ms: float) -> Reading:
        """What is really so, whatever the device answers."""
        return self._devices[device].true_reading(now_ms)

    def set_down(self, device: DeviceId, down: bool) -> None:
        self._devices[device].down = down

    def set_slow(self, device: DeviceId, extra_ms: float) -> None:
        self._devices[device].extra_ms = extra_ms

    def set_wrong(self, device: DeviceId, value: Reading | None) -> None:
        """Answer this instead of the reading; None ends it."""
        self._devices[device].wrong = value

    def takes_ms(self, request: Request) -> float | None:
        """How long the device will work on a request; None: it does not hear it."""
        device = self._devices[request.device]
        if device.down:
            return None
        acting_ms = 0.0 if request.command is None else device.spec.command_ms
        return device.spec.latency_ms + acting_ms + device.extra_ms

    def answer(self, request: Request, by: NodeId, now_ms: float) -> Reply | None:
        """Act, and answer, at the end of that time; None if it went down meanwhile."""
        device = self._devices[request.device]
        if device.down:
            return None
        if request.command is not None:
            before = device.true_reading(now_ms)
            after = _after(request, before)
            refused = f"no command {request.command!r}" if after is None else None
            if after is not None:
                device.set_to = after
            self.log.append(
                Acted(
                    at_ms=now_ms,
                    device=request.device,
                    by=by,
                    call=request.call,
                    command=request.command,
                    argument=request.argument,
                    reading=before if after is None else after,
                    refused=refused,
                )
            )
            if refused is not None:
                return Reply(request.device, request.call, error=refused)
        shown = device.true_reading(now_ms) if device.wrong is None else device.wrong
        return Reply(request.device, request.call, reading=shown)


def _after(request: Request, before: Reading) -> Reading | None:
    """The reading after a command; None where the device has no such command."""
    match request.command:
        case "set":
            return request.argument
        case "on":
            return True
        case "off":
            return False
        case "toggle":
            return not before
        case _:
            return None

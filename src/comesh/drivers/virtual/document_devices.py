"""Makes virtual devices from a deployment document: every reading gets a source that fits its type.

Commands do what the document says of them. Where it does not say what a command sets, the command changes
no reading; it takes its time and is in the devices' log. Event devices have events by themselves, now and
then. Devices of the virtual driver, and those that a node hosts, fence by themselves.
"""

import math
from typing import assert_never

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId
from comesh.core.streams import stream
from comesh.deployment.model import Command, Deployment, Device
from comesh.deployment.values import INT_MAX, INT_MIN, Kind, ValueType
from comesh.drivers.virtual.devices import CommandSpec, DeviceSpec
from comesh.drivers.virtual.sources import Constant, RandomWalk, Source, SquareWave

_SHORTEST_WAVE_MS, _LONGEST_WAVE_MS = 10_000.0, 90_000.0
_USUAL_RANGE = (0.0, 100.0)
"""Range of a number for which the document gives none."""
_WALK_STEPS = 200
"""A numeric reading crosses its range in this many steps."""


_BETWEEN_EVENTS_MS = (20_000.0, 120_000.0)


def device_specs(deployment: Deployment, seed: int) -> dict[DeviceId, DeviceSpec]:
    """Returns the behaviour of each device of the document."""
    return {
        device_id: device_spec(device_id, device, seed) for device_id, device in deployment.devices.items()
    }


def device_spec(device_id: DeviceId, device: Device, seed: int) -> DeviceSpec:
    return DeviceSpec(
        sources={
            reading: _source(type_, stream(seed, f"behaviour {device_id} {reading}"))
            for reading, type_ in device.readings.items()
        },
        commands={name: _command(command) for name, command in device.commands.items()},
        fences=device.driver.type == "virtual" or device.on is not None,
        event=device.event,
        presses_ms=_BETWEEN_EVENTS_MS if device.event else None,
    )


def _command(command: Command) -> CommandSpec:
    return CommandSpec(sets=command.sets, toggles=command.toggles, takes_ms=float(command.takes_ms))


def _source(type_: ValueType, draws: Draws) -> Source:
    match type_.kind:
        case Kind.CHOICE:
            words = type_.values or ("",)
            return SquareWave(first=words[0], second=words[-1], period_ms=_wave_ms(draws))
        case Kind.BOOL:
            return SquareWave(period_ms=_wave_ms(draws))
        case Kind.INT:
            return _whole_walk(*(type_.range or _USUAL_RANGE), draws)
        case Kind.FLOAT:
            return _walk(*(type_.range or _USUAL_RANGE), draws)
        case Kind.TEXT:
            return Constant("")
        case _:
            assert_never(type_.kind)


def _wave_ms(draws: Draws) -> float:
    return draws.between(_SHORTEST_WAVE_MS, _LONGEST_WAVE_MS)


def _walk(low: float, high: float, draws: Draws) -> RandomWalk:
    share = _first_share(draws)
    start = min(max(low * (1 - share) + high * share, low), high)
    return RandomWalk(start=start, step=high / _WALK_STEPS - low / _WALK_STEPS, low=low, high=high)


def _whole_walk(lowest: float, highest: float, draws: Draws) -> RandomWalk:
    """Returns a walk over the whole numbers in the range, within the limits of a reading."""
    low, high = max(math.ceil(lowest), INT_MIN), min(math.floor(highest), INT_MAX)
    start = low + (high - low) * round(_first_share(draws) * _WALK_STEPS) // _WALK_STEPS
    return RandomWalk(start=start, step=max(1, (high - low) // _WALK_STEPS), low=low, high=high)


def _first_share(draws: Draws) -> float:
    """Returns where in its range a walk begins, as a fraction."""
    return draws.between(0.3, 0.6)

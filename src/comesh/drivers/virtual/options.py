"""Options of a virtual device in a document: `driver: {type: virtual, latency: 5ms}`.

- `latency`: from a request at the device to its answer, a duration; left out: none
- `push`: whether it tells changed readings by itself; left out: it does
- `at`: "host:port" of the `comesh virtual` process that it is part of; left out: see `comesh.runtime.devices`

`still`: nothing changes by itself. Readings stay as they are until somebody or a command sets them, and
nothing is pressed.
"""

from typing import Final

import msgspec

from comesh.core.ids import DeviceId
from comesh.deployment.model import Device
from comesh.deployment.problems import WrongError
from comesh.deployment.units import parse_duration_ms
from comesh.drivers.interface import DeviceFailedError
from comesh.drivers.virtual.devices import DeviceSpec
from comesh.drivers.virtual.document_devices import device_spec
from comesh.drivers.virtual.sources import Constant, RandomWalk, Script, Source, SquareWave

_OPTIONS: Final = ("at", "latency", "push")


def spec_of(device_id: DeviceId, device: Device, *, seed: int, still: bool) -> DeviceSpec:
    """Returns the behaviour of a device. DeviceFailedError: an option is wrong."""
    options = options_of(device)
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise DeviceFailedError(
            f"{device_id}: a virtual device has no option {unknown[0]!r}; there are {', '.join(_OPTIONS)}"
        )
    try:
        latency_ms = float(parse_duration_ms(options.get("latency", 0)))
    except WrongError as wrong:
        raise DeviceFailedError(f"{device_id}: latency: {wrong}") from None
    spec = device_spec(device_id, device, seed)
    return msgspec.structs.replace(
        spec,
        latency_ms=latency_ms,
        presses_ms=None if still else spec.presses_ms,
        sources={name: _still(source) for name, source in spec.sources.items()} if still else spec.sources,
    )


def pushes(device: Device) -> bool:
    return options_of(device).get("push", True) is not False


def address_of(device: Device) -> str | None:
    """Returns the address of the device's process, if the document gives one."""
    at = options_of(device).get("at")
    return None if at is None else str(at)


def options_of(device: Device) -> dict[str, object]:
    """Returns the driver's options; a device that replaces one of another driver has none."""
    return device.driver.options if device.driver.type == "virtual" else {}


def _still(source: Source) -> Constant:
    match source:
        case Constant():
            return source
        case RandomWalk():
            return Constant(source.start)
        case SquareWave():
            return Constant(source.first)
        case Script():
            return Constant(source.points[0][1])

"""What a person in the room could do to a virtual device: have it read something, press it.

It is done where the device is: in this node, or in the process that this node reaches virtual devices in. Of
a device that is part of another node only that is said.
"""

from typing import TYPE_CHECKING, Any

from comesh.core.ids import DeviceId, NodeId
from comesh.core.values import Value
from comesh.deployment.model import Deployment, Device
from comesh.deployment.problems import did_you_mean
from comesh.deployment.values import Kind, ValueType
from comesh.drivers.registry import outside_address
from comesh.drivers.virtual.admin import DevicesClient, DevicesClientError
from comesh.queries.answers import Touched
from comesh.runtime.devices.homes import nearest_node

if TYPE_CHECKING:
    from comesh.runtime.assembly import Assembly

WORDS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


async def touch(assembly: "Assembly", asked: dict[str, Any]) -> object:
    """Touched, or an error in words."""
    device_id = DeviceId(asked["device"])
    pressed = "press" in asked
    given = asked["press"] if pressed else asked["readings"]
    try:
        device = _virtual(assembly.deployment, device_id)
        values = {str(name): _value(device_id, device, str(name), text) for name, text in given.items()}
        return await _touch(assembly, device_id, device, values, pressed=pressed)
    except (ValueError, DevicesClientError) as wrong:
        return {"error": str(wrong)}


async def _touch(
    assembly: "Assembly", device_id: DeviceId, device: Device, values: dict[str, Value], *, pressed: bool
) -> Touched:
    virtual = assembly.devices.virtual(device_id)
    at = outside_address(device, assembly.options.devices_at)
    kept: str | None = ""
    if virtual is not None:
        if pressed:
            kept = virtual.press(values)
        for reading, value in () if pressed else values.items():
            virtual.set_reading(reading, value)
    elif at is not None:
        async with DevicesClient(at) as client:
            if pressed:
                kept = await client.press(device_id, values)
            for reading, value in () if pressed else values.items():
                await client.set_reading(device_id, reading, value)
    else:
        place = assembly.deployment.place_of(device_id)
        home = NodeId(device.on) if device.on is not None else nearest_node(assembly.deployment, place)
        return Touched(device=device_id, home=home)
    if kept is None:
        raise ValueError(f"{device_id} dropped it: it has too many events that nobody took, or is gone")
    return Touched(device=device_id, readings=values)


def _virtual(deployment: Deployment, device_id: DeviceId) -> Device:
    device = deployment.devices.get(device_id)
    if device is None:
        hint = did_you_mean(device_id, deployment.devices)
        raise ValueError(f"there is no device {device_id!r}" + (f"; {hint}" if hint else ""))
    if device.driver.type != "virtual":
        raise ValueError(f"{device_id} is not virtual: its driver is {device.driver.type}")
    return device


def _value(device_id: DeviceId, device: Device, reading: str, text: object) -> Value:
    kind = device.readings.get(reading)
    if kind is None:
        hint = did_you_mean(reading, device.readings)
        raise ValueError(f"{device_id} has no reading {reading!r}" + (f"; {hint}" if hint else ""))
    value = kind.fit(parse_value(kind, str(text)))
    if value is None:
        raise ValueError(f"{device_id}.{reading} is {kind.describe()}, not {str(text)!r}")
    return value


def parse_value(kind: ValueType, text: str) -> Value | None:
    """What a person wrote; None: it is not of that kind."""
    try:
        match kind.kind:
            case Kind.BOOL:
                return WORDS.get(text.lower())
            case Kind.INT:
                return int(text)
            case Kind.FLOAT:
                return float(text)
            case _:
                return text
    except ValueError:
        return None

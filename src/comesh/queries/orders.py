"""Orders: what people have a mesh do. Each goes to the group that looks after the device or routine, wherever
it is led, and is answered once it is committed there; a pause of everything goes to every group.

What is not answered in time may still be carried out: who asks again with the same id is told the same. What
touches virtual devices is no order to a group: it is done where the device is.
"""

from collections.abc import Mapping
from typing import Final

from comesh.core.events import FireAsked
from comesh.core.ids import DeviceId
from comesh.core.values import Value
from comesh.core.work_messages import BreakLock, Maintain, Pause, Restore, Resume
from comesh.core.work_messages import SetDevice as SetWish
from comesh.deployment.model import Deployment, Device
from comesh.deployment.problems import shorten
from comesh.deployment.program import step_by_hand
from comesh.deployment.values import Kind, ValueType
from comesh.drivers.registry import outside_address
from comesh.drivers.virtual.admin import DevicesClient, DevicesClientError
from comesh.queries.answers import Disturbed, Done, MalformedError, RefusedError, RoutineFired, Touched
from comesh.queries.mesh import Asker, Mesh, carries_out, misnamed, unknown
from comesh.queries.requests import (
    DisturbDevice,
    FireRoutine,
    MaintainDevice,
    PauseAll,
    PauseRoutine,
    PressDevice,
    ResumeAll,
    ResumeRoutine,
    SetDevice,
    TouchDevice,
    UnlockDevice,
)

WORDS: Final = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


# -- routines ------------------------------------------------------------------------------------------------


@carries_out(FireRoutine)
async def fire_routine(order: FireRoutine, mesh: Mesh, asker: Asker) -> RoutineFired:
    group, request = mesh.group_of("routine", order.routine), order.request or ""
    event = FireAsked(routine=order.routine, request=request, by=asker.by)
    try:
        told = await mesh.command(event, of=f"{order.routine} was not fired: {group} did not answer")
    except RefusedError as wrong:
        raise RefusedError(f"{order.routine} was not fired: {wrong}") from None
    return RoutineFired(routine=order.routine, request=request, run=str(told.run))


@carries_out(PauseRoutine)
async def pause_routine(order: PauseRoutine, mesh: Mesh, asker: Asker) -> Done:
    group = mesh.group_of("routine", order.routine)
    return await mesh.order(group, Pause(order.routine), order.request or "", asker)


@carries_out(ResumeRoutine)
async def resume_routine(order: ResumeRoutine, mesh: Mesh, asker: Asker) -> Done:
    group = mesh.group_of("routine", order.routine)
    return await mesh.order(group, Resume(order.routine), order.request or "", asker)


@carries_out(PauseAll)
async def pause_all(order: PauseAll, mesh: Mesh, asker: Asker) -> Done:
    return await mesh.order_all(Pause(None), order.request or "", asker)


@carries_out(ResumeAll)
async def resume_all(order: ResumeAll, mesh: Mesh, asker: Asker) -> Done:
    return await mesh.order_all(Resume(None), order.request or "", asker)


# -- devices -------------------------------------------------------------------------------------------------


@carries_out(MaintainDevice)
async def maintain_device(order: MaintainDevice, mesh: Mesh, asker: Asker) -> Done:
    group = mesh.group_of("device", order.device)
    wish = Maintain(order.device) if order.on else Restore(order.device)
    return await mesh.order(group, wish, order.request or "", asker)


@carries_out(SetDevice)
async def set_device(order: SetDevice, mesh: Mesh, asker: Asker) -> Done:
    group = mesh.group_of("device", order.device)
    deployment = mesh.view.deployment
    try:
        argument = argument_of(deployment, order.device, order.command, order.argument)
        step = step_by_hand(deployment, order.device, order.command, argument)
    except ValueError as wrong:
        raise MalformedError(str(wrong)) from None
    wish = SetWish(order.device, step.action)
    return await mesh.order(group, wish, order.request or "", asker)


@carries_out(UnlockDevice)
async def unlock_device(order: UnlockDevice, mesh: Mesh, asker: Asker) -> Done:
    group = mesh.group_of("device", order.device)
    return await mesh.order(group, BreakLock(order.device, order.run), order.request or "", asker)


def argument_of(
    deployment: Deployment, device: DeviceId, command: str, argument: Value | None
) -> Value | None:
    """What a person wrote, as the command takes it: `on` may be a word or a truth."""
    known = deployment.devices[device].commands.get(command)
    if known is None or known.argument is None or not isinstance(argument, str):
        return argument
    meant = parse_value(known.argument, argument)
    return argument if meant is None else meant


# -- virtual devices -----------------------------------------------------------------------------------------


@carries_out(TouchDevice)
async def touch_device(order: TouchDevice, mesh: Mesh, asker: Asker) -> Touched:
    device, values = _virtual(order.device, order.readings, mesh)
    at = outside_address(device, mesh.view.devices_at)
    driver = mesh.view.virtual(order.device)
    if driver is not None:
        for reading, value in values.items():
            driver.set_reading(reading, value)
    elif at is not None:
        try:
            async with DevicesClient(at) as client:
                for reading, value in values.items():
                    await client.set_reading(order.device, reading, value)
        except DevicesClientError as wrong:
            raise RefusedError(str(wrong)) from None
    else:
        return Touched(device=order.device, home=mesh.view.home_of(order.device))
    return Touched(device=order.device, readings=values)


@carries_out(PressDevice)
async def press_device(order: PressDevice, mesh: Mesh, asker: Asker) -> Touched:
    device, values = _virtual(order.device, order.readings, mesh)
    at = outside_address(device, mesh.view.devices_at)
    driver = mesh.view.virtual(order.device)
    if driver is not None:
        token = driver.press(values)
    elif at is not None:
        try:
            async with DevicesClient(at) as client:
                token = await client.press(order.device, values)
        except DevicesClientError as wrong:
            raise RefusedError(str(wrong)) from None
    else:
        return Touched(device=order.device, home=mesh.view.home_of(order.device))
    if token is None:
        raise RefusedError(f"{order.device} dropped it: it has too many events that nobody took, or is gone")
    return Touched(device=order.device, readings=values)


@carries_out(DisturbDevice)
async def disturb_device(order: DisturbDevice, mesh: Mesh, asker: Asker) -> Disturbed:
    try:
        mesh.view.disturb(order.device, order.be, order.ms)
    except (KeyError, ValueError) as wrong:
        raise RefusedError(str(wrong)) from None
    return Disturbed(device=order.device, be=order.be)


def _virtual(device_id: DeviceId, readings: Mapping[str, str], mesh: Mesh) -> tuple[Device, dict[str, Value]]:
    """A virtual device of the document, and the values that are meant for it."""
    devices = mesh.view.deployment.devices
    device = devices.get(device_id)
    if device is None:
        raise unknown("device", device_id, devices)
    if device.driver.type != "virtual":
        raise RefusedError(f"{device_id} is not virtual: its driver is {device.driver.type}")
    return device, {name: _value(device_id, device, name, text) for name, text in readings.items()}


def _value(device_id: DeviceId, device: Device, reading: str, text: str) -> Value:
    kind = device.readings.get(reading)
    if kind is None:
        raise misnamed(f"{device_id} has no reading '{shorten(reading)}'", reading, device.readings)
    value = kind.fit(parse_value(kind, text))
    if value is None:
        raise RefusedError(f"{device_id}.{reading} is {kind.describe()}, not {text!r}")
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

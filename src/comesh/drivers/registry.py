"""Makes the driver for a device of a document: one row per technology.

    driver = make_driver(DeviceId("lamp_1"), deployment.devices["lamp_1"], surroundings)

A technology without a row is a DriverMissingError; `missing_drivers` lists them before anything starts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from comesh.core.ids import DeviceId
from comesh.deployment.model import Deployment, Device
from comesh.drivers.interface import DeviceFailedError, Driver
from comesh.drivers.scheduler import Scheduler
from comesh.drivers.virtual.devices import Record
from comesh.drivers.virtual.hosted import VirtualDriver
from comesh.drivers.virtual.link import Links
from comesh.drivers.virtual.options import address_of, pushes, spec_of
from comesh.drivers.virtual.remote import RemoteVirtualDriver


class DriverMissingError(DeviceFailedError):
    """There is no driver of that type."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What the drivers of one process share."""

    scheduler: Scheduler
    links: Links
    record: Record | None = None
    """Called with everything that virtual devices of this process do."""
    devices_at: str | None = None
    """host:port of the `comesh virtual` process that runs the virtual devices that are part of no node."""
    push: bool = True
    """The `push` setting of the document."""
    seed: int = 0
    still: bool = False
    """Virtual devices change nothing by themselves."""
    stand_in: bool = False
    """Virtual devices replace devices whose driver is missing."""


Maker = Callable[[DeviceId, Device, Surroundings], Driver]


def make_driver(device_id: DeviceId, device: Device, surroundings: Surroundings) -> Driver:
    """Make the driver of a device. DeviceFailedError says why it cannot be made."""
    maker = DRIVERS.get(driver_type(device, surroundings.stand_in))
    if maker is None:
        raise DriverMissingError(f"{device_id}: driver {device.driver.type} is not built yet")
    return maker(device_id, device, surroundings)


def driver_type(device: Device, stand_in: bool) -> str:
    """Returns the type of driver that reaches the device."""
    return "virtual" if stand_in and device.driver.type not in DRIVERS else device.driver.type


def missing_drivers(deployment: Deployment) -> dict[str, list[DeviceId]]:
    """Returns the types that have no driver, with the devices that need them."""
    missing: dict[str, list[DeviceId]] = {}
    for device_id, device in deployment.devices.items():
        if device.driver.type not in DRIVERS:
            missing.setdefault(device.driver.type, []).append(device_id)
    return missing


def outside_address(device: Device, devices_at: str | None) -> str | None:
    """Returns host:port of the process that runs this virtual device; None: it is part of a node."""
    at = address_of(device)
    return at if at is not None or device.on is not None else devices_at


def _virtual(device_id: DeviceId, device: Device, surroundings: Surroundings) -> Driver:
    at = outside_address(device, surroundings.devices_at)
    if at is not None:
        link = surroundings.links.get(at)
        return RemoteVirtualDriver(device_id, link, surroundings.scheduler)
    return VirtualDriver(
        device_id,
        spec_of(device_id, device, seed=surroundings.seed, still=surroundings.still),
        surroundings.scheduler,
        seed=surroundings.seed,
        record=surroundings.record,
        pushes=surroundings.push and pushes(device),
    )


DRIVERS: Mapping[str, Maker] = {"virtual": _virtual}

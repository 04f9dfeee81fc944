"""The names that clauses can use: the readings of all devices, whether each is up, the time, the sun."""

import re
from collections.abc import Mapping

from comesh.deployment.values import ValueType

ReadingName = tuple[str, str]
Readings = Mapping[str, Mapping[str, ValueType | None]]
"""Device, then reading. None: there is such a reading, but its type could not be read."""

CLOCK_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

NOW: dict[str, ValueType] = {
    "time": ValueType(type="text"),
    "hour": ValueType(type="int", range=(0, 23)),
    "minute": ValueType(type="int", range=(0, 59)),
    "weekday": ValueType(values=WEEKDAYS),
    "day": ValueType(type="int", range=(1, 31)),
    "month": ValueType(type="int", range=(1, 12)),
}
"""Local time, under the name `now`; `now.time` is a text such as 22:05, which sorts as times do."""
CLOCK: ReadingName = ("now", "time")
SUN: dict[str, ValueType] = {"up": ValueType(type="bool")}
"""Under the name `sun`, where the settings have a location."""
UP = ValueType(type="bool")
"""Every device has `device.up`."""


def vocabulary(devices: Readings, *, sun: bool) -> Readings:
    """The readings of these devices, and what is there without a device."""
    known: dict[str, Mapping[str, ValueType | None]] = {
        device: {**readings, "up": UP} for device, readings in devices.items()
    }
    known["now"] = NOW
    if sun:
        known["sun"] = SUN
    return known

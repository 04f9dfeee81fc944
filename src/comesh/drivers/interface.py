"""What a driver is: one device, as this node reaches it.

    driver = make_driver(...)
    await driver.open()
    readings = await driver.read()
    readings = await driver.command(DeviceCommand(command="set", argument=True))    # those after it
    driver.subscribe(report)          # from now on report(readings, token) whenever the device speaks
    await driver.close()

Rules: whatever goes wrong is a DeviceFailedError that says what and what to do, nothing else. `read` and
`command` may be cancelled at any time: who asked does not wait for longer. A command that was cancelled may
still be done; how long after, at most, is `flight_ms` of the document. Nothing is retried here: the protocol
does that.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from comesh.core.stamps import RunId, Stamp
from comesh.core.values import Value

Readings = dict[str, Value]
Report = Callable[[Readings, str | None], None]
"""What a device says by itself: readings; and the token of an event, told until it is acknowledged."""


class DeviceFailedError(Exception):
    """The device did not do it, or did not answer; str() says why, for people."""


class DeviceCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What a device is to do. run, attempt, step: for whom, in its log. grant: a device that can fence
    refuses what comes under a lower one than it has seen."""

    command: str
    argument: Value | None = None
    timeout_ms: float = 2000.0
    run: RunId | None = None
    attempt: int = 0
    step: int = 0
    grant: Stamp | None = None


class Driver(Protocol):
    async def open(self) -> None:
        """Get ready to be asked; not reaching the device is no error yet."""
        ...

    async def close(self) -> None: ...

    async def read(self) -> Readings:
        """All readings by name."""
        ...

    async def command(self, asked: DeviceCommand) -> Readings: ...

    def subscribe(self, report: Report) -> None:
        """Replaces an earlier subscription. A driver that cannot push never reports."""
        ...

    def acknowledge(self, token: str) -> None:
        """The event with this token, and those before it, need not be told again."""
        ...

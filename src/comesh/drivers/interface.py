"""What a driver is: one device, as this node reaches it.

    driver = make_driver(...)
    await driver.open()
    readings = await driver.read()
    readings = await driver.command(DeviceCommand(command="set", argument=True))    # those after it
    driver.subscribe(report)          # from now on report(readings, token) whenever the device speaks
    await driver.close()

Rules:
- whatever goes wrong is a DeviceFailedError that says what and what to do, nothing else. Of a command it says
  for certain that it was not done and will not be. Who cannot know that raises a NoAnswerError;
- `read` and `command` may be cancelled at any time: who asked does not wait for longer. A command that was
  cancelled may still be done; how long after, at most, is `flight_ms` of the document;
- nothing is retried here: the protocol does that;
- `subscribe` and `acknowledge` never block and never fail; reports come on the event loop.
"""

from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

import msgspec

from comesh.core.ids import NodeId
from comesh.core.stamps import RunId, Stamp
from comesh.core.values import Value

READ_TIMEOUT_MS: Final = 2000.0
"""A read that takes longer has no answer."""

Readings = dict[str, Value]
Report = Callable[[Readings, str | None], None]
"""What a device says by itself: readings; and the token of an event, told until it is acknowledged."""


Ended = Callable[[Readings | Exception], None]
"""How a call ended, said once: all readings, or what `read` or `command` would have raised."""


class DeviceFailedError(Exception):
    """The device did not do it, or did not answer; str() says why, for people."""


class NoAnswerError(DeviceFailedError):
    """The device did not answer: whether it did it, or still will, is not known."""


class TooLateError(DeviceFailedError):
    """The command was not begun, because it came too late; the same may be asked again."""


class DeviceCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What a device is to do. run, attempt, step, by, sent_ms: for whom, by which node and when by its clock,
    in the device's log. grant: a device that can fence refuses what comes under a lower one than it has seen.
    """

    command: str
    argument: Value | None = None
    timeout_ms: float = 2000.0
    run: RunId | None = None
    attempt: int = 0
    step: int = 0
    grant: Stamp | None = None
    by: NodeId | None = None
    sent_ms: float | None = None


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


@runtime_checkable
class PromptDriver(Protocol):
    """A driver that can often answer at once, so that nobody waits: without a task, in microseconds.

    Both return None where it cannot, and then nothing was done: `read` or `command` is the way.
    """

    def read_now(self) -> Readings | None: ...

    def command_now(self, asked: DeviceCommand) -> Readings | None: ...


@runtime_checkable
class CallingDriver(Protocol):
    """A driver that calls back when it knows, so that no task waits for it."""

    def begin(self, asked: DeviceCommand | None, timeout_ms: float, ended: Ended) -> bool:
        """A command, or a read; it ends within timeout_ms, whatever happens. False: nothing was done, and
        `read` or `command` is the way."""
        ...


def no_answer(device: str, timeout_ms: float) -> NoAnswerError:
    return NoAnswerError(f"{device} did not answer within {timeout_ms:.0f} ms; is it on?")

"""The driver interface: one device, as this node reaches it.

    driver = make_driver(...)
    await driver.open()
    readings = await driver.read()
    readings = await driver.command(DeviceCommand(Action("set", True)))             # those after it
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
from typing import Annotated, Final, Protocol, runtime_checkable

import msgspec

from comesh.core.actions import Action, Origin
from comesh.core.ids import NodeId
from comesh.core.values import Value

NO_NODE: Final = NodeId("")
READ_TIMEOUT_MS: Final = 2000.0
"""A read that takes longer has no answer."""

Readings = dict[str, Value]
Report = Callable[[Readings, str | None], None]
"""Called when a device reports by itself: its readings, and the token of an event, which is repeated until it
is acknowledged."""


Ended = Callable[[Readings | Exception], None]
"""Called once when a call ends: all readings, or the exception that `read` or `command` would have raised."""


class DeviceFailedError(Exception):
    """The device did not carry out the call, or did not answer; str() says why, for people."""


class NoAnswerError(DeviceFailedError):
    """The device did not answer: it may have carried out the command, or may still do so."""


class TooLateError(DeviceFailedError):
    """The command was not begun because it arrived too late; it may be sent again."""


class DeviceCommand(msgspec.Struct, frozen=True, array_like=True):
    """An action on its way to a device; the device's log records all of it."""

    action: Action
    origin: Origin | None = None
    """The step of a run that wants it. Its grant is a fencing token: a device that fences refuses a command
    whose grant is lower than one it has seen."""
    by: NodeId = NO_NODE
    """The node that sent it, and the time by its clock."""
    sent_ms: Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)] = 0.0


class Driver(Protocol):
    async def open(self) -> None:
        """Prepare for calls; an unreachable device is not an error yet."""
        ...

    async def close(self) -> None: ...

    async def read(self) -> Readings:
        """Returns all readings by name."""
        ...

    async def command(self, asked: DeviceCommand) -> Readings: ...

    def subscribe(self, report: Report) -> None:
        """Replaces an earlier subscription. A driver that cannot push never reports."""
        ...

    def acknowledge(self, token: str) -> None:
        """Confirm the event with this token and all before it: the device stops repeating them."""
        ...


@runtime_checkable
class PromptDriver(Protocol):
    """A driver that can often answer at once, in microseconds and without a task.

    Both return None where it cannot, and then nothing was done: `read` or `command` is the way.
    """

    def read_now(self) -> Readings | None: ...

    def command_now(self, asked: DeviceCommand) -> Readings | None: ...


@runtime_checkable
class CallingDriver(Protocol):
    """A driver that calls back when it knows, so that no task waits for it."""

    def begin(self, asked: DeviceCommand | None, ended: Ended) -> bool:
        """Start a command or a read, which ends within `timeout_of` it in any case. False: nothing was done;
        use `read` or `command` instead."""
        ...


def timeout_of(asked: DeviceCommand | None) -> float:
    """Returns how long to wait for a command or a read, in milliseconds."""
    return READ_TIMEOUT_MS if asked is None else asked.action.timeout_ms


def no_answer(device: str, timeout_ms: float) -> NoAnswerError:
    return NoAnswerError(f"{device} did not answer within {timeout_ms:.0f} ms; is it on?")

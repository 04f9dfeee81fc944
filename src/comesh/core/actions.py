"""What a device is to do, and for whom: carried whole from the document to the device.

An `Action` is compiled from the document once and never copied field by field;
each shape on its way embeds it.

    RoutineStep     program, run record   an action on a device, as a step of a routine
    Command         message               the leader of the run to the group of the device
    Call            record                the intent, committed before it leaves, and its outcome
    CommandDevice   effect                leaves now, under this lease
    DeviceCommand   drivers               the same for a driver, a relaying node, a virtual device and its log
"""

from typing import Annotated

import msgspec

from comesh.core.ids import Counter, DeviceId
from comesh.core.stamps import RunId, Stamp
from comesh.core.values import Value, shown

MAX_NAME = 1000
"""Characters of a command's name."""
MAX_TIMEOUT_MS = 366 * 86_400_000.0
"""The longest duration of a document."""


class Action(msgspec.Struct, frozen=True, array_like=True):
    """One command, with all that whoever carries it out has to know of it."""

    command: Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
    argument: Value | None = None
    timeout_ms: Annotated[float, msgspec.Meta(ge=0, le=MAX_TIMEOUT_MS)] = 5000.0
    """How long it may take, its duration included; after that without an answer its outcome is unknown."""
    idempotent: bool = True
    """Doing it twice is doing it once."""
    expects: dict[str, Value] | None = None
    """What the device's readings show once it is done; None: it cannot be read back."""

    def __str__(self) -> str:
        return self.command if self.argument is None else f"{self.command} {shown(self.argument)}"


class Origin(msgspec.Struct, frozen=True, array_like=True):
    """The step of a run that wants an action: its identity everywhere."""

    run: RunId
    attempt: Counter = 0
    step: Counter = 0
    grant: Stamp | None = None
    """Drawn when the command leaves, higher than any before: a device that can fence refuses lower ones."""


class RoutineStep(msgspec.Struct, frozen=True, array_like=True):
    """One step of a routine, and of its runs: a newer deployment version does not change a live run."""

    device: DeviceId
    action: Action
    best_effort: bool = False
    together: bool = False
    """At once with the step before it, and with what that is at once with."""

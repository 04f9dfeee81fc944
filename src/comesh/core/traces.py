"""What a run did, step by step: one Struct for each thing that its leader tells.

They are data from here to the edge: recordings, the event stream, answers and measures carry them as they
are; only `comesh.queries.trace_text` turns them into words. Each is told after the commit of what it says.
"""

import msgspec

from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.values import Value

MAX_REASON = 300
"""Characters of a reason: a device may give one of any length."""

Seen = dict[str, Value | None]
"""Readings as `device.reading`; None: unknown."""


# -- why a run fired ---------------------------------------------------------------------------------------


class _Cause(msgspec.Struct, frozen=True, array_like=True):
    """Base of all causes; committed with the firing."""


class BecameTrue(_Cause, frozen=True, tag="became_true"):
    """Its clause became true, with these readings."""

    readings: Seen


class StayedTrue(_Cause, frozen=True, tag="stayed_true"):
    """Its clause has been true for as long as it has to."""

    for_ms: float
    readings: Seen


class CameDue(_Cause, frozen=True, tag="came_due"):
    """Its schedule has this instant, in milliseconds since 1970."""

    at_ms: float


class EventCame(_Cause, frozen=True, tag="event_came"):
    """A device had an event."""

    device: DeviceId
    sequence: int
    readings: dict[str, Value]


class ByHand(_Cause, frozen=True, tag="by_hand"):
    """A person wanted it; or, without a name, this request."""

    by: str


Cause = BecameTrue | StayedTrue | CameDue | EventCame | ByHand


# -- what it did -------------------------------------------------------------------------------------------


def _tag(name: str) -> str:
    """LockAsked: lock_asked."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")


class _Trace(msgspec.Struct, frozen=True, tag_field="what", tag=_tag):
    """Base of all traces."""


class Fired(_Trace, frozen=True):
    cause: Cause
    waits_for: str | None = None
    """The live run of its routine, which ends first."""


class Ignored(_Trace, frozen=True):
    """It would have fired, but its routine is paused or cools down."""

    cause: Cause
    paused_by: str | None = None
    cooldown_ms: float = 0.0
    """How long from then on it goes on."""


class Dropped(_Trace, frozen=True):
    """It was to wait for another run of its routine, and never starts."""

    reason: str
    cause: Cause | None = None
    """Why it would have fired, where too many wait already."""


class AttemptBegan(_Trace, frozen=True):
    attempt: int
    strategy: str
    why: str = ""
    """Why the one before was given back; empty: it is the first."""


class LeaderTookOver(_Trace, frozen=True):
    """Another node leads its routine from now on."""

    leader: NodeId
    ballot: str


class LockAsked(_Trace, frozen=True):
    devices: tuple[DeviceId, ...]
    group: GroupId
    attempt: int


class LockPassedOn(_Trace, frozen=True):
    """The group that granted the locks before asked this one, on behalf of the run."""

    devices: tuple[DeviceId, ...]
    group: GroupId
    attempt: int


class LockGranted(_Trace, frozen=True):
    device: DeviceId
    stamp: str


class LockQueued(_Trace, frozen=True):
    """Another run has it."""

    device: DeviceId


class LockRefused(_Trace, frozen=True):
    device: DeviceId
    why: str
    """held, released, unknown: see LockAnswer."""


class Wounded(_Trace, frozen=True):
    """An older run wants this device: the attempt is given back."""

    device: DeviceId
    attempt: int


class Executing(_Trace, frozen=True):
    """It holds all of its locks."""

    attempt: int
    steps: int
    next_step: int = 0
    """More than 0: it goes on there, after a change of leader."""


class CommandSent(_Trace, frozen=True):
    """To the group of the device."""

    step: int
    device: DeviceId
    command: str
    argument: Value | None = None


class CommandAnswered(_Trace, frozen=True):
    step: int
    device: DeviceId
    outcome: str
    """done, failed, unknown, refused"""
    detail: str = ""


class Releasing(_Trace, frozen=True):
    """The run gives its locks back."""

    reason: str
    """Why it failed; empty: it did not."""


class Finished(_Trace, frozen=True):
    pass


class Failed(_Trace, frozen=True):
    reason: str


Trace = (
    Fired
    | Ignored
    | Dropped
    | AttemptBegan
    | LeaderTookOver
    | LockAsked
    | LockPassedOn
    | LockGranted
    | LockQueued
    | LockRefused
    | Wounded
    | Executing
    | CommandSent
    | CommandAnswered
    | Releasing
    | Finished
    | Failed
)
Ending = Finished | Failed | Dropped
"""The last trace of a run that was fired."""


def what_of(trace: msgspec.Struct) -> str:
    """The kind of a trace in a word: fired, lock_asked, ..."""
    return str(trace.__struct_config__.tag)


def shortened(reason: str) -> str:
    return reason if len(reason) <= MAX_REASON else reason[:MAX_REASON] + "..."

"""What can happen to a node. `Node.step` takes one of these at a time, with the time it happened."""

from typing import NamedTuple

import msgspec

from comesh.core.ids import DeviceId, GroupId, Incarnation, NodeId, RoutineId
from comesh.core.journal import Image
from comesh.core.messages import Message
from comesh.core.values import Value
from comesh.core.work_messages import Wish


class Timer(NamedTuple):
    """Names a timer: the part of the node that set it, what for, of what, and for which group. Setting it
    again moves it."""

    part: str
    what: str
    of: str | int = ""
    group: str = ""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of all events."""


class Started(Event, frozen=True):
    """The process began. boot was flushed to disk before this event; nonce was drawn for this process.

    store was drawn when the journal was created. initialised: that was when the deployment was, so that it
    holds the genesis rights; a journal that replaces a lost one does not. power_lost: the machine was off
    since the journal was last written, so that its unflushed tail may be gone.
    """

    boot: int
    nonce: int
    store: int = 1
    initialised: bool = True
    power_lost: bool = False
    journal: Image | None = None


class MessageReceived(Event, frozen=True):
    """A message came from a peer that the transport has authenticated as sender."""

    sender: NodeId
    incarnation: Incarnation
    deployment: int
    message: Message


class TimerFired(Event, frozen=True):
    timer: Timer


class DeviceAnswered(Event, frozen=True):
    """A read or a command that this node asked of a device came back with all readings, by name.

    error says why it did not, and then there are none. After a command, readings are those after it.
    """

    device: DeviceId
    call: int
    readings: dict[str, Value] = {}
    error: str | None = None


class DeviceReported(Event, frozen=True):
    """A device that this node subscribed to spoke by itself. token: it is an event, repeated under this token
    until acknowledged."""

    device: DeviceId
    readings: dict[str, Value]
    token: str | None = None


class JournalFailed(Event, frozen=True):
    """The journal cannot be written; what was to come after the failed write did not happen."""

    why: str


class JournalMended(Event, frozen=True):
    """The journal can be written again; this is what it holds."""

    journal: Image


class FireAsked(Event, frozen=True):
    """A person wants a routine fired. The same request id fires once."""

    routine: RoutineId
    request: str
    by: str = ""


class OrderAsked(Event, frozen=True):
    """A person wants something of a group. The same request id is carried out once."""

    group: GroupId
    request: str
    by: str
    wish: Wish


class ApplyAsked(Event, frozen=True):
    """A person wants this document to be the deployment version after base."""

    base: int
    text: str
    request: str
    by: str = ""
    why: str = ""


class RecoverAsked(Event, frozen=True):
    """An operator says that a group's quorum is lost for good, and that this node shall go on alone from what
    it has. Unsafe if that is not so: what others accepted is then lost, and they may act on it."""

    group: GroupId
    by: str = ""


class AnnouncementPosted(Event, frozen=True):
    """Something that all nodes should come to know: see core/membership/announcements.py."""

    key: str
    version: int
    value: bytes


class LeaveAsked(Event, frozen=True):
    """A person or the service manager wants this node to leave in good order."""

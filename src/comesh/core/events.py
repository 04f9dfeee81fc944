"""What can happen to a node. `Node.step` takes one of these at a time, with the time it happened."""

from typing import NamedTuple

import msgspec

from comesh.core.ids import DeviceId, Incarnation, NodeId
from comesh.core.messages import Message
from comesh.core.values import Value


class Timer(NamedTuple):
    """Names a timer: the part of the node that set it, what for, and of what. Setting it again moves it."""

    part: str
    what: str
    of: str | int = ""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of all events."""


class Started(Event, frozen=True):
    """The process began. boot was flushed to disk before this event; nonce was drawn for this process."""

    boot: int
    nonce: int


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


class NoticePosted(Event, frozen=True):
    """Something that all nodes should come to know: see core/membership/notices.py."""

    key: str
    version: int
    value: bytes


class LeaveAsked(Event, frozen=True):
    """A person or the service manager wants this node to leave in good order."""

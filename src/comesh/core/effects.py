"""What a node wants done, in order. The simulator and the runtime perform these; the core never acts.

Every effect that guards another comes before it in the list: what must be on disk before it is said is
persisted before it is sent.
"""

import msgspec

from comesh.core.events import Timer
from comesh.core.ids import DeviceId, Incarnation, NodeId
from comesh.core.messages import Message
from comesh.core.values import Value


class Effect(msgspec.Struct, frozen=True, gc=False):
    """Base of all effects."""


class Send(Effect, frozen=True):
    """Send once, unreliably: it may be lost, repeated or late. Never blocks, never fails."""

    to: NodeId
    incarnation: Incarnation
    message: Message


class Persist(Effect, frozen=True):
    """Flush to disk before any later effect of this list is performed."""

    record: "Record"


class BootRaised(msgspec.Struct, frozen=True, gc=False):
    """This process speaks as this boot from now on."""

    boot: int


Record = BootRaised


class SetTimer(Effect, frozen=True):
    """Fire after this long. Replaces a pending timer of the same name."""

    timer: Timer
    after_ms: float


class CancelTimer(Effect, frozen=True):
    timer: Timer


class ReadDevice(Effect, frozen=True):
    """Ask a device for its readings; the answer comes as DeviceAnswered with the same call number."""

    device: DeviceId
    call: int


class CommandDevice(Effect, frozen=True):
    """Have a device act; answered like a read."""

    device: DeviceId
    call: int
    command: str
    argument: Value | None = None


class Stop(Effect, frozen=True):
    """This process must end, for a reason that a person should read."""

    reason: str


class Observe(Effect, frozen=True):
    """Something worth telling whoever watches: logs, checkers, the dashboard. Changes nothing."""

    observation: "Observation"


class MemberChanged(msgspec.Struct, frozen=True, gc=False):
    """This node's view of another changed; state is a word of core/membership/table.py."""

    node: NodeId
    state: str
    incarnation: Incarnation
    why: str


class NoticeLearned(msgspec.Struct, frozen=True, gc=False):
    key: str
    version: int
    value: bytes


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Bad or unfitting input from outside was dropped; counted by why."""

    sender: NodeId
    why: str


Observation = MemberChanged | NoticeLearned | Refused

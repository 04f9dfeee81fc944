"""What a node wants done, in order. The simulator and the runtime perform these; the core never acts.

Every effect that guards another comes before it in the list: what must be on disk before it is said is
persisted before it is sent.
"""

import msgspec

from comesh.core.actions import Action, Origin
from comesh.core.events import Timer
from comesh.core.group.config import Config
from comesh.core.ids import DeviceId, GroupId, Incarnation, NodeId
from comesh.core.journal import JournalRecord
from comesh.core.messages import Message
from comesh.core.records import Entry, Record
from comesh.core.stamps import Ballot, Era, RunId
from comesh.core.traces import Trace


class Effect(msgspec.Struct, frozen=True, gc=False):
    """Base of all effects."""


class Send(Effect, frozen=True):
    """Send once, unreliably: it may be lost, repeated or late. Never blocks, never fails."""

    to: NodeId
    incarnation: Incarnation
    message: Message


class Persist(Effect, frozen=True):
    """Write to the journal before any later effect of this list is performed; flush: and to the disk itself.

    A journal that cannot be written is told as JournalFailed, and what comes after in the list is not done.
    """

    record: JournalRecord
    flush: bool = True


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
    """Have a device act; answered like a read, but not waited for longer than the action's timeout.

    It must not be sent after until_ms by this node's clock: the lease has ended then.
    """

    device: DeviceId
    call: int
    action: Action
    origin: Origin | None = None
    until_ms: float = float("inf")


class Subscribe(Effect, frozen=True):
    """From now on the device's own reports and events come to this node, as DeviceReported."""

    device: DeviceId


class AcknowledgeEvent(Effect, frozen=True):
    """The event with this token is committed: the device need not repeat it."""

    device: DeviceId
    token: str


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


class AnnouncementLearned(msgspec.Struct, frozen=True, gc=False):
    key: str
    version: int
    value: bytes


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Bad or unfitting input from outside was dropped; counted by why."""

    sender: NodeId
    why: str


class LeaderChanged(msgspec.Struct, frozen=True, gc=False):
    """This node began (serves) or stopped to serve a config, or retired from it."""

    group: GroupId
    config: Config
    ballot: Ballot
    state: str
    """serving, following, handing off, retired, lossy"""
    number: int
    digest: int
    era: Era
    why: str = ""
    records: tuple[Record, ...] = ()
    """The whole state at that number."""
    alone: bool = False
    """An operator had it go on without a quorum."""


class Committed(msgspec.Struct, frozen=True, gc=False):
    """An entry of a group is committed, as its leader counts."""

    group: GroupId
    config: Config
    ballot: Ballot
    number: int
    entry: Entry
    digest: int
    """Digest of the state with this entry."""


class CommitKnown(msgspec.Struct, frozen=True, gc=False):
    """A member knows that entries are committed before their leader does: with it, a quorum has them."""

    group: GroupId
    config: Config
    ballot: Ballot
    first: int
    entries: tuple[Entry, ...]


class DeviceChanged(msgspec.Struct, frozen=True, gc=False):
    device: DeviceId
    status: str
    why: str


class RunTraced(msgspec.Struct, frozen=True, gc=False):
    """What a run did."""

    run: RunId
    trace: Trace


class Answered(msgspec.Struct, frozen=True, gc=False):
    """What a person asked of this node has its answer."""

    request: str
    run: RunId | None
    version: int | None
    why_not: str


Observation = (
    MemberChanged
    | AnnouncementLearned
    | Refused
    | LeaderChanged
    | Committed
    | CommitKnown
    | DeviceChanged
    | RunTraced
    | Answered
)

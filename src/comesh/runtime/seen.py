"""What nodes tell of themselves and of what they serve, as values: what `view.py` makes, and others read.

Commands read them, too: so nothing is imported here that takes its time.
"""

from typing import Final

import msgspec

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.values import Value


class GroupSeen(msgspec.Struct, frozen=True, kw_only=True):
    group: GroupId
    number: int
    """Of its config; 0: nobody was heard to serve it yet."""
    epoch: int
    members: tuple[NodeId, ...]
    leader: NodeId | None
    role: str = ""
    """Of the node that says this; empty: it has no seat in it."""
    serves: bool = False
    unseated: tuple[NodeId, ...] = ()
    """Members that were away when this config began: until the next one they are none, and so fewer may be
    lost."""
    version: int = 0
    """The deployment version that it works by; 0: nobody was heard to serve it yet."""
    state: tuple[int, int, int, int] | None = None
    """How new the state is that this node has of it: config, round and rank of the ballot, entry; of two
    members the higher one has the newer. None: it has no seat in it."""


class DeviceSeen(msgspec.Struct, frozen=True, kw_only=True):
    device: DeviceId
    group: GroupId
    status: str
    readings: dict[str, Value] | None
    """None: it is down, or was not heard yet."""
    holder: str | None = None
    waiting: tuple[str, ...] = ()
    maintained_by: str | None = None
    """Who put it into maintenance."""
    breaking_by: str | None = None
    """Who wants its lock broken."""


class RunSeen(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    stage: str
    attempt: int
    held: tuple[DeviceId, ...]
    done: int
    steps: int


class RoutineSeen(msgspec.Struct, frozen=True, kw_only=True):
    routine: RoutineId
    group: GroupId
    truth: bool | None
    live: RunSeen | None
    waiting: int
    last: str | None
    """The run that ended last."""
    last_reason: str = ""
    """Empty: it finished."""
    paused_by: str | None = None


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What one node says of itself and of the groups that it serves."""

    node: NodeId
    software: str
    pid: int
    wall_ms: float
    boot: int
    deployment: str
    version: int
    document: str
    """The digest of the deployment that it goes by."""
    ready: bool
    joined: bool
    trouble: tuple[str, ...]
    living: tuple[NodeId, ...]
    groups: tuple[GroupSeen, ...]
    devices: tuple[DeviceSeen, ...]
    routines: tuple[RoutineSeen, ...]
    memory_kb: int
    cpu_s: float
    counters: dict[str, int]


ENDED: Final = ("finished", "failed", "dropped", "ignored")
"""What the last line of a run says that does not go on. Dropped and ignored ones never began."""


class TraceLine(msgspec.Struct, frozen=True):
    """One line of what a run did."""

    wall_ms: float
    node: NodeId
    run: str
    what: str
    detail: str


class AuditSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a group's audit log."""

    group: GroupId
    number: int
    wall_ms: float
    by: str
    what: str
    request: str
    run: str | None = None


class News(msgspec.Struct, frozen=True):
    """Something that happened, in words, for whoever watches."""

    wall_ms: float
    node: NodeId
    kind: str
    """leader, device, run, member, trouble"""
    about: str
    what: str
    detail: str = ""

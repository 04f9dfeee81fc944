"""Answers: what is said of nodes, groups, devices, routines and runs, and what became of an order.

The control socket, HTTP and `--json` show these Structs as they are. Commands import this module, so nothing
here imports anything heavy.
"""

from typing import Final

import msgspec

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.values import Value
from comesh.deployment.change import Change

FIRE_WAIT_S: Final = 35.0
"""Longer than the core tries to reach a group."""


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


class Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """reached False: whoever knows could not be asked now, and this is the last that was heard."""

    reached: bool
    as_of_ms: float | None
    """Milliseconds since 1970, by the clock of who answered; null: nothing was heard yet."""
    answered_by: NodeId | None


class NodeListed(msgspec.Struct, frozen=True, kw_only=True):
    node: NodeId
    name: str | None
    power_domain: str | None
    life: str
    """living, dead, or never heard of"""


class Nodes(msgspec.Struct, frozen=True, kw_only=True):
    """As the node that was asked knows them."""

    as_of_ms: float
    answered_by: NodeId
    nodes: tuple[NodeListed, ...]


class NodeAnswer(Freshness, frozen=True, kw_only=True):
    about: NodeListed
    status: NodeStatus | None


class GroupAnswer(Freshness, frozen=True, kw_only=True):
    group: GroupId
    devices: tuple[DeviceId, ...]
    routines: tuple[RoutineId, ...]
    state: GroupSeen | None


class Groups(msgspec.Struct, frozen=True, kw_only=True):
    """As the node that was asked knows them."""

    as_of_ms: float
    answered_by: NodeId
    groups: tuple[GroupSeen, ...]


class DeviceAnswer(Freshness, frozen=True, kw_only=True):
    device: DeviceId
    name: str | None
    group: GroupId
    state: DeviceSeen | None


class Devices(msgspec.Struct, frozen=True, kw_only=True):
    devices: tuple[DeviceAnswer, ...]


class RoutineAnswer(Freshness, frozen=True, kw_only=True):
    routine: RoutineId
    name: str | None
    group: GroupId
    commands: tuple[DeviceId, ...]
    """The devices that it commands."""
    state: RoutineSeen | None


class Routines(msgspec.Struct, frozen=True, kw_only=True):
    routines: tuple[RoutineAnswer, ...]


class Runs(msgspec.Struct, frozen=True, kw_only=True):
    """The latest, newest first: the last line of each."""

    as_of_ms: float
    answered_by: NodeId
    silent: tuple[NodeId, ...]
    """Nodes that live and did not answer: what only they know is missing."""
    runs: tuple[TraceLine, ...]


class RunAnswer(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    routine: RoutineId
    as_of_ms: float
    answered_by: NodeId
    silent: tuple[NodeId, ...]
    ended: bool
    trace: tuple[TraceLine, ...]


class Mesh(msgspec.Struct, frozen=True, kw_only=True):
    """What every node of the deployment says; None: nothing, and `silent` has why."""

    asked: NodeId
    nodes: dict[NodeId, NodeStatus | None]
    silent: dict[NodeId, str] = {}
    trouble: tuple[str, ...] = ()
    """What a person should look after, and concerns the mesh more than one node."""


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    run: str | None
    why_not: str


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """What was done; home: nothing, because the device is part of that node."""

    device: DeviceId
    readings: dict[str, Value] = {}
    home: NodeId | None = None


class Hears(msgspec.Struct, frozen=True, kw_only=True):
    """How a node hears another one."""

    living: bool
    """It takes it for living."""
    connected: bool
    address: str
    round_trip_ms: float | None
    """Smoothed; None: never measured."""
    why: str
    """Why it is not connected, or empty."""


class NodeHealth(msgspec.Struct, frozen=True, kw_only=True):
    node: NodeId
    software: str
    version: int
    """Of the deployment that it goes by."""
    document: str
    """The digest of that."""
    machine_wall_ms: float
    """By the clock of its machine, whatever the node goes by."""
    clock_source: str
    """Where its time comes from: own, mesh, waiting or guessed."""
    listens: tuple[str, ...]
    """Its UDP sockets."""
    certificate_ends_ms: float
    authority_ends_ms: float
    data: str
    data_free_bytes: int
    data_disk_bytes: int
    journal_bytes: int
    memory_kb: int
    memory_free_kb: int
    """Of its machine."""
    hears: dict[NodeId, Hears]


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    said: NodeHealth
    offset_ms: float
    """How far the clock of its machine is ahead of that of the asked one."""
    within_ms: float
    """The offset is that certain: half of the time that the answer took."""


class MeshHealth(msgspec.Struct, frozen=True, kw_only=True):
    asked: NodeId
    as_of_ms: float
    nodes: dict[NodeId, Checked | None]
    """None: no answer, and `silent` has why."""
    silent: dict[NodeId, str] = {}


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an order. why_not: empty if it is carried out; unanswered: it may be, later."""

    request: str
    run: str | None = None
    why_not: str = ""
    unanswered: bool = False
    failed: dict[GroupId, str] = {}
    """Of an order to all groups: those that did not carry it out, and why."""
    groups: int = 1
    """To how many groups it went."""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """Newest first. unheard: groups whose log is not in it, because nobody who leads them answered."""

    entries: tuple[AuditSeen, ...]
    unheard: tuple[GroupId, ...] = ()


class VersionSeen(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    at_ms: float | None = None
    """null: it is the first one, or applied so long ago that nobody remembers."""
    by: str = ""
    why: str = ""
    groups: int = 0
    """How many groups work by it, as the node that was asked knows."""


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """Newest first."""

    answered_by: NodeId
    newest: int
    """That the node which was asked has."""
    reached: bool
    """Whoever leads the group `deployment` was reached: else nobody says who applied what."""
    versions: tuple[VersionSeen, ...]


class VersionText(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    text: str


class ChainText(msgspec.Struct, frozen=True, kw_only=True):
    """All versions in one text, as `comesh node` takes it."""

    newest: int
    chain: str


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a document would change, against the version that it was compared with."""

    base: int
    problems: tuple[str, ...] = ()
    """Why it cannot follow that version; empty: it can."""
    changes: tuple[Change, ...] = ()
    """None: both mean the same."""
    means: tuple[str, ...] = ()


class ApplyDone(msgspec.Struct, frozen=True, kw_only=True):
    """version: that it became; null: it is not applied, and why_not says why."""

    request: str
    version: int | None
    why_not: str = ""
    newest: int = 0
    """Of a refusal: the version that the deployment is at."""
    stale: bool = False
    """It does not build on the newest version."""
    unanswered: bool = False
    """It may still be applied."""
    problems: tuple[str, ...] = ()
    """What is wrong with the document."""


class Reaching(msgspec.Struct, frozen=True, kw_only=True):
    """These groups are asked to hand off to the version at once."""

    version: int
    groups: tuple[GroupId, ...]


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    group: GroupId
    why_not: str = ""

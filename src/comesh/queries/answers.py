"""Answers: what is said of nodes, groups, devices, routines and runs, and what became of an order.

The control socket, HTTP and `--json` show these Structs as they are. Commands import this module, so nothing
here imports anything heavy.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, Final, Generic, TypeVar

import msgspec

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.traces import Ending, Ignored, Trace
from comesh.core.values import Value
from comesh.deployment.change import Change

A = TypeVar("A")
B = TypeVar("B")


class Silence(StrEnum):
    """Why a node told nothing."""

    DEAD = "dead"
    NEVER_HEARD_OF = "never heard of"
    NO_ANSWER = "no answer"
    OTHER_VERSION = "another version"


class Fresh(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """What a node answered, and when by its clock. reached False: it is the last that was heard, not now."""

    answer: A
    answered_by: NodeId
    as_of_ms: float
    reached: bool = True

    def of(self, answer: B) -> "Fresh[B]":
        """A part of it, as fresh."""
        return Fresh(
            answer=answer, answered_by=self.answered_by, as_of_ms=self.as_of_ms, reached=self.reached
        )


# -- what nodes say ------------------------------------------------------------------------------------------


class GroupSeen(msgspec.Struct, frozen=True, kw_only=True):
    group: GroupId
    number: int
    """The number of its config; 0: nobody was heard to serve it yet."""
    epoch: int
    members: tuple[NodeId, ...]
    leader: NodeId | None
    role: str = ""
    """The role of the node that says this; empty: it has no seat in it."""
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
    """The person who put it into maintenance."""
    breaking_by: str | None = None
    """The person who wants its lock broken."""


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


class TraceLine(msgspec.Struct, frozen=True):
    """What a run did, the node that told it, and when by its clock."""

    wall_ms: float
    node: NodeId
    run: str
    trace: Trace

    @property
    def ends(self) -> bool:
        """The run goes on no more, or never began."""
        return isinstance(self.trace, Ending | Ignored)


class AuditSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a group's audit log."""

    group: GroupId
    number: int
    wall_ms: float
    by: str
    what: str
    request: str
    run: str | None = None


class News(msgspec.Struct, frozen=True, tag_field="event", tag="news"):
    """Something that happened, in words, for whoever watches."""

    wall_ms: float
    node: NodeId
    kind: str
    """leader, device, run, member, trouble"""
    about: str
    what: str
    """What happened; for a run, the kind of its trace."""
    detail: str = ""
    trace: Trace | None = None
    """What the run did, where the news is about one."""


class Lost(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="lost"):
    """So many news were dropped, because the follower did not read them in time."""

    lost: int


# -- what is said of the mesh --------------------------------------------------------------------------------


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
    time_zone: str = ""
    """The time zone of the document, by which its clauses and schedules go."""


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
    runs: tuple[TraceLine, ...]
    silent: dict[NodeId, Silence] = {}
    """Nodes that did not answer: what only they know is missing."""
    truncated: bool = False
    """There are more."""
    time_zone: str = ""
    """The time zone of the document."""


class RunAnswer(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    routine: RoutineId
    as_of_ms: float
    answered_by: NodeId
    ended: bool
    trace: tuple[TraceLine, ...]
    silent: dict[NodeId, Silence] = {}
    """Nodes that did not answer: what only they know is missing."""
    time_zone: str = ""
    """The time zone of the document."""


class MeshStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What every node of the deployment says; None: nothing, and `silent` has why."""

    asked: NodeId
    nodes: dict[NodeId, NodeStatus | None]
    silent: dict[NodeId, Silence] = {}
    trouble: tuple[str, ...] = ()
    """What a person should look after, and concerns the mesh more than one node."""


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
    """The version of the deployment that it goes by."""
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
    """Free memory of its machine."""
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
    silent: dict[NodeId, Silence] = {}


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """Newest first. unheard: groups whose log is not in it, because nobody who leads them answered."""

    entries: tuple[AuditSeen, ...]
    unheard: tuple[GroupId, ...] = ()
    silent: dict[NodeId, Silence] = {}
    truncated: bool = False
    """There are more."""


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
    """The newest version that the node which was asked has."""
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


# -- what became of an order -------------------------------------------------------------------------------


class RoutineFired(msgspec.Struct, frozen=True, kw_only=True):
    routine: RoutineId
    request: str
    run: str


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """An order that was carried out."""

    request: str
    run: str | None = None
    """The run that it started, if any."""
    groups: int = 1
    """Groups that carried it out."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    request: str
    version: int
    """The version that the document became."""


class Reaching(msgspec.Struct, frozen=True, kw_only=True):
    """These groups are asked to hand off to the version at once."""

    version: int
    groups: tuple[GroupId, ...]


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """A group goes on from what this node had."""

    group: GroupId


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """What was done; home: nothing, because the device is part of that node."""

    device: DeviceId
    readings: dict[str, Value] = {}
    home: NodeId | None = None


class Disturbed(msgspec.Struct, frozen=True, kw_only=True):
    """How a virtual device behaves from now on."""

    device: DeviceId
    be: str


# -- what goes wrong -----------------------------------------------------------------------------------------


class Error(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a request that failed is answered with, on every adapter."""

    error: str
    """What happened, and what to do."""
    kind: str = ""
    """What went wrong, for programs: unknown_name, refused, unanswered, ..."""
    did_you_mean: str = ""
    """The name that may be meant."""
    request: str = ""
    """The id of the order: give it again, and it is carried out once."""
    problems: tuple[str, ...] = ()
    """What is wrong one by one: in a document, or in each group that did not do it."""


class QueryError(Exception):
    """Why a request has no answer. One class each: its kind, HTTP status, and exit code of commands."""

    kind: ClassVar[str] = ""
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 2
    """1: the answer is no. 2: there is none."""

    def __init__(
        self, error: str, *, did_you_mean: str = "", request: str = "", problems: Sequence[str] = ()
    ) -> None:
        super().__init__(error)
        self.did_you_mean = did_you_mean
        self.request = request
        self.problems = tuple(problems)

    def as_error(self) -> Error:
        return Error(
            error=str(self),
            kind=self.kind,
            did_you_mean=self.did_you_mean,
            request=self.request,
            problems=self.problems,
        )


class MalformedError(QueryError):
    """The request cannot be read, or asks for what nothing can do."""

    kind, status, exit_code = "malformed", 400, 1


class UnauthenticatedError(QueryError):
    """Nobody knows who asks."""

    kind, status = "unauthenticated", 401


class ForbiddenError(QueryError):
    """Whoever asks may not."""

    kind, status = "forbidden", 403


class UnknownNameError(QueryError):
    """There is no such thing."""

    kind, status, exit_code = "unknown_name", 404, 1


class ConflictError(QueryError):
    """The request id is in use for another order."""

    kind, status, exit_code = "conflict", 409, 1


class RefusedError(QueryError):
    """The order is not carried out, and will not be as things are."""

    kind, status, exit_code = "refused", 409, 1


class InvalidDocumentError(QueryError):
    """The document cannot be used; `problems` says why."""

    kind, status, exit_code = "invalid_document", 422, 1


class UnavailableError(QueryError):
    """This node cannot do it now: it has too much to do, or a disk that fails."""

    kind, status, exit_code = "unavailable", 503, 1


class UnreachedError(QueryError):
    """Whoever knows, or decides, is not reached."""

    kind, status, exit_code = "unreached", 503, 1


class UnansweredError(QueryError):
    """The order was given and has no answer yet: it may still be carried out."""

    kind, status, exit_code = "unanswered", 503, 1


class TooSlowError(QueryError):
    """There was no answer in time."""

    kind, status = "too_slow", 504


class InternalError(QueryError):
    """This node has a fault."""

    kind, status = "internal", 500


ERRORS: Final[Mapping[str, type[QueryError]]] = {
    one.kind: one
    for one in (
        MalformedError,
        UnauthenticatedError,
        ForbiddenError,
        UnknownNameError,
        ConflictError,
        RefusedError,
        InvalidDocumentError,
        UnavailableError,
        UnreachedError,
        UnansweredError,
        TooSlowError,
        InternalError,
    )
}


def raised(error: Error) -> QueryError:
    """What to raise where an error was received."""
    kind = ERRORS.get(error.kind, QueryError)
    return kind(error.error, did_you_mean=error.did_you_mean, request=error.request, problems=error.problems)

"""Requests: everything that people ask of a mesh, and every order they give it. One Struct each.

A Struct says all that the adapters need: its tag names it on the control socket, `http` gives its path there,
`role` who may send it, `within_s` and `max_bytes` its bounds, and its type parameter the answer. Handlers are
in `reads`, `orders` and `changes`; `table` finds them.

Rules: a request never says who sends it: the adapter knows that. Nothing here imports anything heavy, because
every command imports it.
"""

import re
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar, get_args

import msgspec

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.values import Value
from comesh.queries.answers import (
    Applied,
    Audit,
    ChainText,
    DeviceAnswer,
    Devices,
    Disturbed,
    Done,
    GroupAnswer,
    Groups,
    MeshHealth,
    MeshStatus,
    NodeAnswer,
    Nodes,
    NodeStatus,
    Preview,
    Reaching,
    Recovered,
    RoutineAnswer,
    RoutineFired,
    Routines,
    RunAnswer,
    Runs,
    Touched,
    Versions,
    VersionText,
)

BASE: Final = "/api/v1"
"""Where the paths of the HTTP interface begin."""
ORDER_WAIT_S: Final = 35.0
"""How long the answer of a group is waited for: longer than a lost leader takes to be replaced."""
MAX_REQUEST_ID: Final = 128
"""Characters of the id of an order."""
MAX_LISTED: Final = 500
"""Entries of one list."""
MAX_VERSION: Final = 1_000_000_000
"""No mesh is changed so often."""
MAX_DOCUMENT_BYTES: Final = 2 * 1_000_000 + 4096
"""A request with a document in it, each of its characters in two at most."""

A = TypeVar("A")
_NAMED: Final = re.compile(r"\{(\w+)\}")
RequestId = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_REQUEST_ID, pattern="^[ -~]+$")]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_LISTED)]
VersionNumber = Annotated[int, msgspec.Meta(ge=0, le=MAX_VERSION)]


class Role(StrEnum):
    VIEWER = "viewer"
    """May look at everything."""
    OPERATOR = "operator"
    """May also have routines run, give orders, apply versions and keep invitations."""

    def may(self, needed: "Role") -> bool:
        return self is Role.OPERATOR or needed is Role.VIEWER


class Http(msgspec.Struct, frozen=True):
    """A path of the HTTP interface below its base. What the path does not name is the query or the body."""

    method: Literal["GET", "POST"]
    path: str
    summary: str
    """What the request is for: data and no docstring, since nodes run without docstrings."""
    errors: tuple[int, ...] = ()
    """Statuses that this request alone may be answered with."""


class Query(msgspec.Struct, Generic[A], frozen=True, kw_only=True, tag_field="ask"):
    """A question. It changes nothing, so it may be asked again."""

    role: ClassVar[Role] = Role.VIEWER
    within_s: ClassVar[float] = 10.0
    """How long the answer may take."""
    max_bytes: ClassVar[int] = 65_536
    http: ClassVar[Http | None] = None
    """None: only for those on the machine of the node."""


class Order(Query[A], frozen=True, kw_only=True):
    """An order. The same id is carried out once, however often and at whichever node it is given."""

    role = Role.OPERATOR
    within_s = ORDER_WAIT_S + 5.0

    request: RequestId | None = None
    """An id of your own; left out: the node draws one, and says it."""


# -- nodes, groups, devices, routines ------------------------------------------------------------------------


class ShowStatus(Query[NodeStatus], frozen=True, kw_only=True, tag="status"):
    """This node: what it says of itself and of the groups that it serves."""


class ShowMesh(Query[MeshStatus], frozen=True, kw_only=True, tag="mesh"):
    http = Http("GET", "/status/mesh", "What every node says, each asked by this one")


class ShowHealth(Query[MeshHealth], frozen=True, kw_only=True, tag="doctor"):
    http = Http(
        "GET",
        "/status/doctor",
        "How every node is, as it says: clock, certificate, disk, memory, whom it hears",
    )


class ListNames(Query[tuple[str, ...]], frozen=True, kw_only=True, tag="names"):
    """All names of a kind, without asking anybody: for the completion of a shell."""

    kind: Literal["node", "group", "device", "routine"]


class ListNodes(Query[Nodes], frozen=True, kw_only=True, tag="nodes"):
    http = Http("GET", "/nodes", "All nodes, and who lives, as this node knows")


class ShowNode(Query[NodeAnswer], frozen=True, kw_only=True, tag="node"):
    http = Http("GET", "/nodes/{node}", "A node: what it says of itself")
    node: NodeId


class ListGroups(Query[Groups], frozen=True, kw_only=True, tag="groups"):
    http = Http("GET", "/groups", "All groups: members and leader, as this node knows")


class ShowGroup(Query[GroupAnswer], frozen=True, kw_only=True, tag="group"):
    http = Http("GET", "/groups/{group}", "A group: what its leader says")
    group: GroupId


class ListDevices(Query[Devices], frozen=True, kw_only=True, tag="devices"):
    http = Http("GET", "/devices", "All devices, as the leaders of their groups see them")


class ShowDevice(Query[DeviceAnswer], frozen=True, kw_only=True, tag="device"):
    http = Http("GET", "/devices/{device}", "A device: status, readings, who holds it", (503,))
    device: DeviceId


class ListRoutines(Query[Routines], frozen=True, kw_only=True, tag="routines"):
    http = Http("GET", "/routines", "All routines, as the leaders of their groups see them")


class ShowRoutine(Query[RoutineAnswer], frozen=True, kw_only=True, tag="routine"):
    http = Http("GET", "/routines/{routine}", "A routine: its live run, its last end", (503,))
    routine: RoutineId


# -- what happened -------------------------------------------------------------------------------------------


class ListRuns(Query[Runs], frozen=True, kw_only=True, tag="runs"):
    http = Http("GET", "/runs", "The latest runs, newest first")
    limit: Limit = 50


class ShowRun(Query[RunAnswer], frozen=True, kw_only=True, tag="run"):
    http = Http(
        "GET",
        "/runs/{run}",
        "A run, or the latest run of a routine, with all that it did; write the # of its id as %23",
    )
    run: str


class ListAudit(Query[Audit], frozen=True, kw_only=True, tag="audit"):
    http = Http("GET", "/audit", "Who did what, newest first, from the logs of all groups")
    limit: Limit = 50


# -- orders --------------------------------------------------------------------------------------------------


class FireRoutine(Order[RoutineFired], frozen=True, kw_only=True, tag="fire"):
    http = Http("POST", "/routines/{routine}/fire", "Have a routine run now; the same request id fires once")
    routine: RoutineId


class PauseRoutine(Order[Done], frozen=True, kw_only=True, tag="pause"):
    http = Http("POST", "/routines/{routine}/pause", "Stop a routine: it does not fire")
    routine: RoutineId


class ResumeRoutine(Order[Done], frozen=True, kw_only=True, tag="resume"):
    http = Http("POST", "/routines/{routine}/resume", "Let a routine fire again")
    routine: RoutineId


class PauseAll(Order[Done], frozen=True, kw_only=True, tag="pause_all"):
    http = Http("POST", "/pause", "Stop everything: no routine fires, what runs ends")


class ResumeAll(Order[Done], frozen=True, kw_only=True, tag="resume_all"):
    http = Http("POST", "/resume", "Let all routines fire again")


class MaintainDevice(Order[Done], frozen=True, kw_only=True, tag="maintain"):
    http = Http(
        "POST",
        "/devices/{device}/maintain",
        "Put a device into maintenance, or back: routines leave it alone",
    )
    device: DeviceId
    on: bool = True
    """False: the maintenance is over."""


class SetDevice(Order[Done], frozen=True, kw_only=True, tag="set"):
    http = Http("POST", "/devices/{device}/command", "Command a device by hand, through its lock")
    device: DeviceId
    command: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    argument: Value | None = None


class UnlockDevice(Order[Done], frozen=True, kw_only=True, tag="unlock"):
    http = Http(
        "POST", "/devices/{device}/unlock", "Break a device's lock: the run that holds it is stopped first"
    )
    device: DeviceId
    run: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    """The holder that is meant: if another one holds the device by then, nothing is done."""


# -- documents -----------------------------------------------------------------------------------------------


class ListVersions(Query[Versions], frozen=True, kw_only=True, tag="versions"):
    http = Http(
        "GET", "/versions", "All versions of the document: who applied which, and how many groups work by it"
    )


class ShowVersion(Query[VersionText], frozen=True, kw_only=True, tag="version"):
    http = Http("GET", "/versions/{version}", "The document of a version")
    version: VersionNumber


class ShowChain(Query[ChainText], frozen=True, kw_only=True, tag="chain"):
    http = Http("GET", "/chain", "All versions in one text, which a new node begins from")


class PreviewDocument(Query[Preview], frozen=True, kw_only=True, tag="preview"):
    http = Http("POST", "/preview", "What a document would change, and what follows", (503,))
    within_s = 45.0
    max_bytes = MAX_DOCUMENT_BYTES
    text: str
    """The document, as YAML."""


class ApplyDocument(Order[Applied], frozen=True, kw_only=True, tag="apply"):
    http = Http(
        "POST",
        "/versions",
        "Have the mesh run by another document; refused where the base is not the newest version",
        (422,),
    )
    within_s = ORDER_WAIT_S + 15.0
    max_bytes = MAX_DOCUMENT_BYTES
    text: str
    """The document, as YAML."""
    base: Annotated[int, msgspec.Meta(ge=1, le=MAX_VERSION)]
    """The version that it was compared with: if another one came since, it is refused."""
    why: Annotated[str, msgspec.Meta(max_length=500)] = ""
    now: bool = False
    """Have all groups hand off at once."""


class ReachVersion(Order[Reaching], frozen=True, kw_only=True, tag="reach"):
    http = Http(
        "POST",
        "/versions/{version}/reach",
        "Have all groups that work by an older version hand off to this one now",
    )
    version: VersionNumber


class RecoverGroup(Order[Recovered], frozen=True, kw_only=True, tag="recover"):
    """Have this node go on alone with a group, because its other members are lost for good."""

    within_s = 100.0
    group: GroupId


# -- virtual devices -----------------------------------------------------------------------------------------


class TouchDevice(Order[Touched], frozen=True, kw_only=True, tag="touch"):
    """Have a virtual device read something, as if somebody had done it."""

    device: DeviceId
    readings: dict[str, str]


class PressDevice(Order[Touched], frozen=True, kw_only=True, tag="press"):
    """Have a virtual device tell an event."""

    device: DeviceId
    readings: dict[str, str] = {}


class DisturbDevice(Order[Disturbed], frozen=True, kw_only=True, tag="disturb"):
    """Have a virtual device of this node misbehave, or behave again."""

    device: DeviceId
    be: str
    """well, slow, silent, wrong or gone"""
    ms: float = 0.0


class Watch(msgspec.Struct, frozen=True, kw_only=True, tag_field="ask", tag="watch"):
    """A lease, not a question: what happens in the whole mesh, until the asker goes."""


Request = (
    ShowStatus
    | ShowMesh
    | ShowHealth
    | ListNames
    | ListNodes
    | ShowNode
    | ListGroups
    | ShowGroup
    | ListDevices
    | ShowDevice
    | ListRoutines
    | ShowRoutine
    | ListRuns
    | ShowRun
    | ListAudit
    | FireRoutine
    | PauseRoutine
    | ResumeRoutine
    | PauseAll
    | ResumeAll
    | MaintainDevice
    | SetDevice
    | UnlockDevice
    | ListVersions
    | ShowVersion
    | ShowChain
    | PreviewDocument
    | ApplyDocument
    | ReachVersion
    | RecoverGroup
    | TouchDevice
    | PressDevice
    | DisturbDevice
)
REQUESTS: Final[tuple[type[Query[Any]], ...]] = get_args(Request)


def path_names(kind: type[Query[Any]]) -> tuple[str, ...]:
    """The fields of a request that its path names."""
    return () if kind.http is None else tuple(_NAMED.findall(kind.http.path))


def name_of(kind: type[msgspec.Struct]) -> str:
    """The tag of a request: its name on the control socket, in metrics and in the OpenAPI document."""
    return str(kind.__struct_config__.tag)


@cache
def answer_type(kind: type[Query[A]]) -> type[A]:
    """The type that a request is answered with."""
    (base,) = kind.__orig_bases__  # type: ignore[attr-defined]  # Query[...] or Order[...], see PEP 560
    (answer,) = get_args(base)
    return answer  # type: ignore[no-any-return]  # the parameter that the class was made with

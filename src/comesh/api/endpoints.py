"""Everything that can be asked over HTTP, in one table: the app serves it, and OpenAPI tells it."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from comesh.api.answers import FireAnswer, FireWish, Health
from comesh.api.events import Events
from comesh.api.firing import Firing
from comesh.api.limits import BODY_S, MAX_RUNS, USUAL_RUNS
from comesh.api.reading import Reading
from comesh.api.tokens import Role
from comesh.queries.answers import (
    FIRE_WAIT_S,
    DeviceAnswer,
    Devices,
    GroupAnswer,
    Groups,
    Mesh,
    MeshHealth,
    NodeAnswer,
    Nodes,
    RoutineAnswer,
    Routines,
    RunAnswer,
    Runs,
)

Handler = Callable[[Request], Awaitable[object]]
BASE = "/api/v1"
LIMIT = {"type": "integer", "minimum": 1, "maximum": MAX_RUNS, "default": USUAL_RUNS}


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """In metrics, and as the id of the operation."""
    method: str = "GET"
    path: str
    summary: str
    handler: Handler
    role: Role | None = Role.VIEWER
    """None: no token is needed."""
    answer: Any = None
    """The type of the JSON that it answers; None: other content."""
    content: str = "application/json"
    body: Any = None
    query: dict[str, Any] = {}
    """Parameters of the query, with their schemas."""
    errors: tuple[int, ...] = ()
    """Beside those that every endpoint may answer."""
    within_s: float | None = None
    """In which an answer must be there; left out: as for all."""
    status_of: Callable[[Any], int] | None = None
    """Of an answer; left out: 200."""


def endpoints(reading: Reading, firing: Firing, events: Events) -> list[Endpoint]:
    health = "Whether this node is alive, and takes part in the mesh (200) or not yet (503)"
    fire = "Have a routine run now; the same request id fires once"
    mesh = "What every node says, each asked by this one"
    run = "A run, or the latest run of a routine, with all that it did; write the # of its id as %23"
    doctor = "How every node is, as it says: clock, certificate, disk, memory, whom it hears"
    follow = "What happens in the whole mesh, as server-sent events, for ever"
    return [
        Endpoint(
            name="health",
            path="/health",
            summary=health,
            handler=reading.health,
            role=None,
            answer=Health,
            status_of=lambda health: 200 if health.ready else 503,
        ),
        _all("nodes", "All nodes, and who lives, as this node knows", reading.nodes, Nodes),
        _one("node", "A node: what it says of itself", reading.node, NodeAnswer),
        _all("groups", "All groups: members and leader, as this node knows", reading.groups, Groups),
        _one("group", "A group: what its leader says", reading.group, GroupAnswer),
        _all("devices", "All devices, as the leaders of their groups see them", reading.devices, Devices),
        _one("device", "A device: status, readings, who holds it", reading.device, DeviceAnswer, 503),
        _all("routines", "All routines, as the leaders of their groups see them", reading.routines, Routines),
        _one("routine", "A routine: its live run, its last end", reading.routine, RoutineAnswer, 503),
        Endpoint(
            name="fire",
            method="POST",
            path=f"{BASE}/routines/{{routine}}/fire",
            summary=fire,
            handler=firing.fire,
            role=Role.OPERATOR,
            answer=FireAnswer,
            body=FireWish,
            errors=(400, 404, 408, 409, 413, 503),
            within_s=FIRE_WAIT_S + BODY_S,
        ),
        Endpoint(
            name="runs",
            path=f"{BASE}/runs",
            summary="The latest runs, newest first",
            handler=reading.runs,
            answer=Runs,
            query={"limit": LIMIT},
            errors=(400,),
        ),
        _one("run", run, reading.run, RunAnswer),
        _all("status/mesh", mesh, reading.mesh, Mesh),
        _all("status/doctor", doctor, reading.doctor, MeshHealth),
        Endpoint(
            name="events",
            path=f"{BASE}/events",
            summary=follow,
            handler=events.follow,
            content="text/event-stream",
            errors=(503,),
        ),
    ]


def _all(path: str, summary: str, handler: Handler, answer: Any) -> Endpoint:
    name = path.rpartition("/")[2]
    return Endpoint(name=name, path=f"{BASE}/{path}", summary=summary, handler=handler, answer=answer)


def _one(kind: str, summary: str, handler: Handler, answer: Any, *errors: int) -> Endpoint:
    return Endpoint(
        name=kind,
        path=f"{BASE}/{kind}s/{{{kind}}}",
        summary=summary,
        handler=handler,
        answer=answer,
        errors=(404, *errors),
    )


def as_text(text: Callable[[], str], content: str) -> Handler:
    async def answer(_: Request) -> Response:
        return Response(text(), media_type=None, headers={"content-type": content})

    return answer

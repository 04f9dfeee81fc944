"""What can be read over HTTP: `comesh.runtime.reading` answers, and what it refuses gets its status here."""

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from starlette.requests import Request

from comesh.api.answers import Health
from comesh.api.errors import RefusedError, unknown_here
from comesh.api.limits import MAX_RUNS, USUAL_RUNS
from comesh.queries.answers import (
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
from comesh.runtime.assembly import Assembly
from comesh.runtime.reading import NotReachedError, UnknownError

_T = TypeVar("_T")


class Reading:
    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._read = assembly.inquiries.reading

    async def health(self, request: Request) -> Health:
        return Health(alive=True, ready=self._assembly.view.ready)

    async def mesh(self, request: Request) -> Mesh:
        return cast(Mesh, await self._assembly.inquiries.answer({"ask": "mesh"}))

    async def doctor(self, request: Request) -> MeshHealth:
        return await self._assembly.inquiries.health.mesh()

    async def nodes(self, request: Request) -> Nodes:
        return self._read.nodes()

    async def node(self, request: Request) -> NodeAnswer:
        return await _one(self._read.node, request.path_params["node"])

    async def groups(self, request: Request) -> Groups:
        return self._read.groups()

    async def group(self, request: Request) -> GroupAnswer:
        return await _one(self._read.group, request.path_params["group"])

    async def devices(self, request: Request) -> Devices:
        return await self._read.devices()

    async def device(self, request: Request) -> DeviceAnswer:
        return await _one(self._read.device, request.path_params["device"])

    async def routines(self, request: Request) -> Routines:
        return await self._read.routines()

    async def routine(self, request: Request) -> RoutineAnswer:
        return await _one(self._read.routine, request.path_params["routine"])

    async def runs(self, request: Request) -> Runs:
        return await self._read.runs(_limit(request))

    async def run(self, request: Request) -> RunAnswer:
        return await _one(self._read.run, request.path_params["run"])


async def _one(read: Callable[[str], Awaitable[_T]], name: str) -> _T:
    try:
        return await read(name)
    except UnknownError as wrong:
        raise unknown_here(wrong) from None
    except NotReachedError as wrong:
        raise RefusedError(503, str(wrong), headers={"retry-after": "1"}) from None


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(USUAL_RUNS))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MAX_RUNS):
        raise RefusedError(400, f"limit is a number from 1 to {MAX_RUNS}")
    return int(text)

"""What can be read: nodes, groups, devices, routines, runs. Nothing here changes anything."""

from typing import cast

from starlette.requests import Request

from comesh.api.answers import (
    DeviceAnswer,
    Devices,
    GroupAnswer,
    Groups,
    Health,
    NodeAnswer,
    NodeListed,
    Nodes,
    RoutineAnswer,
    Routines,
    RunAnswer,
    Runs,
)
from comesh.api.errors import RefusedError, unknown
from comesh.api.limits import MOST_RUNS, USUAL_RUNS
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.runtime.assembly import Assembly
from comesh.runtime.entities import ENDED, Known
from comesh.runtime.inquiries import Mesh
from comesh.runtime.view import DeviceSeen, GroupSeen, RoutineSeen

NO_RUN = "no node that answers knows the run '{run}'; the latest runs are at /api/v1/runs"


class Reading:
    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._entities = assembly.inquiries.entities

    # -- nodes -------------------------------------------------------------------------------------------

    async def health(self, request: Request) -> Health:
        return Health(alive=True, ready=self._assembly.view.ready)

    async def mesh(self, request: Request) -> Mesh:
        return cast(Mesh, await self._assembly.inquiries.answer({"ask": "mesh"}))

    async def nodes(self, request: Request) -> Nodes:
        listed = tuple(self._listed(node) for node in sorted(self._assembly.deployment.nodes))
        return Nodes(as_of_ms=self._now_ms(), answered_by=self._own, nodes=listed)

    async def node(self, request: Request) -> NodeAnswer:
        name = NodeId(request.path_params["node"])
        if name not in self._assembly.deployment.nodes:
            raise unknown("node", name, self._assembly.deployment.nodes)
        known = await self._entities.node(name)
        return NodeAnswer(
            about=self._listed(name),
            reached=known is not None and known.reached,
            as_of_ms=None if known is None else known.status.wall_ms,
            answered_by=None if known is None else name,
            status=None if known is None else known.status,
        )

    # -- groups ------------------------------------------------------------------------------------------

    async def groups(self, request: Request) -> Groups:
        groups = tuple(self._entities.directory().values())
        return Groups(as_of_ms=self._now_ms(), answered_by=self._own, groups=groups)

    async def group(self, request: Request) -> GroupAnswer:
        group = GroupId(self._name(request, "group"))
        known = await self._entities.find("group", group)
        if known is None:  # its leader is not reached: what the directory says
            known = Known(self._entities.directory()[group], self._own, self._now_ms(), reached=False)
        clusters = {"device": self._entities.names("device"), "routine": self._entities.names("routine")}
        return GroupAnswer(
            group=group,
            devices=tuple(sorted(DeviceId(name) for name, of in clusters["device"].items() if of == group)),
            routines=tuple(
                sorted(RoutineId(name) for name, of in clusters["routine"].items() if of == group)
            ),
            state=cast(GroupSeen, known.entity),
            reached=known.reached,
            as_of_ms=known.as_of_ms,
            answered_by=known.answered_by,
        )

    # -- devices and routines ----------------------------------------------------------------------------

    async def devices(self, request: Request) -> Devices:
        found = await self._entities.survey("device")
        return Devices(devices=tuple(self._device(DeviceId(name), known) for name, known in found.items()))

    async def device(self, request: Request) -> DeviceAnswer:
        name = self._name(request, "device")
        return self._device(DeviceId(name), await self._find("device", name))

    async def routines(self, request: Request) -> Routines:
        found = await self._entities.survey("routine")
        return Routines(
            routines=tuple(self._routine(RoutineId(name), known) for name, known in found.items())
        )

    async def routine(self, request: Request) -> RoutineAnswer:
        name = self._name(request, "routine")
        return self._routine(RoutineId(name), await self._find("routine", name))

    def _device(self, device: DeviceId, known: Known | None) -> DeviceAnswer:
        entry = self._assembly.deployment.devices.get(device)
        return DeviceAnswer(
            device=device,
            name=None if entry is None else entry.name,
            group=self._entities.names("device")[device],
            state=None if known is None else cast(DeviceSeen, known.entity),
            reached=known is not None and known.reached,
            as_of_ms=None if known is None else known.as_of_ms,
            answered_by=None if known is None else known.answered_by,
        )

    def _routine(self, routine: RoutineId, known: Known | None) -> RoutineAnswer:
        entry = self._assembly.deployment.routines.get(routine)
        steps = () if entry is None else entry.do
        return RoutineAnswer(
            routine=routine,
            name=None if entry is None else entry.name,
            group=self._entities.names("routine")[routine],
            commands=tuple(sorted({DeviceId(step.device) for step in steps})),
            state=None if known is None else cast(RoutineSeen, known.entity),
            reached=known is not None and known.reached,
            as_of_ms=None if known is None else known.as_of_ms,
            answered_by=None if known is None else known.answered_by,
        )

    # -- runs --------------------------------------------------------------------------------------------

    async def runs(self, request: Request) -> Runs:
        most = _limit(request)
        lines, silent = await self._entities.runs()
        return Runs(as_of_ms=self._now_ms(), answered_by=self._own, silent=silent, runs=lines[:most])

    async def run(self, request: Request) -> RunAnswer:
        run: str = request.path_params["run"]
        routine = run.partition("#")[0]
        lines, silent = await self._entities.trace(run) if "#" in run else ((), ())
        if not lines:
            raise RefusedError(404, NO_RUN.format(run=run[:200]))
        return RunAnswer(
            run=run,
            routine=RoutineId(routine),
            as_of_ms=self._now_ms(),
            answered_by=self._own,
            silent=silent,
            ended=lines[-1].what in ENDED,
            trace=lines,
        )

    # -- inside ------------------------------------------------------------------------------------------

    @property
    def _own(self) -> NodeId:
        return self._assembly.node.id

    def _now_ms(self) -> float:
        return self._assembly.clock.wall_ms()

    def _name(self, request: Request, kind: str) -> str:
        """Of an entity that is there; its path parameter has the name of its kind."""
        name: str = request.path_params[kind]
        known = self._entities.names(kind)
        if name not in known:
            raise unknown(kind, name, known)
        return name

    async def _find(self, kind: str, name: str) -> Known:
        known = await self._entities.find(kind, name)
        if known is None:
            group = self._entities.names(kind)[name]
            raise RefusedError(
                503,
                f"nothing is known of {kind} {name}: no node that leads its group {group} is reached from "
                f"{self._own}; look at /api/v1/groups/{group} and /api/v1/nodes, or ask another node",
                headers={"retry-after": "1"},
            )
        return known

    def _listed(self, node: NodeId) -> NodeListed:
        entry, membership = self._assembly.deployment.nodes[node], self._assembly.node.membership
        if node == self._own or node in membership.living:
            life = "living"
        else:
            life = "dead" if membership.is_dead(node) else "never heard of"
        return NodeListed(node=node, name=entry.name, power_domain=entry.power_domain, life=life)


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(USUAL_RUNS))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MOST_RUNS):
        raise RefusedError(400, f"limit is a number from 1 to {MOST_RUNS}")
    return int(text)

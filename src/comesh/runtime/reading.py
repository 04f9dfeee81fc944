"""What can be read: nodes, groups, devices, routines, runs, of any node. Nothing here changes anything.

The control socket and the HTTP interface answer with the same shapes.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, cast

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.deployment.problems import did_you_mean, shorten
from comesh.queries.answers import (
    ENDED,
    DeviceAnswer,
    Devices,
    DeviceSeen,
    GroupAnswer,
    Groups,
    GroupSeen,
    NodeAnswer,
    NodeListed,
    Nodes,
    RoutineAnswer,
    Routines,
    RoutineSeen,
    RunAnswer,
    Runs,
)
from comesh.runtime.entities import Entities, Known

if TYPE_CHECKING:
    from comesh.runtime.assembly import Assembly

KEPT: Final = "nodes keep the latest runs of the groups that they led, since their start"


class UnknownError(Exception):
    """There is no such thing here; str() says so, and what may be meant."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(f"{what}; {hint}" if hint else what)
        self.hint = hint


def unknown(kind: str, name: str, known: Collection[str]) -> UnknownError:
    return UnknownError(f"there is no {kind} '{shorten(name)}' here", did_you_mean(name, known))


class NotReachedError(Exception):
    """Whoever knows is not reached, and nothing was heard before; str() says where to look."""


class Reading:
    def __init__(self, assembly: "Assembly", entities: Entities) -> None:
        self._assembly = assembly
        self._entities = entities

    async def answer(self, asked: dict[str, Any]) -> object:
        """A question of the control socket; None: it is none of these."""
        match asked:
            case {"ask": "names", "kind": "node"}:
                return sorted(self._assembly.deployment.nodes)
            case {"ask": "names", "kind": "device" | "routine" | "group" as kind}:
                return sorted(self._entities.names(kind))
            case {"ask": "nodes"}:
                return self.nodes()
            case {"ask": "node", "node": str(name)}:
                return await self.node(name)
            case {"ask": "groups"}:
                return self.groups()
            case {"ask": "group", "group": str(name)}:
                return await self.group(name)
            case {"ask": "devices"}:
                return await self.devices()
            case {"ask": "device", "device": str(name)}:
                return await self.device(name)
            case {"ask": "routines"}:
                return await self.routines()
            case {"ask": "routine", "routine": str(name)}:
                return await self.routine(name)
            case {"ask": "runs"}:
                limit = asked.get("limit")
                return await self.runs(limit if isinstance(limit, int) else None)
            case {"ask": "run", "run": str(name)}:
                return await self.run(name)
            case _:
                return None

    # -- nodes -------------------------------------------------------------------------------------------

    def nodes(self) -> Nodes:
        listed = tuple(self._listed(node) for node in sorted(self._assembly.deployment.nodes))
        return Nodes(as_of_ms=self._now_ms(), answered_by=self._own, nodes=listed)

    async def node(self, name: str) -> NodeAnswer:
        node = NodeId(name)
        if node not in self._assembly.deployment.nodes:
            raise unknown("node", node, self._assembly.deployment.nodes)
        known = await self._entities.node(node)
        return NodeAnswer(
            about=self._listed(node),
            reached=known is not None and known.reached,
            as_of_ms=None if known is None else known.status.wall_ms,
            answered_by=None if known is None else node,
            status=None if known is None else known.status,
        )

    # -- groups ------------------------------------------------------------------------------------------

    def groups(self) -> Groups:
        groups = tuple(self._entities.directory().values())
        return Groups(as_of_ms=self._now_ms(), answered_by=self._own, groups=groups)

    async def group(self, name: str) -> GroupAnswer:
        group = GroupId(self._known_name("group", name))
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

    async def devices(self) -> Devices:
        found = await self._entities.survey("device")
        return Devices(devices=tuple(self._device(DeviceId(name), known) for name, known in found.items()))

    async def device(self, name: str) -> DeviceAnswer:
        return self._device(DeviceId(name), await self._find("device", self._known_name("device", name)))

    async def routines(self) -> Routines:
        found = await self._entities.survey("routine")
        return Routines(
            routines=tuple(self._routine(RoutineId(name), known) for name, known in found.items())
        )

    async def routine(self, name: str) -> RoutineAnswer:
        return self._routine(RoutineId(name), await self._find("routine", self._known_name("routine", name)))

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

    async def runs(self, most: int | None = None) -> Runs:
        """The latest; None: as many as nodes keep."""
        lines, silent = await self._entities.runs()
        return Runs(as_of_ms=self._now_ms(), answered_by=self._own, silent=silent, runs=lines[:most])

    async def run(self, name: str) -> RunAnswer:
        """Of a run; of a routine's name: of its latest run."""
        routine, number, _ = name.partition("#")
        run = name if number else await self._latest(name)
        lines, silent = await self._entities.trace(run)
        if not lines:
            raise UnknownError(f"no node that answers knows the run '{shorten(name)}'; {KEPT}")
        return RunAnswer(
            run=run,
            routine=RoutineId(routine),
            as_of_ms=self._now_ms(),
            answered_by=self._own,
            silent=silent,
            ended=lines[-1].what in ENDED,
            trace=lines,
        )

    async def _latest(self, routine: str) -> str:
        known = self._entities.names("routine")
        if routine not in known:
            raise unknown("run or routine", routine, known)
        lines, _ = await self._entities.runs()
        latest = next((line.run for line in lines if line.run.partition("#")[0] == routine), None)
        if latest is None:
            raise UnknownError(f"no node that answers knows a run of {routine}; {KEPT}")
        return latest

    # -- inside ------------------------------------------------------------------------------------------

    @property
    def _own(self) -> NodeId:
        return self._assembly.node.id

    def _now_ms(self) -> float:
        return self._assembly.clock.wall_ms()

    def _known_name(self, kind: str, name: str) -> str:
        known = self._entities.names(kind)
        if name not in known:
            raise unknown(kind, name, known)
        return name

    async def _find(self, kind: str, name: str) -> Known:
        known = await self._entities.find(kind, name)
        if known is None:
            group = self._entities.names(kind)[name]
            raise NotReachedError(
                f"nothing is known of {kind} {name}: no node that leads its group {group} is reached from "
                f"{self._own}; look at the group {group} and at the nodes, or ask another node"
            )
        return known

    def _listed(self, node: NodeId) -> NodeListed:
        entry, membership = self._assembly.deployment.nodes[node], self._assembly.node.membership
        if node == self._own or node in membership.living:
            life = "living"
        else:
            life = "dead" if membership.is_dead(node) else "never heard of"
        return NodeListed(node=node, name=entry.name, power_domain=entry.power_domain, life=life)

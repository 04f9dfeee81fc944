"""How a device, a routine or a group is, asked of any node: it asks the node that leads the group, no other.

Only where that one does not answer, or does not lead any more, the other members are asked. Every answer says
who gave it and when. What cannot be reached is answered with the last that was heard, marked as such.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.queries.answers import ENDED, DeviceSeen, GroupSeen, NodeStatus, RoutineSeen, TraceLine
from comesh.runtime.questions import decoded

if TYPE_CHECKING:
    from comesh.runtime.assembly import Assembly

ASK: Final = "seen"
"""The question to another node; what it is about: `device/NAME`, `routine/NAME`, `group/NAME`, or all that it
serves: `device/`, `routine/`, `group/`."""
ANSWER_S: Final = 1.0
"""How long a node is waited for, before others are asked in its place."""

Entity = DeviceSeen | RoutineSeen | GroupSeen
Lines = tuple[TraceLine, ...]


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What one node says of entities in the groups that it serves."""

    node: NodeId
    wall_ms: float
    devices: tuple[DeviceSeen, ...] = ()
    routines: tuple[RoutineSeen, ...] = ()
    groups: tuple[GroupSeen, ...] = ()

    def by_name(self) -> dict[str, Entity]:
        found: dict[str, Entity] = {one.device: one for one in self.devices}
        found |= {one.routine: one for one in self.routines}
        return found | {one.group: one for one in self.groups}


class Known(msgspec.Struct, frozen=True):
    """An entity as it was at a time; reached False: its group was not reached now, this is the last heard."""

    entity: Entity
    answered_by: NodeId
    as_of_ms: float
    reached: bool = True


class KnownNode(msgspec.Struct, frozen=True):
    status: NodeStatus
    reached: bool


class Entities:
    def __init__(self, assembly: "Assembly") -> None:
        self._assembly = assembly
        self._last: dict[tuple[str, str], Known] = {}
        """The last heard of each entity that was asked for; of names in the deployment only."""
        self._last_status: dict[NodeId, NodeStatus] = {}

    # -- of other nodes ----------------------------------------------------------------------------------

    def answer_peer(self, about: str) -> bytes:
        return msgspec.json.encode(self._own(*about.partition("/")[::2]))

    def _own(self, kind: str, name: str) -> Seen:
        view = self._assembly.view
        said = Seen(node=self._assembly.node.id, wall_ms=self._assembly.clock.wall_ms())
        match kind:
            case "device":
                devices = tuple(one for one in view.devices() if name in ("", one.device))
                return msgspec.structs.replace(said, devices=devices)
            case "routine":
                routines = tuple(one for one in view.routines() if name in ("", one.routine))
                return msgspec.structs.replace(said, routines=routines)
            case "group":
                groups = tuple(one for one in view.groups() if one.serves and name in ("", one.group))
                return msgspec.structs.replace(said, groups=groups)
            case _:
                return said

    # -- of people ---------------------------------------------------------------------------------------

    def names(self, kind: str) -> Mapping[str, GroupId]:
        """All entities of a kind in the deployment, with the group of each."""
        groups = self._assembly.node.groups
        if groups is None:
            return {}
        program = groups.versions.newest
        match kind:
            case "device":
                of_device: dict[DeviceId, GroupId] = program.group_of_device
                return {str(name): group for name, group in of_device.items()}
            case "routine":
                of_routine: dict[RoutineId, GroupId] = program.group_of_routine
                return {str(name): group for name, group in of_routine.items()}
            case _:
                return {group: group for group in program.plan.genesis}

    def directory(self) -> dict[GroupId, GroupSeen]:
        """All groups as this node knows them, without asking anybody."""
        return {one.group: one for one in self._assembly.view.groups()}

    async def find(self, kind: str, name: str) -> Known | None:
        """One entity, of the deployment; None: nothing was ever heard of it, and its group is not reached."""
        if not self._heard(kind, self._own(kind, name), {name}):
            seen = self.directory().get(self.names(kind)[name])
            leader = None if seen is None else seen.leader
            members = () if seen is None else seen.members
            first = () if leader is None else (leader,)
            others = [node for node in members if node != leader]
            if not (
                await self._ask(kind, name, first, {name}) or await self._ask(kind, name, others, {name})
            ):
                return self._not_reached(kind, name)
        return self._last[kind, name]

    async def survey(self, kind: str) -> dict[str, Known | None]:
        """All entities of a kind: each leader is asked once."""
        names, directory = self.names(kind), self.directory()
        found = self._heard(kind, self._own(kind, ""), names)
        for leaders_only in (True, False):
            groups = [directory[group] for group in {names[name] for name in names.keys() - found}]
            leaders = {seen.leader for seen in groups if seen.leader is not None}
            members = {node for seen in groups for node in seen.members}
            found |= await self._ask(kind, "", sorted(leaders if leaders_only else members), names)
        return {
            name: self._last[kind, name] if name in found else self._not_reached(kind, name)
            for name in sorted(names)
        }

    async def node(self, name: NodeId) -> KnownNode | None:
        """What a node says of itself, now or the last time."""
        assembly = self._assembly
        if name == assembly.node.id:
            return KnownNode(assembly.inquiries.status(), True)
        if name in assembly.node.membership.living:
            answer = (await assembly.questions.ask([name], "status", within_s=ANSWER_S))[name]
            status = decoded(answer, NodeStatus)
            if status is not None:
                self._last_status[name] = status
                return KnownNode(status, True)
        last = self._last_status.get(name)
        return None if last is None else KnownNode(last, False)

    async def trace(self, run: str) -> tuple[Lines, tuple[NodeId, ...]]:
        """What a run did, and the living nodes that did not answer. The leader of its routine is asked,
        and all others only where it does not know the whole of it: runs outlive leaders."""
        seen = self.directory().get(self.names("routine").get(run.partition("#")[0], GroupId("")))
        if seen is not None and seen.leader is not None:
            lines, _ = await self._lines("trace", run, [seen.leader])
            if lines and lines[0].what == "fired" and lines[-1].what in ENDED:
                return lines, ()
        return await self._lines("trace", run, self._assembly.node.membership.living)

    async def runs(self) -> tuple[Lines, tuple[NodeId, ...]]:
        """The last line of each of the latest runs, newest first, and who did not answer."""
        lines, silent = await self._lines("runs", "", self._assembly.node.membership.living)
        latest = {line.run: line for line in lines}
        return tuple(sorted(latest.values(), key=lambda line: -line.wall_ms)), silent

    # -- inside ------------------------------------------------------------------------------------------

    async def _ask(self, kind: str, name: str, nodes: Iterable[NodeId], wanted: Collection[str]) -> set[str]:
        """Ask these nodes, as far as they live; which of the wanted names were answered."""
        own, living = self._assembly.node.id, self._assembly.node.membership.living
        asked = [node for node in dict.fromkeys(nodes) if node != own and node in living]
        answers = await self._assembly.questions.ask(asked, ASK, f"{kind}/{name}", within_s=ANSWER_S)
        found: set[str] = set()
        for answer in answers.values():
            seen = decoded(answer, Seen)
            if seen is not None:
                found |= self._heard(kind, seen, wanted)
        return found

    def _heard(self, kind: str, seen: Seen, wanted: Collection[str]) -> set[str]:
        found: set[str] = set()
        for name, entity in seen.by_name().items():
            if name in wanted:
                self._last[kind, name] = Known(entity, seen.node, seen.wall_ms)
                found.add(name)
        return found

    def _not_reached(self, kind: str, name: str) -> Known | None:
        last = self._last.get((kind, name))
        return None if last is None else msgspec.structs.replace(last, reached=False)

    async def _lines(
        self, ask: str, about: str, nodes: Collection[NodeId]
    ) -> tuple[Lines, tuple[NodeId, ...]]:
        """In order of time; and who did not answer."""
        own, view = self._assembly.node.id, self._assembly.view
        answers = await self._assembly.questions.ask([one for one in nodes if one != own], ask, about)
        lines = list(view.trace(about) if ask == "trace" else view.runs())
        silent: list[NodeId] = []
        for node, answer in answers.items():
            told = decoded(answer, Lines)
            if told is None:
                silent.append(node)
            else:
                lines += told
        return tuple(sorted(lines, key=lambda line: line.wall_ms)), tuple(silent)

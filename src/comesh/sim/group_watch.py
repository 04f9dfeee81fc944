"""Records which groups could act and which were served: could a majority run and communicate?

Groups are looked at once a second, so the times are whole seconds. Who is in a group and who leads it is what
the running nodes themselves have: the config that is served, or else the newest in which one of them sits.
Where none of them sits in any, the last one that was seen counts on.

A group has its majority if one of its members reaches, both ways, so many that with itself they are more
than half: it could lead them. A paused node counts as one that runs. A group is served if a process leads it;
an idle leader that lost its majority notices only when it next has something to commit.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import msgspec

from comesh.core.group.config import Config
from comesh.core.group.groups import Groups
from comesh.core.ids import GroupId, NodeId
from comesh.core.node import Node
from comesh.core.plan import Plan
from comesh.core.stamps import NO_BALLOT, Ballot
from comesh.deployment.outlook import Members, group_order
from comesh.sim.world import World

_Noted = TypeVar("_Noted")


class Span(msgspec.Struct, frozen=True):
    """A span of time; without an end it lasted until the run ended."""

    from_s: float
    to_s: float | None


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which the running nodes were in parts that could not reach each other, the largest first."""

    from_s: float
    to_s: float | None
    parts: tuple[tuple[NodeId, ...], ...]


class GroupNow(msgspec.Struct, frozen=True):
    """A group at one moment. leader None: nobody serves it; number 0: no node has taken a seat yet."""

    members: tuple[NodeId, ...]
    leader: NodeId | None
    number: int
    ballot: Ballot = NO_BALLOT


class LiveGroups:
    """Finds every group of a plan, as the running nodes have it."""

    def __init__(self, world: World, plan: Plan) -> None:
        self._world = world
        self._plan = plan
        self.now: dict[GroupId, GroupNow] = {
            group: GroupNow(plan.genesis[group], None, 0) for group in sorted(plan.genesis, key=group_order)
        }

    @property
    def members(self) -> Members:
        return {group: now.members for group, now in self.now.items()}

    def look(self) -> None:
        """Refresh the groups."""
        served: dict[GroupId, tuple[Config, Ballot, NodeId]] = {}
        seated: dict[GroupId, Config] = {}
        for node, groups in self._groups():
            for replica in groups.replicas.values():
                config = replica.config
                if config.group not in seated or config.number > seated[config.group].number:
                    seated[config.group] = config
            for group in groups.served:
                serving = groups.serving(group)
                if serving is not None:
                    found, known = (serving.config, serving.ballot, node), served.get(group)
                    if known is None or _order(found) > _order(known):
                        served[group] = found
        for group, before in self.now.items():
            if group in served:
                config, ballot, leader = served[group]
                self.now[group] = GroupNow(config.nodes, leader, config.number, ballot)
            else:
                newest = seated.get(group)
                members = before.members if newest is None else newest.nodes
                number = before.number if newest is None else newest.number
                self.now[group] = GroupNow(members, None, number)

    def _groups(self) -> Iterator[tuple[NodeId, Groups]]:
        for machine in self._world.machines.values():
            node = None if machine.process is None else machine.process.node
            if isinstance(node, Node) and node.groups is not None:
                yield machine.node_id, node.groups

    def running(self) -> list[NodeId]:
        return [node.id for node in self._plan.nodes if self._world.runs(node.id)]

    def views(self) -> dict[NodeId, tuple[NodeId, ...]]:
        """Returns the nodes that each running node believes to be alive."""
        views: dict[NodeId, tuple[NodeId, ...]] = {}
        for node_id in self.running():
            process = self._world.machines[node_id].process
            if process is not None and isinstance(process.node, Node):
                views[node_id] = process.node.membership.living
        return views


def _order(served: tuple[Config, Ballot, NodeId]) -> tuple[int, Ballot]:
    config, ballot, _ = served
    return config.number, ballot


class GroupWatch:
    """Records the state of groups; `groups` is None for membership only."""

    def __init__(self, world: World, groups: LiveGroups | None) -> None:
        self._world = world
        self._groups = groups
        self._seen_s: list[float] = []
        self._weak: dict[GroupId, list[bool]] = {} if groups is None else {group: [] for group in groups.now}
        self._unserved: dict[GroupId, list[bool]] = {group: [] for group in self._weak}
        self._parts: list[tuple[tuple[NodeId, ...], ...]] = []
        self._last: tuple[object, ...] = ()

    def look(self) -> None:
        """Record the state now; to be called once a second."""
        world = self._world
        if self._groups is not None:
            self._groups.look()
            for group, now in self._groups.now.items():
                self._unserved[group].append(now.leader is None)
        stations: dict[NodeId, int] = {}
        for machine in world.machines.values():
            if machine.process is not None:
                stations.setdefault(machine.node_id, machine.station)
        members = None if self._groups is None else self._groups.members
        state = (stations, world.radio.routed(), members)
        self._seen_s.append(world.now_ms / 1000)
        if self._last == state:
            self._parts.append(self._parts[-1])
            for noted in self._weak.values():
                noted.append(noted[-1])
            return
        self._last = state

        def mutual(one: NodeId, other: NodeId) -> bool:
            here, there = stations[one], stations[other]
            return world.radio.reaches(here, there) and world.radio.reaches(there, here)

        self._parts.append(_parts(list(stations), mutual))
        for group, noted in self._weak.items():
            assert members is not None
            noted.append(not _has_majority(members[group], stations, mutual))

    def without_majority(self) -> dict[GroupId, tuple[Span, ...]] | None:
        """Returns when each group had no majority; None if there are no groups."""
        return self._of_groups(self._weak)

    def unserved(self) -> dict[GroupId, tuple[Span, ...]] | None:
        """Returns when each group was not served; None if there are no groups."""
        return self._of_groups(self._unserved)

    def _of_groups(self, noted: dict[GroupId, list[bool]]) -> dict[GroupId, tuple[Span, ...]] | None:
        if self._groups is None:
            return None
        return {
            group: tuple(Span(begin, end) for so, begin, end in self._spans(looks) if so)
            for group, looks in noted.items()
        }

    def splits(self) -> tuple[Split, ...]:
        return tuple(
            Split(from_s=from_s, to_s=to_s, parts=parts)
            for parts, from_s, to_s in self._spans(self._parts)
            if len(parts) > 1
        )

    def _spans(self, noted: Sequence[_Noted]) -> list[tuple[_Noted, float, float | None]]:
        """Join equal observations in a row to spans, from the first to the next different one."""
        begins = [row for row in range(len(noted)) if row == 0 or noted[row] != noted[row - 1]]
        return [
            (noted[row], self._seen_s[row], None if end == len(noted) else self._seen_s[end])
            for row, end in pairwise([*begins, len(noted)])
        ]


def _has_majority(
    members: tuple[NodeId, ...], running: dict[NodeId, int], mutual: Callable[[NodeId, NodeId], bool]
) -> bool:
    left = [node for node in members if node in running]
    return any(
        2 * sum(node == other or mutual(node, other) for other in left) > len(members) for node in left
    )


def _parts(nodes: list[NodeId], mutual: Callable[[NodeId, NodeId], bool]) -> tuple[tuple[NodeId, ...], ...]:
    """Returns the parts of nodes that reach each other both ways, directly or over nodes of their part."""
    parts: list[tuple[NodeId, ...]] = []
    left = nodes
    while left:
        part: list[NodeId] = []
        reached, left = [left[0]], left[1:]
        while reached:
            node = reached.pop()
            part.append(node)
            near = [other for other in left if mutual(node, other)]
            reached += near
            if near:
                found = set(near)
                left = [other for other in left if other not in found]
        parts.append(tuple(sorted(part)))
    return tuple(sorted(parts, key=lambda part: (-len(part), part)))

"""Which groups could have acted: whether a majority of their members ran and reached each other.

The simulator does not run groups yet. What decides whether they can act is known all the same: at each epoch
every group's members are selected anew from the nodes that live, with the epoch before as the table, as the
nodes themselves compute it; and the world knows who runs and whom the radio reaches. It is looked at once a
second, so the times are whole seconds.

A group has its majority if one of its members reaches, both ways, so many that with itself they are more
than half: it could lead them. A paused node counts as one that runs.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import msgspec

from comesh.core.ids import GroupId, NodeId
from comesh.core.node import Node
from comesh.core.plan import Plan
from comesh.core.selection import Selector
from comesh.deployment.outlook import Members, group_order
from comesh.sim.world import World

_Noted = TypeVar("_Noted")


class Span(msgspec.Struct, frozen=True):
    """From when to when; no end: it was still so when the run ended."""

    from_s: float
    to_s: float | None


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """For this time the running nodes were in parts that could not reach each other, the largest first."""

    from_s: float
    to_s: float | None
    parts: tuple[tuple[NodeId, ...], ...]


class EpochGroups:
    """Every group's members, epoch by epoch."""

    def __init__(self, world: World, plan: Plan, epoch_ms: float) -> None:
        self._world = world
        self._plan = plan
        self._selector = Selector(plan)
        self._epoch_ms = epoch_ms
        self._selected = 0
        self.members: Members = {group: plan.genesis[group] for group in self._selector.groups}

    @property
    def epoch(self) -> int:
        return int(self._world.now_ms // self._epoch_ms)

    def follow(self) -> None:
        """Select the groups anew where an epoch has passed."""
        while self._selected < self.epoch:
            self._selected += 1
            self.members = self._selector.select_all(self._selected, self.living(), self.members)

    def running(self) -> list[NodeId]:
        return [node.id for node in self._plan.nodes if self._world.runs(node.id)]

    def views(self) -> dict[NodeId, tuple[NodeId, ...]]:
        """Whom each running node believes to live."""
        views: dict[NodeId, tuple[NodeId, ...]] = {}
        for node_id in self.running():
            process = self._world.machines[node_id].process
            if process is not None and isinstance(process.node, Node):
                views[node_id] = process.node.membership.living
        return views

    def living(self) -> tuple[NodeId, ...]:
        """What most running nodes believe."""
        views = list(self.views().values())
        return max(views, key=views.count, default=())


class GroupWatch:
    """Looks at the world when told to; `groups` is None where there is no document, so no groups."""

    def __init__(self, world: World, groups: EpochGroups | None) -> None:
        self._world = world
        self._groups = groups
        self._seen_s: list[float] = []
        self._weak: dict[GroupId, list[bool]] = {} if groups is None else {g: [] for g in groups.members}
        self._parts: list[tuple[tuple[NodeId, ...], ...]] = []
        self._last: tuple[object, ...] = ()

    def look(self) -> None:
        """Note how things are now; to be called once a second."""
        world = self._world
        if self._groups is not None:
            self._groups.follow()
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
        """When each group had no majority; None where there are no groups."""
        if self._groups is None:
            return None
        return {
            group: tuple(Span(begin, end) for weak, begin, end in self._spans(self._weak[group]) if weak)
            for group in sorted(self._weak, key=group_order)
        }

    def splits(self) -> tuple[Split, ...]:
        return tuple(
            Split(from_s=from_s, to_s=to_s, parts=parts)
            for parts, from_s, to_s in self._spans(self._parts)
            if len(parts) > 1
        )

    def _spans(self, noted: Sequence[_Noted]) -> list[tuple[_Noted, float, float | None]]:
        """Equal looks in a row as one, with the time of the first and that of the first other."""
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
    """Nodes that reach each other both ways, if need be over others of their part."""
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

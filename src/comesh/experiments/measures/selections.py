"""Selections of many epochs, without a simulation: who would look after what, and how far apart they are.

Meshes are the paper's: N devices at unit spacing, 40 % of them nodes. Each epoch's selection is fed with what
the one before selected, as the gossiped table would.
"""

from collections import Counter
from collections.abc import Iterator
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from comesh.core.ids import GroupId, NodeId
from comesh.core.plan import Locality, Plan, SelectionSettings
from comesh.core.selection import Selector, View, make_plan
from comesh.core.streams import stream
from comesh.deployment.settings import MemberPolicy
from comesh.experiments.measures.presets import setup
from comesh.sim.routes import Routes
from comesh.sim.topology import Topology

Members = dict[GroupId, tuple[NodeId, ...]]
LSH = MemberPolicy.LSH_MIX
RANDOM = MemberPolicy.RANDOM


def selection_of(
    preset: str, members: str, *, seed: int, m: int = 2, l: int = 2, r: float = 4
) -> SelectionSettings:
    """The paper's two policies: members near and led by a near one, which one is for the preset to say; or
    members and leader from anywhere."""
    policy: dict[str, Any] = {"members": members, "lsh": {"m": m, "l": l, "r": r}}
    if members == RANDOM:
        policy["leaders"] = Locality.RANDOM
    return setup(preset, seed=seed, selection=policy).selection


def plan_of(topology: Topology, settings: SelectionSettings) -> Plan:
    return make_plan(1, settings, topology.planned_nodes(), topology.planned_devices(), [])


def views(plan: Plan, epochs: int) -> Iterator[View]:
    """One view per epoch, everybody alive, each fed with what the one before selected."""
    selector = Selector(plan)
    table: Members = plan.genesis
    for epoch in range(1, epochs + 1):
        view = selector.at(epoch, selector.node_ids, table)
        yield view
        table = view.all_members()


class Distances:
    """Hops along shortest paths of a mesh in which all stations are up."""

    def __init__(self, topology: Topology) -> None:
        self._nodes = topology.nodes
        self._routes = Routes(topology, stream(0, "routes"))

    def hops(self, one: NodeId, other: NodeId) -> int:
        if one == other:
            return 0
        return self._routes.length(self._nodes[one], self._nodes[other]) >> 16

    def to_quorum(self, members: tuple[NodeId, ...], f: int) -> int:
        """From the leader, who comes first, to its f-th nearest fellow member: its answer makes f+1."""
        leader, *others = members
        return sorted(self.hops(leader, other) for other in others)[f - 1]


class Selected(NamedTuple):
    """Means over all groups of all epochs; the group of the deployment, which the paper has not, is apart."""

    candidates: float
    candidates_deviation: float
    """Standard deviation between epochs, each of which has hash functions of its own."""
    quorum_hops: float
    kept: float
    """How many members of a group are members in the next epoch as well."""
    busiest: float
    """How many times the seats of the mean node the node has that had most of them."""


def selected(topology: Topology, settings: SelectionSettings, epochs: int) -> Selected:
    """What selections of so many epochs come to, from the first members on."""
    plan = plan_of(topology, settings)
    distances = Distances(topology)
    groups = [cluster.group for cluster in plan.clusters]
    candidates: list[float] = []
    hops: list[int] = []
    kept: list[int] = []
    seats: Counter[NodeId] = Counter()
    before: Members = plan.genesis
    for view in views(plan, epochs):
        after = view.all_members()
        candidates.append(fmean(len(view.candidates(group)) for group in groups))
        for group in groups:
            hops.append(distances.to_quorum(after[group], settings.f))
            kept.append(len(set(after[group]) & set(before[group])))
            seats.update(after[group])
        before = after
    return Selected(
        candidates=fmean(candidates),
        candidates_deviation=pstdev(candidates),
        quorum_hops=fmean(hops),
        kept=fmean(kept),
        busiest=max(seats.values()) * len(plan.nodes) / seats.total(),
    )

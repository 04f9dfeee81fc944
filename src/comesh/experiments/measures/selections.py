"""Selections of many epochs, without a simulation: who would look after what, and how far apart they are.

Meshes are the paper's: N devices at unit spacing, 40 % of them nodes. Each epoch's selection is fed with what
the one before selected, as the gossiped table would.
"""

from collections.abc import Iterator

from comesh.core.ids import GroupId, NodeId
from comesh.core.plan import Plan, SelectionSettings
from comesh.core.selection import Selector, View, make_plan
from comesh.core.streams import stream
from comesh.sim.routes import Routes
from comesh.sim.topology import Topology

Members = dict[GroupId, tuple[NodeId, ...]]


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

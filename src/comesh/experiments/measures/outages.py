"""How many failures real selections bear: nodes, or whole power domains, fail in a drawn order.

The formula of `availability.py` supposes that each group is drawn anew from all nodes. Real groups overlap
where they are neighbours, keep members from one epoch to the next, and have at most f members of one power
domain where that rule is on. So here the members are those that nodes would select, over several epochs, and
what fails is drawn. In one drawn order of failures there is a first that takes the majority of some group:
with fewer the mesh is available, from it on it is not. So one draw answers for every number of failures.

The group `deployment` is left out: the paper has none. Nothing here needs the extra `sim`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from comesh.core.arithmetic import point_of
from comesh.core.draws import Draws
from comesh.core.ids import NodeId
from comesh.core.plan import Plan
from comesh.core.selection.clustering import clusters_by_place
from comesh.experiments.measures.availability import Sizes
from comesh.experiments.measures.selections import views
from comesh.sim.topology import SMART_SHARE, Shape, Topology, make_topology

Integers: TypeAlias = npt.NDArray[np.int64]


def mesh_of(sizes: Sizes, shape: Shape, seed: int) -> tuple[Topology, int]:
    """A mesh with exactly so many nodes, and the size of clusters that gives exactly so many groups.

    As near as whole clusters allow to the paper's share of nodes among the devices.
    """
    cluster_size = max(1, round(sizes.smart / SMART_SHARE / sizes.groups))
    devices = cluster_size * sizes.groups
    topology = make_topology(shape, devices=devices, smart=sizes.smart / devices, seed=seed)
    return topology, cluster_size


def in_power_domains(topology: Topology, domains: int) -> Topology:
    """The same mesh with its nodes in so many power domains, neighbours in one, as breakers feed rooms.

    ValueError: so many of about equal size cannot be made.
    """
    nodes = sorted(topology.nodes)
    places = [point_of(topology.places[topology.nodes[node]]) for node in nodes]
    size = -(-len(nodes) // domains)
    found = clusters_by_place(places, size)
    if len(found) != domains:
        if size == 1:
            raise ValueError(f"there are only {len(nodes)} nodes for {domains} power domains")
        near = f"{len(found)} or {-(-len(nodes) // (size - 1))}"
        raise ValueError(f"{len(nodes)} nodes make no {domains} power domains of one size; {near} would do")
    named = {f"domain {number}": tuple(nodes[row] for row in rows) for number, rows in enumerate(found, 1)}
    return replace(topology, power_domains=named)


class Seats(msgspec.Struct, frozen=True):
    """Who sits in which group in one epoch: a row of nodes' numbers for each group."""

    members: Integers
    f: int

    def lost_at(self, ranks: Integers) -> Integers:
        """ranks: when each node fails. When each group has lost its majority: with its f+1-th member."""
        lost: Integers = np.sort(ranks[self.members], axis=1)[:, self.f]
        return lost


def seats_over_epochs(plan: Plan, epochs: int) -> list[Seats]:
    row_of = {node.id: row for row, node in enumerate(plan.nodes)}
    found = []
    for view in views(plan, epochs):
        members = [[row_of[node] for node in view.members(cluster.group)] for cluster in plan.clusters]
        found.append(Seats(np.array(members, dtype=np.int64), plan.settings.f))
    return found


def alone(plan: Plan) -> list[list[int]]:
    """What fails together: each node by itself."""
    return [[row] for row in range(len(plan.nodes))]


def by_domain(plan: Plan, domains: Iterable[Sequence[NodeId]]) -> list[list[int]]:
    """What fails together: the nodes of a power domain."""
    row_of = {node.id: row for row, node in enumerate(plan.nodes)}
    return [[row_of[node] for node in nodes] for nodes in domains]


class Borne(msgspec.Struct, frozen=True):
    """How many failures were borne, counted in what fails together: the share of draws, by their number."""

    mesh: tuple[float, ...]
    """In which every group kept its majority."""
    group: tuple[float, ...]
    """The same of one group: the mean of all."""
    draws: int

    def tolerated(self, level: float) -> int:
        """The most failures with which it is still at that level."""
        return next((at for at, share in enumerate(self.mesh) if share < level), len(self.mesh)) - 1


def failures_borne(
    seats: Sequence[Seats], together: Sequence[Sequence[int]], draws_per_epoch: int, draws: Draws
) -> Borne:
    """together: what fails at once, drawn uniformly, without return; every node is in exactly one."""
    units = len(together)
    unit_of = np.empty(sum(map(len, together)), dtype=np.int64)
    for unit, rows in enumerate(together):
        unit_of[list(rows)] = unit
    mesh_lost = np.zeros(units + 2, dtype=np.int64)
    group_lost = np.zeros(units + 2, dtype=np.int64)
    order = list(range(1, units + 1))
    for one in seats:
        for _ in range(draws_per_epoch):
            draws.shuffle(order)
            lost_at = one.lost_at(np.array(order, dtype=np.int64)[unit_of])
            mesh_lost[lost_at.min()] += 1
            group_lost += np.bincount(lost_at, minlength=units + 2)
    return Borne(_left(mesh_lost), _left(group_lost), len(seats) * draws_per_epoch)


def _left(lost: Integers) -> tuple[float, ...]:
    """From how many were lost at each number of failures: the share that is left with it, from 0 on."""
    total = int(lost.sum())
    return tuple(((total - np.cumsum(lost)[:-1]) / total).tolist())

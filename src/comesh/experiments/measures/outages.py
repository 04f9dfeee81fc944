"""Failures of real selections: how many they bear, and what becomes of a mesh at work in an outage.

Nodes, or whole power domains, fail in a drawn order:
The formula of `availability.py` supposes that each group is drawn anew from all nodes. Real groups overlap
where they are neighbours, keep members from one epoch to the next, and have at most f members of one power
domain where that rule is on. So here the members are those that nodes would select, over several epochs, and
what fails is drawn. In one drawn order of failures there is a first that takes the majority of some group:
with fewer the mesh is available, from it on it is not. So one draw answers for every number of failures.

A power domain goes out while the mesh works, the whole protocol simulated: in the middle of an epoch, and the
one that takes most, the most groups' majorities, or where none, the most seats. Later its power comes back.
Meanwhile routines fire, each alone. Only firings count whose devices all have power: a device at the place of
a dark node is dark, whatever groups do.

The group `deployment` is left out: the paper has none. Nothing here needs the extra `sim`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.plan import DEPLOYMENT, Plan
from comesh.core.program import RoutineProgram
from comesh.core.selection.clustering import clusters_by_place
from comesh.core.selection.geometry import Integers, place_array
from comesh.experiments.measures.availability import Sizes
from comesh.experiments.measures.presets import Setup
from comesh.experiments.measures.selections import views
from comesh.experiments.table import Row
from comesh.sim.faults import PowerBack, PowerLoss, Schedule
from comesh.sim.group_watch import GroupWatch, LiveGroups, Span
from comesh.sim.injection import inject
from comesh.sim.protocol_watch import ProtocolWatch, TracedRun
from comesh.sim.simulation import Simulation
from comesh.sim.topology import SMART_SHARE, Shape, Topology, make_topology
from comesh.sim.workloads import Timing, paper_workload
from comesh.sim.world_settings import WorldSettings

OUT_S = 90
"""When a domain goes out: in the middle of the second epoch."""
OUTAGE_S = 120
AFTER_S = 60
"""Looked at afterwards: longer than a group waits that lost its majority to a power loss."""
ROUTINES = 30
WINDOW_S = OUTAGE_S // ROUTINES
"""Each firing has one for itself."""

_Of = TypeVar("_Of")


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
    places = place_array(topology.places[topology.nodes[node]] for node in nodes)
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


# -- one outage of a mesh at work ---------------------------------------------------------------------------


def power_outage(topology: Topology, made: Setup, *, seed: int) -> Row:
    """Of the worst of its power domains."""
    work = paper_workload(
        topology,
        made.selection,
        made.protocol,
        routines=ROUTINES,
        seed=seed,
        timing=Timing(first_ms=OUT_S * 1000.0, window_ms=WINDOW_S * 1000.0),
    )
    simulation = Simulation(
        topology,
        seed=seed,
        settings=WorldSettings(radio=made.radio),
        program=work.program,
        devices=work.devices,
        joined=True,
    )
    world, plan = simulation.world, work.program.plan
    groups = LiveGroups(world, plan)
    watch = GroupWatch(world, groups)
    protocol = ProtocolWatch(world, plan.genesis, follow=work.program.routines)
    simulation.run(seconds=OUT_S)
    groups.look()
    hits = hits_of(without_deployment(groups.members), topology.power_domains)
    worst = max(hits, key=lambda domain: hits[domain])
    out_ms, back_ms = OUT_S * 1000.0, (OUT_S + OUTAGE_S) * 1000.0
    inject(world, Schedule((PowerLoss(at_ms=out_ms, domain=worst), PowerBack(at_ms=back_ms, domain=worst))))
    simulation.run(seconds=OUTAGE_S + AFTER_S, progress=lambda _: watch.look())
    told = protocol.report(None)
    weak = without_deployment(watch.without_majority() or {})
    unserved = without_deployment(watch.unserved() or {})
    down_s = {group: seconds_of((*weak[group], *unserved[group])) for group in weak}
    lost = [group for group, spans in weak.items() if spans]
    lit = _lit(work.program.routines, _dark(topology, topology.power_domains[worst]))
    return {
        "groups": len(weak),
        "nodes_out": len(topology.power_domains[worst]),
        "would_lose": sum(hit.groups for hit in hits.values()) / (len(hits) * len(weak)),
        "lost_majority": len(lost),
        "lossy": sum(one.lossy for one in told.groups if one.group in weak),
        "down_s": sum(down_s.values()) / len(down_s),
        "longest_down_s": max(down_s.values()),
        "longest_down_with_majority_s": max(
            (seconds for group, seconds in down_s.items() if group not in lost), default=0
        ),
        "firings": len(lit),
        "ended": len(_ended(told.traces, lit, before_ms=back_ms)),
    }


def without_deployment(found: Mapping[GroupId, _Of]) -> dict[GroupId, _Of]:
    return {group: one for group, one in found.items() if group != DEPLOYMENT}


class Hit(NamedTuple):
    """What the loss of one domain would take."""

    groups: int
    """That would keep no majority."""
    seats: int


def hits_of(
    members: Mapping[GroupId, Sequence[NodeId]], domains: Mapping[str, Sequence[NodeId]]
) -> dict[str, Hit]:
    found = {}
    for domain, nodes in domains.items():
        taken = [(len(set(one) & set(nodes)), len(one)) for one in members.values()]
        found[domain] = Hit(sum(2 * (size - gone) <= size for gone, size in taken), sum(n for n, _ in taken))
    return found


def seconds_of(spans: Sequence[Span]) -> int:
    """How many seconds these cover together, until the end of the run."""
    end_s = OUT_S + OUTAGE_S + AFTER_S
    return len(
        {
            second
            for span in spans
            for second in range(round(span.from_s), end_s if span.to_s is None else round(span.to_s))
        }
    )


def _dark(topology: Topology, nodes: Sequence[NodeId]) -> set[DeviceId]:
    """Devices at the places of these nodes."""
    stations = {topology.nodes[node] for node in nodes}
    return {device for device, station in topology.devices.items() if station in stations}


def _lit(routines: Mapping[RoutineId, RoutineProgram], dark: set[DeviceId]) -> set[RoutineId]:
    """Routines all of whose devices have power."""
    found = set()
    for name, routine in routines.items():
        read = {DeviceId(device) for device, _ in routine.when.reads} if routine.when is not None else set()
        if not (read | routine.commands) & dark:
            found.add(name)
    return found


def _ended(traces: Sequence[TracedRun], wanted: set[RoutineId], *, before_ms: float) -> set[RoutineId]:
    return {
        one.routine
        for one in traces
        if one.routine in wanted and one.outcome == "finished" and one.lines[-1].at_ms < before_ms
    }

"""One outage of a mesh at work (experiment C): the whole protocol simulated, a power domain goes out.

In the middle of an epoch, and the one that takes most: the most groups' majorities, or where none, the most
seats. Later its power comes back. Meanwhile routines fire, each alone. Only firings count whose devices all
have power: a device at the place of a dark node is dark, whatever groups do. The group `deployment` is left
out: the paper has none.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.plan import DEPLOYMENT
from comesh.core.program import RoutineProgram
from comesh.experiments.measures.presets import Setup
from comesh.experiments.stage import Row
from comesh.sim.fault_schedules import Schedule, inject
from comesh.sim.faults import PowerBack, PowerLoss
from comesh.sim.group_watch import GroupWatch, LiveGroups, Span
from comesh.sim.protocol_watch import ProtocolWatch, TracedRun
from comesh.sim.simulation import Simulation
from comesh.sim.topology import Topology
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

"""C: a power domain goes out while the mesh works, with and without the rule on power domains.

Nodes stand in power domains by place: neighbours share one. In the middle of an epoch that domain goes out
that takes most: the most groups' majorities, or where none, the most seats. Two epochs later its power comes
back. Meanwhile routines fire, each alone. Counted are groups that lost their majority, for how long nobody
could serve them, and the firings that came to an end before the power was back.

Rules:
- only firings count whose devices all have power: a device at the place of a dark node is dark, whatever
  groups do;
- times are ours, in seconds, with both presets: an outage, the patience of drivers and the wait after a power
  loss do not shrink with the time of a hop. The preset `paper` decides the rest: locks one by one, in the
  order of devices, timeouts that are fixed. The rule is on and off with each.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.program import RoutineProgram
from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict, judged
from comesh.experiments.measures.outages import in_power_domains
from comesh.experiments.measures.presets import PRESETS, F, setup
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Row, Table
from comesh.sim.faults import PowerBack, PowerLoss, Schedule
from comesh.sim.group_watch import GroupWatch, LiveGroups, Span
from comesh.sim.injection import inject
from comesh.sim.protocol_watch import ProtocolWatch, TracedRun
from comesh.sim.simulation import Simulation
from comesh.sim.topology import Shape, Topology, make_topology
from comesh.sim.workloads import Timing, Workload, paper_workload
from comesh.sim.world_settings import WorldSettings

TIMES: dict[str, Any] = {"hop": "10ms", "epoch": "60s", "lease": "1s"}
"""Of a deployment that says nothing, with both presets."""
OUT_S = 90
"""When the domain goes out: in the middle of the second epoch."""
OUTAGE_S = 120
AFTER_S = 60
"""Looked at afterwards: longer than a group waits that lost its majority to a power loss."""
ROUTINES = 30
WINDOW_S = OUTAGE_S // ROUTINES
"""Each firing has one for itself."""


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    devices, domain_counts, seeds = (250, (5, 10, 20), 10) if full else (100, (4, 8), 3)
    for preset in PRESETS:
        for domains in domain_counts:
            for rule in (True, False):
                for seed in range(1, seeds + 1):
                    yield {
                        "preset": preset,
                        "devices": devices,
                        "domains": domains,
                        "rule": rule,
                        "seed": seed,
                    }


def run(case: Parameters) -> list[Row]:
    seed = case["seed"]
    topology = make_topology(Shape.GRID, devices=case["devices"], seed=seed)
    topology = in_power_domains(topology, case["domains"])
    made = setup(case["preset"], seed=seed, selection={"power_domain_rule": case["rule"]}, **TIMES)
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
    return [_outage(simulation, topology, work)]


def _outage(simulation: Simulation, topology: Topology, work: Workload) -> Row:
    world, plan = simulation.world, work.program.plan
    groups = LiveGroups(world, plan)
    watch = GroupWatch(world, groups)
    protocol = ProtocolWatch(world, plan.genesis, follow=work.program.routines)
    simulation.run(seconds=OUT_S)
    groups.look()
    hits = hits_of(groups.members, topology.power_domains)
    worst = max(hits, key=lambda domain: hits[domain])
    out_ms, back_ms = OUT_S * 1000.0, (OUT_S + OUTAGE_S) * 1000.0
    inject(world, Schedule((PowerLoss(at_ms=out_ms, domain=worst), PowerBack(at_ms=back_ms, domain=worst))))
    simulation.run(seconds=OUTAGE_S + AFTER_S, progress=lambda _: watch.look())
    told = protocol.report(None)
    weak, unserved = watch.without_majority() or {}, watch.unserved() or {}
    down_s = {group: seconds_of((*weak[group], *unserved[group])) for group in weak}
    lost = [group for group, spans in weak.items() if spans]
    lit = _lit(work.program.routines, _dark(topology, topology.power_domains[worst]))
    return {
        "groups": len(weak),
        "nodes_out": len(topology.power_domains[worst]),
        "would_lose": sum(hit.groups for hit in hits.values()) / (len(hits) * len(weak)),
        "lost_majority": len(lost),
        "lossy": sum(one.lossy for one in told.groups),
        "down_s": sum(down_s.values()) / len(down_s),
        "longest_down_s": max(down_s.values()),
        "longest_down_with_majority_s": max(
            (seconds for group, seconds in down_s.items() if group not in lost), default=0
        ),
        "firings": len(lit),
        "ended": len(_ended(told.traces, lit, before_ms=back_ms)),
    }


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


# -- what is told of it ------------------------------------------------------------------------------------


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in table.distinct("preset"):
        for domains in table.distinct("domains"):
            rows = table.where(preset=preset, domains=domains)
            found += _compare(rows.where(rule=True), rows.where(rule=False), f"{domains} domains, {preset}")
    return found


def _compare(on: Table, off: Table, where: str) -> list[Comparison]:
    nodes_out = max(on.numbers("nodes_out") + off.numbers("nodes_out"))
    lost_on, lost_off = sum(on.numbers("lost_majority")), sum(off.numbers("lost_majority"))
    claim = "a power domain that fails does not compromise a group (section 3.6)"
    why = (
        f"The paper takes f to be as large as the largest domain. Here f = {F} and a domain has up to "
        f"{nodes_out:.0f} nodes; the f+1 members near a cluster then often share one."
    )
    return [
        Comparison(
            what=f"groups that lose their majority, rule on, {where}",
            ours=f"{lost_on:.0f} of {sum(on.numbers('groups')):.0f} in {len(on)} outages",
            paper=claim,
            verdict=judged(agrees=lost_on == 0),
            bar="none",
            met=lost_on == 0,
        ),
        Comparison(
            what=f"groups that lose their majority, rule off, {where}",
            ours=f"{lost_off:.0f} of {sum(off.numbers('groups')):.0f} in {len(off)} outages; "
            f"of all pairs of a domain and a group {off.mean('would_lose'):.1%} would stop",
            paper=claim,
            verdict=judged(agrees=lost_off == 0),
            why=why if lost_off else "",
        ),
        Comparison(
            what=f"longest time in which nobody could serve a group, {where}",
            ours=f"{max(on.numbers('longest_down_s')):.0f} s with the rule, "
            f"{max(off.numbers('longest_down_s')):.0f} s without; the outage lasts {OUTAGE_S} s",
            verdict=Verdict.OURS,
        ),
        Comparison(
            what=f"firings that ended during the outage, {where}",
            ours=f"{_ended_share(on):.0%} with the rule, {_ended_share(off):.0%} without",
            verdict=Verdict.OURS,
        ),
    ]


def _ended_share(table: Table) -> float:
    return sum(table.numbers("ended")) / sum(table.numbers("firings"))


def draw(table: Table) -> Figure:
    figure, axes = new_figure(1, 3, width=4.2)
    named = Table(
        {
            **row,
            "line": f"rule {'on' if row['rule'] else 'off'}, {row['preset']}",
            "lost_share": row["lost_majority"] / row["groups"],
            "ended_share": row["ended"] / row["firings"],
        }
        for row in table
        if row["firings"]
    )
    for at, (column, title) in zip(
        axes,
        (
            ("lost_share", "share of groups that lost their majority"),
            ("down_s", "mean time a group was served by nobody (s)"),
            ("ended_share", "share of firings that ended during the outage"),
        ),
        strict=True,
    ):
        lines(at, named.curves("line", "domains", column))
        at.set_xticks(named.distinct("domains"))
        finish(at, x="power domains of the mesh", title=title, legend=column == "lost_share")
    return figure


CAMPAIGN = Campaign("power-domains", cases, run)
EXPERIMENT = Experiment(
    id="C",
    title="A power domain goes out",
    campaign=CAMPAIGN,
    paper="What does the rule of at most f members per power domain buy when a domain goes out?",
    compare=compare,
    draw=draw,
    about=(
        f"Grids, 40 % of the devices nodes, f = {F}, the whole protocol simulated. The worst domain goes out "
        f"for {OUTAGE_S} s, {ROUTINES} routines fire meanwhile. Served by nobody: without a leader, or with "
        "one that has no majority. A group that lost its majority to a power loss waits on after the power "
        "is back, until nothing that was sent before can still land. A signal lasts "
        f"{WINDOW_S / 4:g} s: one that comes and goes while a new leader is elected is seen by nobody, so a "
        "firing in the first seconds of the outage can be missing with the rule as well."
    ),
)

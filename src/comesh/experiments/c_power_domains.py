"""C: a power domain goes out while the mesh works, with and without the rule on power domains.

Nodes stand in power domains by place: neighbours share one. What an outage is and what is counted of it:
measures/power_outages.py.

Times are ours, in seconds, with both presets: an outage, the patience of drivers and the wait after a power
loss do not shrink with the time of a hop. The preset `paper` decides the rest: locks one by one, in the order
of devices, timeouts that are fixed. The rule is on and off with each.
"""

from collections.abc import Iterator
from typing import Any

from matplotlib.figure import Figure

from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict
from comesh.experiments.measures.outages import in_power_domains
from comesh.experiments.measures.power_outages import OUTAGE_S, ROUTINES, WINDOW_S, power_outage
from comesh.experiments.measures.presets import PRESETS, F, setup
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Row, Table
from comesh.sim.topology import Shape, make_topology

TIMES: dict[str, Any] = {"hop": "10ms", "epoch": "60s", "lease": "1s"}
"""Of a deployment that says nothing, with both presets."""


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    devices, domain_counts, seeds = (250, (5, 10, 20), 5) if full else (100, (4, 8), 3)
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
    return [power_outage(topology, made, seed=seed)]


def about_s(case: Parameters) -> float:
    """Measured with 100 and 250 devices."""
    return float(case["devices"]) / 50


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
    why = (
        "The paper takes f to be as large as the largest domain (section 2), and then no group can. Here "
        f"f = {F}, and a domain has up to {nodes_out:.0f} nodes: the f+1 members near a cluster may all be "
        "in one."
    )
    return [
        Comparison(
            what=f"groups that lose their majority, rule on, {where}",
            ours=f"{lost_on:.0f} of {sum(on.numbers('groups')):.0f} in {len(on)} outages",
            verdict=Verdict.OURS,
            bar="none",
            met=lost_on == 0,
        ),
        Comparison(
            what=f"groups that lose their majority, rule off, {where}",
            ours=f"{lost_off:.0f} of {sum(off.numbers('groups')):.0f} in {len(off)} outages; "
            f"of all pairs of a domain and a group {off.mean('would_lose'):.1%} would stop",
            verdict=Verdict.OURS,
            why=why if lost_off else "",
        ),
        Comparison(
            what=f"longest time in which nobody could serve a group, {where}",
            ours=f"{max(on.numbers('longest_down_s')):.0f} s with the rule, "
            f"{max(off.numbers('longest_down_s')):.0f} s without; the outage lasts {OUTAGE_S} s",
            verdict=Verdict.OURS,
        ),
        Comparison(
            what=f"firings that ended during the outage, of those whose devices have power, {where}",
            ours=f"{_ended_share(on):.0%} of {sum(on.numbers('firings')):.0f} with the rule, "
            f"{_ended_share(off):.0%} of {sum(off.numbers('firings')):.0f} without",
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
            "line": f"rule {'on' if row['rule'] else 'off'}, preset {row['preset']}",
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
            ("ended_share", "share of firings that ended meanwhile"),
        ),
        strict=True,
    ):
        lines(at, named.curves("line", "domains", column))
        at.set_xticks(named.distinct("domains"))
        finish(at, x="power domains of the mesh", title=title, legend=column == "lost_share")
    return figure


CAMPAIGN = Campaign("power-domains", cases, run, about_s)
EXPERIMENT = Experiment(
    id="C",
    title="A power domain goes out",
    campaign=CAMPAIGN,
    paper="What does the rule of at most f members per power domain buy when a domain goes out?",
    compare=compare,
    draw=draw,
    about=(
        f"Grids, 40 % of the devices nodes, f = {F}, the whole protocol simulated. The worst domain goes out "
        f"for {OUTAGE_S} s: that stops most groups, or, where none would, has most seats, so it may be "
        f"another with the rule than without. {ROUTINES} routines fire meanwhile, of which those count all "
        "of whose devices have power. Groups are those with a cluster. Served by nobody: without a leader, "
        "or with one that has no majority. A group that lost its majority to a power loss waits on after the "
        "power is back, "
        f"until nothing that was sent before can still land. A signal lasts {WINDOW_S / 4:g} s: one that "
        "comes and goes while a new leader is elected is seen by nobody, so a firing in the first seconds of "
        "the outage can be missing with the rule as well. The rule is on and off with either preset, "
        "whatever the preset has; times are those of a deployment."
    ),
)

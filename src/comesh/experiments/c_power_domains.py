"""C: a power domain goes out while the mesh works, with and without the rule on power domains.

Nodes stand in power domains by place: neighbours share one. What an outage is and what is counted of it:
measures/power_outages.py.

Times are ours, in seconds, with both presets: an outage, the patience of drivers and the wait after a power
loss do not shrink with the time of a hop. The preset `paper` decides the rest: locks one by one, in the order
of devices, timeouts that are fixed. The rule is on and off with each.
"""

from typing import Any

from comesh.experiments import stage
from comesh.experiments.measures.outages import in_power_domains
from comesh.experiments.measures.power_outages import power_outage
from comesh.experiments.measures.presets import PRESETS, setup
from comesh.sim.topology import Shape, make_topology

TIMES: dict[str, Any] = {"hop": "10ms", "epoch": "60s", "lease": "1s"}
"""Of a deployment that says nothing, with both presets."""


def cases(scale: stage.Scale) -> stage.Cases:
    devices, domains = (250, (5, 10, 20)) if scale is stage.Scale.FULL else (100, (4, 8))
    seeds = stage.seeds(scale, 3, 5)
    return stage.combinations(
        preset=PRESETS, devices=[devices], domains=domains, rule=(True, False), seed=seeds
    )


def run(case: stage.Parameters) -> list[stage.Row]:
    seed = case["seed"]
    topology = make_topology(Shape.GRID, devices=case["devices"], seed=seed)
    topology = in_power_domains(topology, case["domains"])
    made = setup(case["preset"], seed=seed, selection={"power_domain_rule": case["rule"]}, **TIMES)
    return [power_outage(topology, made, seed=seed)]


def about_s(case: stage.Parameters) -> float:
    """Measured with 100 and 250 devices."""
    return float(case["devices"]) / 50


def tables(table: stage.Table) -> dict[str, stage.Table]:
    by = ("preset", "domains", "rule")
    return {
        "Over all outages of a kind": stage.Table(
            dict(zip(by, key, strict=True))
            | {
                "groups": rows.total("groups"),
                "lost their majority": rows.total("lost_majority"),
                "of all pairs of a domain and a group would stop": rows.mean("would_lose"),
                "longest without service, s": max(rows.numbers("longest_down_s")),
                "firings": rows.total("firings"),
                "ended meanwhile": rows.total("ended"),
            }
            for key, rows in table.groups(*by)
        )
    }


def bars(table: stage.Table) -> list[stage.Bar]:
    return [
        stage.Bar(f"groups that lose their majority, rule on, {domains} domains, {preset}", lost, 0)
        for (preset, domains), rows in table.where(rule=True).groups("preset", "domains")
        for lost in (rows.total("lost_majority"),)
    ]


def draw(table: stage.Table) -> stage.Figure:
    named = stage.Table(row for row in table if row["firings"]).adding(
        line=lambda row: f"rule {'on' if row['rule'] else 'off'}, preset {row['preset']}",
        lost_share=lambda row: row["lost_majority"] / row["groups"],
        ended_share=lambda row: row["ended"] / row["firings"],
    )
    y = {
        "lost_share": "share of groups that lost their majority",
        "down_s": "mean time a group was served by nobody (s)",
        "ended_share": "share of firings that ended meanwhile",
    }
    return stage.facets(named, x={"domains": "power domains of the mesh"}, y=y, line="line", width=4.2)


CAMPAIGN = stage.Campaign("power-domains", cases, run, about_s)
EXPERIMENT = stage.Experiment(
    id="C",
    title="A power domain goes out",
    campaign=CAMPAIGN,
    paper="What does the rule of at most f members per power domain buy when a domain goes out?",
    tables=tables,
    draw=draw,
    bars=bars,
    about=__doc__,
)

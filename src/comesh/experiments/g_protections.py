"""G: what each protection that we have beyond the paper costs, in messages and delay.

Not in the paper. It starts from `preset: paper` and switches on one at a time what can be switched; of what
cannot be switched off the share of messages is counted. What is measured: measures/protections.py.
"""

from statistics import fmean
from typing import Any

from comesh.experiments import stage
from comesh.experiments.measures.presets import PRESETS, Preset, running
from comesh.experiments.measures.protections import cost, shares, with_floors
from comesh.sim.topology import Shape, make_topology

BASE = "paper"
ORDERED = {"order": "cluster", "batch": "none"}
BATCHED = {"order": "cluster", "batch": "cluster"}
VARIANTS: dict[str, dict[str, Any]] = {
    BASE: {},
    "order by cluster": {"locks": ORDERED},
    "order and batch by cluster": {"locks": BATCHED},
    "power domain rule": {"selection": {"power_domain_rule": True}},
    "estimated timeouts": {"timeouts": "estimated"},
    "strict durability": {"durability": "strict"},
    "lease of half the length": {"lease": "100ms"},
    "lease of twice the length": {"lease": "400ms"},
    "all but the leases": {
        "locks": BATCHED,
        "selection": {"power_domain_rule": True},
        "timeouts": "estimated",
        "durability": "strict",
    },
}
MEASURED = {
    "messages_per_node_s": "messages per node and second",
    "messages_per_run": "messages per run",
    "delay_mean": "client delay, hops",
}


def cases(scale: stage.Scale) -> stage.Cases:
    full = scale is stage.Scale.FULL
    size = {"devices": 250, "seconds": 30.0} if full else {"devices": 100, "seconds": 18.0}
    for seed in range(1, 6 if full else 2):
        for variant in VARIANTS:
            yield {"preset": Preset.PAPER, "variant": variant, "by": "variant", "seed": seed, **size}
        for preset in PRESETS:
            yield {"preset": preset, "variant": "", "by": "purpose", "seed": seed, **size}


def run(case: stage.Parameters) -> list[stage.Row]:
    seed, seconds = case["seed"], case["seconds"]
    topology = with_floors(make_topology(Shape.GRID, devices=case["devices"], seed=seed))
    if case["by"] == "purpose":
        return shares(topology, running(case["preset"], seed=seed), seed=seed, seconds=seconds)
    setup = running(case["preset"], seed=seed, **VARIANTS[case["variant"]])
    return [cost(topology, setup, seed=seed, seconds=seconds)]


def tables(table: stage.Table) -> dict[str, stage.Table]:
    costs, counted = table.where(by="variant"), table.where(by="purpose")
    columns = {
        **MEASURED,
        "bytes_per_node_s": "bytes per node and second",
        "bytes_per_run": "bytes per run",
        "commits_per_run": "commits per run",
        "appended_per_run": "journal entries per run",
    }
    base = costs.where(variant=BASE)
    against = stage.Table(
        {"variant": variant} | {name: stage.ratio(rows, base, column) for column, name in columns.items()}
        for (variant,), rows in costs.groups("variant")
        if variant != BASE
    )
    parts = {"share_of_messages": "share of the messages", "share_of_bytes": "share of the bytes"}
    return {
        "Measured": stage.means(costs, ("variant",), columns),
        "Against the preset `paper`": against,
        "Counted, by what messages are for": stage.means(counted, ("preset", "purpose"), parts),
    }


def draw(table: stage.Table) -> stage.Figure:
    costs = table.where(by="variant")
    variants = costs.distinct("variant")
    figure, axes = stage.new_figure(1, len(MEASURED), width=4.0)
    for one, (column, name) in zip(axes, MEASURED.items(), strict=True):
        values = [costs.where(variant=variant).numbers(column) for variant in variants]
        errors = [stage.half_width(some) for some in values]
        one.barh(
            variants,
            [fmean(some) for some in values],
            xerr=errors,
            color=stage.COLOURS[0],
            ecolor=stage.COLOURS[6],
        )
        one.tick_params(axis="y", labelsize=7)
        one.invert_yaxis()
        stage.finish(one, x=name, legend=False, zero=False)
    return figure


CAMPAIGN = stage.Campaign("protections", cases, run, about_s=lambda _: 10.0)
EXPERIMENT = stage.Experiment(
    id="G",
    title="What protections cost",
    campaign=CAMPAIGN,
    paper="What does each protection cost in messages and delay, against the paper's protocol?",
    tables=tables,
    draw=draw,
    about=__doc__,
)

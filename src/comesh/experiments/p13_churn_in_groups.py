"""P13: election, quorum and state transfer while 0 to 80 % of the nodes come or go.

The paper's defaults: grids of 250 devices, 100 of them nodes, f = 2. What is measured:
measures/mesh_operations.py; what churn is: measures/group_churn.py.
Means are over all operations of all seeds, in hops. An election lasts from the winner's first question, the
pre-vote, which the paper has not.
"""

from comesh.experiments import stage
from comesh.experiments.measures.group_churn import LIVED, under_churn
from comesh.experiments.measures.mesh_operations import (
    OPERATIONS,
    draw_operations,
    table_operations,
)
from comesh.experiments.measures.presets import PRESETS, Preset, running
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
SHARES = (0, 20, 40, 60, 80)
"""Percent of the nodes."""
QUICK_SHARES = (0, 40, 60)
MAX_INCREASE, FLAT_TO = 1.25, 60
"""Delays grow by no more than this up to that churn."""
FEWEST = 8
"""Elections at one churn; of fewer it is not judged how long they take: one takes half to twice the mean."""
QUICK_EPOCHS = {Preset.PAPER: 10.0, Preset.DEFAULT: 1.5}
FULL_EPOCHS = {Preset.PAPER: 20.0, Preset.DEFAULT: 6.0}
"""How long nodes come and go; the paper does not say."""


def cases(scale: stage.Scale) -> stage.Cases:
    shares, epochs = (SHARES, FULL_EPOCHS) if scale is stage.Scale.FULL else (QUICK_SHARES, QUICK_EPOCHS)
    seeds = stage.seeds(scale, 2, 10)
    for case in stage.combinations(preset=PRESETS, devices=[DEVICES], churn=shares, seed=seeds):
        yield {**case, "epochs": epochs[case["preset"]]}


def run(case: stage.Parameters) -> list[stage.Row]:
    topology = make_topology(Shape.GRID, devices=case["devices"], seed=case["seed"])
    setup = running(case["preset"], seed=case["seed"])
    return under_churn(topology, setup, share=case["churn"] / 100, seed=case["seed"], epochs=case["epochs"])


def tables(table: stage.Table) -> dict[str, stage.Table]:
    served = stage.means(table.where(operation="served"), ("preset", "churn"), {"share": "share of the time"})
    counts = stage.Table(
        {"preset": preset, "churn": churn}
        | {one: int(rows.where(operation=one).total("count")) for one in OPERATIONS}
        for (preset, churn), rows in table.groups("preset", "churn")
    )
    return {
        **table_operations(table, ("preset",), "churn", beside=(LIVED,)),
        "Groups are served": served,
        "How many there were; without churn every leader is crashed once": counts,
    }


def bars(table: stage.Table) -> list[stage.Bar]:
    """Elections of a share at which hardly a leader happened to crash are not judged."""
    found = []
    for (preset,), rows in table.groups("preset"):
        for operation in OPERATIONS:
            here = rows.where(operation=operation)
            calm = stage.pooled(here.where(churn=0), "mean", "count")
            for share in rows.distinct("churn"):
                if not 0 < share <= FLAT_TO:
                    continue
                churned = here.where(churn=share)
                few = operation == "election" and churned.total("count") < FEWEST
                times = stage.pooled(churned, "mean", "count") / calm
                unjudged = stage.few_seeds(rows) or (f"fewer than {FEWEST} elections" if few else "")
                name = f"{operation} at {share} % churn / without, {preset}"
                found.append(stage.Bar(name, times, MAX_INCREASE, unjudged=unjudged))
    return found


def draw(table: stage.Table) -> stage.Figure:
    return draw_operations(table, {"churn": "nodes that come or go, %"})


def about_s(case: stage.Parameters) -> float:
    """An epoch is 2 s with `paper` and 20 s by default, of which each second costs less."""
    return float(case["epochs"]) * (1.0 if case["preset"] == Preset.PAPER else 3.5)


CAMPAIGN = stage.Campaign("churn-in-groups", cases, run, about_s)
EXPERIMENT = stage.Experiment(
    id="P13",
    title="Operations inside groups, under churn",
    campaign=CAMPAIGN,
    paper="Election, quorum and state transfer are unaffected until about 60 % of the nodes churn.",
    tables=tables,
    draw=draw,
    bars=bars,
    about=__doc__,
)

"""P1, the paper's table 2: how many candidates locality-sensitive hashing gives a selection.

Grids of N devices, 40 % of them nodes, m = 2, l = 2, r = 4; the mean over all groups, epochs and seeds of the
nodes that share a bucket with the centre of the group's cluster.
"""

from collections.abc import Iterator
from statistics import fmean

from matplotlib.figure import Figure

from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, judged, within
from comesh.experiments.measures.presets import PRESETS, by_preset, setup
from comesh.experiments.measures.selections import plan_of, views
from comesh.experiments.plots import finish, means, new_figure, paper_line
from comesh.experiments.table import Row, Table
from comesh.sim.topology import Shape, make_topology

PAPER = {50: 13.0, 250: 34.1, 500: 50.8, 750: 52.8, 1000: 66.9}
TOLERANCE = 0.25
EPOCHS = 8


def cases(scale: Scale) -> Iterator[Parameters]:
    for preset in PRESETS:
        for devices in PAPER:
            for seed in range(1, 21 if scale is Scale.FULL else 6):
                yield {"preset": preset, "devices": devices, "seed": seed}


def run(case: Parameters) -> list[Row]:
    topology = make_topology(Shape.GRID, devices=case["devices"], seed=case["seed"])
    plan = plan_of(topology, setup(case["preset"], seed=case["seed"]).selection)
    counts = [
        len(view.candidates(cluster.group)) for view in views(plan, EPOCHS) for cluster in plan.clusters
    ]
    return [{"candidates": fmean(counts)}]


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset, rows in by_preset(table).items():
        for (devices,), candidates in rows.summary(("devices",), "candidates").items():
            paper = PAPER[devices]
            agrees = within(candidates, paper, TOLERANCE)
            at = rows.where(devices=devices).numbers("candidates")
            found.append(
                Comparison(
                    what=f"candidates at N = {devices}, {preset}",
                    ours=f"{candidates:.1f}",
                    paper=f"{paper}",
                    verdict=judged(agrees=agrees),
                    why=""
                    if agrees
                    else f"the mean of {len(at)} meshes, whose own means go from {min(at):.1f} to "
                    f"{max(at):.1f}: one draw of the hash functions differs much from the next",
                    bar="within 25 %",
                    met=agrees,
                )
            )
    return found


def draw(table: Table) -> Figure:
    figure, axes = new_figure()
    named = Table(
        {**row, "preset": f"ours, {preset}"} for preset, rows in by_preset(table).items() for row in rows
    )
    means(axes, named, "preset", "devices", "candidates")
    paper_line(axes, PAPER)
    finish(axes, x="devices (40 % of them nodes)", y="candidates per selection")
    return figure


CAMPAIGN = Campaign("candidates", cases, run, about_s=lambda _: 0.05)
EXPERIMENT = Experiment(
    id="P1",
    title="Candidates per selection",
    campaign=CAMPAIGN,
    paper="Table 2: 13.0, 34.1, 50.8, 52.8 and 66.9 candidates at N = 50, 250, 500, 750 and 1,000.",
    compare=compare,
    draw=draw,
    about=(
        "Grids at unit spacing. The presets differ in who leads near members, on which candidates do not "
        "depend but through who looked after what before."
    ),
)

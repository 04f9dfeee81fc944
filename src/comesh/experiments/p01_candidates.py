"""P1, the paper's table 2: how many candidates locality-sensitive hashing gives a selection.

Grids of N devices, 40 % of them nodes, m = 2, l = 2, r = 4; the mean over all groups, epochs and seeds of the
nodes that share a bucket with the centre of the group's cluster.
"""

from statistics import fmean

from comesh.experiments import stage
from comesh.experiments.measures.presets import PRESETS, setup
from comesh.experiments.measures.selections import plan_of, views
from comesh.sim.topology import Shape, make_topology

PAPER = {50: 13.0, 250: 34.1, 500: 50.8, 750: 52.8, 1000: 66.9}
TOLERANCE = 0.25
EPOCHS = 8


def cases(scale: stage.Scale) -> stage.Cases:
    return stage.combinations(preset=PRESETS, devices=PAPER, seed=stage.seeds(scale, 5, 20))


def run(case: stage.Parameters) -> list[stage.Row]:
    topology = make_topology(Shape.GRID, devices=case["devices"], seed=case["seed"])
    plan = plan_of(topology, setup(case["preset"], seed=case["seed"]).selection)
    found = (len(view.candidates(one.group)) for view in views(plan, EPOCHS) for one in plan.clusters)
    return [{"candidates": fmean(found)}]


def tables(table: stage.Table) -> dict[str, stage.Table]:
    found = stage.means(stage.merged(table), ("preset", "devices"), ("candidates",))
    return {"Candidates per selection": found.adding(paper=lambda row: PAPER[row["devices"]])}


def bars(table: stage.Table) -> list[stage.Bar]:
    return [
        stage.Bar(f"off the paper's candidates, N = {devices}, {preset}", off, TOLERANCE)
        for (preset, devices), rows in stage.merged(table).groups("preset", "devices")
        for off in (abs(rows.mean("candidates") / PAPER[devices] - 1),)
    ]


def draw(table: stage.Table) -> stage.Figure:
    figure = stage.facets(stage.merged(table), x=stage.BY_SIZE, y={"candidates": "candidates"}, line="preset")
    stage.paper_line(figure.axes[0], PAPER)
    return figure


CAMPAIGN = stage.Campaign("candidates", cases, run, about_s=lambda _: 0.05)
EXPERIMENT = stage.Experiment(
    id="P1",
    title="Candidates per selection",
    campaign=CAMPAIGN,
    paper="Table 2: 13.0, 34.1, 50.8, 52.8 and 66.9 candidates at N = 50, 250, 500, 750 and 1,000.",
    about=__doc__,
    tables=tables,
    draw=draw,
    bars=bars,
)

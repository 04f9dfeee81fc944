"""P1, the paper's table 2: how many candidates locality-sensitive hashing gives a selection.

Grids of N devices, 40 % of them nodes, m = 2, l = 2, r = 4; the mean over all groups, epochs and seeds of the
nodes that share a bucket with the centre of the group's cluster.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean

from matplotlib.figure import Figure

from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, judged, within
from comesh.experiments.measures.presets import PRESETS, by_preset, setup
from comesh.experiments.measures.selections import plan_of, views
from comesh.experiments.plots import finish, means, new_figure, paper_line, uncertainty
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
            why, short = off_by(rows.where(devices=devices).numbers("candidates"), paper)
            found.append(
                Comparison(
                    what=f"candidates at N = {devices}, {preset}",
                    ours=f"{candidates:.1f}",
                    paper=f"{paper}",
                    verdict=judged(agrees=agrees),
                    why="" if agrees else why,
                    in_short="" if agrees else f"At N = {devices} {short}.",
                    bar="within 25 %",
                    met=agrees,
                )
            )
    return found


def off_by(of_meshes: Sequence[float], paper: float, *, known: str = "") -> tuple[str, str]:
    """Why the mean of meshes is not the paper's, at length and in short: whether their draw explains it.

    known: what is known of it otherwise.
    """
    ours, may_be_off = fmean(of_meshes), uncertainty(of_meshes)
    off = abs(ours - paper)
    there_are = f"there are {'more' if ours > paper else 'fewer'} candidates than the paper's"
    if len(of_meshes) == 1:
        return "one mesh, which does not tell how much others differ", f"{there_are}, of one mesh"
    told = (
        f"the mean of {len(of_meshes)} meshes, whose own means go from {min(of_meshes):.1f} to "
        f"{max(of_meshes):.1f}: it may be {may_be_off:.1f} off (95 %) for the draw of meshes and hash "
        f"functions, and is {off:.1f} off the paper's"
    )
    if off <= may_be_off:
        return told, f"{there_are}, by no more than another draw of meshes and hash functions may change"
    return (
        f"{told}, which that draw does not explain; {known or 'what does is not known'}",
        f"{there_are}, by more than the draw of meshes and hash functions explains",
    )


def draw(table: Table) -> Figure:
    figure, axes = new_figure()
    named = Table(
        {**row, "preset": f"ours, preset {preset}"}
        for preset, rows in by_preset(table).items()
        for row in rows
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

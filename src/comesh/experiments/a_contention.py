"""A: all lock strategies under contention, from routines that share nothing to routines that share 90 %.

`measures/contention.py` says what contends. Sequential is measured batched (the locks of one cluster in one
message, in the order of clusters: our default) and not (one by one, in the order of devices: the paper's).
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from comesh.core.strategies import Strategy
from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict
from comesh.experiments.measures.contention import contend
from comesh.experiments.measures.firings import timed
from comesh.experiments.measures.presets import PRESETS
from comesh.experiments.plots import finish, means, new_figure
from comesh.experiments.table import Row, Table
from comesh.sim.topology import Shape, make_topology

DEVICES = 100
BATCHED = {"batch": "cluster", "order": "cluster"}
UNBATCHED = {"batch": "none", "order": "device"}
WAYS = {
    "sequential batched": (Strategy.SEQUENTIAL, BATCHED),
    "sequential unbatched": (Strategy.SEQUENTIAL, UNBATCHED),
    "optimistic": (Strategy.OPTIMISTIC, BATCHED),
    "priority": (Strategy.PRIORITY, BATCHED),
}
OVERLAPS = tuple(tenth / 10 for tenth in range(10))
QUICK_OVERLAPS = (0.0, 0.5, 0.9)
HOPS, QUICK_HOPS = 8000, 4000


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    for preset in PRESETS:
        for way in WAYS:
            for overlap in OVERLAPS if full else QUICK_OVERLAPS:
                for seed in range(1, 6 if full else 2):
                    yield {
                        "preset": str(preset),
                        "way": way,
                        "overlap": overlap,
                        "hops": HOPS if full else QUICK_HOPS,
                        "seed": seed,
                    }


def run(case: Parameters) -> list[Row]:
    strategy, locks = WAYS[case["way"]]
    topology = make_topology(Shape.GRID, devices=DEVICES, seed=case["seed"])
    made = timed(case["preset"], case["seed"], locks=locks)
    return [
        contend(
            topology,
            made,
            strategy=strategy,
            overlap=case["overlap"],
            hops=case["hops"],
            seed=case["seed"],
        )
    ]


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in table.distinct("preset"):
        for overlap in (min(table.distinct("overlap")), max(table.distinct("overlap"))):
            for way in WAYS:
                here = table.where(preset=preset, overlap=overlap, way=way)
                found.append(
                    Comparison(
                        what=f"{way}, {overlap:.0%} overlap, {preset}",
                        ours=(
                            f"firing to EXECUTING: median {here.mean('wait_median_hops'):.0f} hops, "
                            f"p90 {here.mean('wait_p90_hops'):.0f}, "
                            f"longest {max(here.numbers('wait_longest_hops')):.0f}; "
                            f"{here.mean('runs_per_1000_hops'):.1f} runs per 1,000 hops; "
                            f"{here.mean('attempts_mean'):.2f} attempts per run; the unluckiest routine "
                            f"finished {min(here.numbers('fewest_runs')):.0f}; "
                            f"{sum(here.numbers('still_waiting')):.0f} of {sum(here.numbers('runs')):.0f} "
                            "runs still waited at the end"
                        ),
                        verdict=Verdict.OURS,
                        why=_who_starves(here),
                    )
                )
    return found


def _who_starves(here: Table) -> str:
    """The median says little of a way in which few come through often, and others never."""
    starved = sum(count == 0 for count in here.numbers("fewest_runs"))
    if not starved:
        return ""
    return (
        f"in {starved} of {len(here)} meshes a routine never finished: it counts once, for as long as it "
        "waited, beside the many short waits of others"
    )


def draw(table: Table) -> Figure:
    presets = table.distinct("preset")
    shown = {
        "wait_median_hops": "median wait (hops)",
        "wait_p90_hops": "p90 wait (hops)",
        "wait_longest_hops": "longest wait (hops)",
        "runs_per_1000_hops": "runs per 1,000 hops",
    }
    figure, axes = new_figure(len(presets), len(shown), width=3.6)
    for row, preset in enumerate(presets):
        for column, (name, label) in enumerate(shown.items()):
            means(axes[row][column], table.where(preset=preset), "way", "overlap", name)
            finish(axes[row][column], x="overlap", y=label, title=preset, legend=not row and not column)
    return figure


CAMPAIGN = Campaign("contention", cases, run, about_s=lambda _: 4.0)
EXPERIMENT = Experiment(
    id="A",
    title="Lock strategies under contention",
    campaign=CAMPAIGN,
    paper="Which strategy waits how long as routines share more of their devices, and does anybody starve?",
    compare=compare,
    draw=draw,
    about=(
        "16 routines of four devices each, on a grid of 100. A share `overlap` of the devices that they "
        "want is drawn from the same four. Each is fired again 100 to 300 hops after its run ended. Waits "
        "are from the firing to EXECUTING; one that still lasts at the end counts as far as it came. "
        "Every way of locking is measured with the other settings of either preset, whatever its own way is. "
        "Rows: no overlap and the most; the figure has those between."
    ),
)

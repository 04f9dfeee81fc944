"""A: all lock strategies under contention, from routines that share nothing to routines that share 90 %.

`measures/contention.py` says what contends. Sequential is measured batched (the locks of one cluster in one
message, in the order of clusters: our default) and not (one by one, in the order of devices: the paper's).
"""

from comesh.core.strategies import Strategy
from comesh.experiments import stage
from comesh.experiments.measures.contention import contend
from comesh.experiments.measures.firings import timed
from comesh.experiments.measures.presets import PRESETS
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


def cases(scale: stage.Scale) -> stage.Cases:
    full = scale is stage.Scale.FULL
    return stage.combinations(
        preset=PRESETS,
        way=WAYS,
        overlap=OVERLAPS if full else QUICK_OVERLAPS,
        hops=[HOPS if full else QUICK_HOPS],
        seed=stage.seeds(scale, 1, 5),
    )


def run(case: stage.Parameters) -> list[stage.Row]:
    strategy, locks = WAYS[case["way"]]
    topology = make_topology(Shape.GRID, devices=DEVICES, seed=case["seed"])
    made = timed(case["preset"], case["seed"], locks=locks)
    asked = {name: case[name] for name in ("overlap", "hops", "seed")}
    return [contend(topology, made, strategy=strategy, **asked)]


SHOWN = {
    "wait_median_hops": "median wait (hops)",
    "wait_p90_hops": "p90 wait (hops)",
    "wait_longest_hops": "longest wait (hops)",
    "runs_per_1000_hops": "runs per 1,000 hops",
}


def tables(table: stage.Table) -> dict[str, stage.Table]:
    columns = {**SHOWN, "attempts_mean": "attempts per run", "fewest_runs": "runs of the unluckiest routine"}
    return {"Firing to EXECUTING": stage.means(table, ("preset", "overlap", "way"), columns)}


def draw(table: stage.Table) -> stage.Figure:
    return stage.facets(table, x={"overlap": "overlap"}, y=SHOWN, line="way", row="preset", width=3.6)


CAMPAIGN = stage.Campaign("contention", cases, run, about_s=lambda _: 4.0)
EXPERIMENT = stage.Experiment(
    id="A",
    title="Lock strategies under contention",
    campaign=CAMPAIGN,
    paper="Which strategy waits how long as routines share more of their devices, and does anybody starve?",
    tables=tables,
    draw=draw,
    about=__doc__,
)

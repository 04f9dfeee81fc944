"""P7: client delay against the number of devices, by topology and by lock strategy, nobody else active.

SLA is our `sequential`, OLA our `optimistic`; `priority`, which asks as OLA does where nobody competes, is
measured at one size for F. Client delay: the leader of the trigger's device has read that the clause is true
-> the first command leaves. The wait until it is read is polling, and has a column of its own.
`measures/firings.py` says more.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from comesh.core.strategies import Strategy
from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict, judged
from comesh.experiments.measures.firings import mean_apart, measure, timed
from comesh.experiments.measures.presets import PRESETS
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Row, Table
from comesh.experiments.verdicts import grows_slower, growth, mean_ratio
from comesh.sim.topology import Shape, make_topology

SHAPES = (Shape.GRID, Shape.RANDOM, Shape.CLUSTERED)
NAMES = {Strategy.SEQUENTIAL: "SLA", Strategy.OPTIMISTIC: "OLA", Strategy.PRIORITY: "priority"}
SIZES = (50, 100, 250, 500, 750)
QUICK_SIZES = (50, 150)
PRIORITY_SIZES = (50, 250)
ROUTINES, QUICK_ROUTINES = 5, 3


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    for preset in PRESETS:
        for devices in SIZES if full else QUICK_SIZES:
            for shape in SHAPES:
                for strategy in Strategy:
                    if strategy is Strategy.PRIORITY and devices not in PRIORITY_SIZES:
                        continue
                    for seed in range(1, 11 if full else 2):
                        yield {
                            "preset": str(preset),
                            "devices": devices,
                            "topology": str(shape),
                            "strategy": str(strategy),
                            "routines": ROUTINES if full else QUICK_ROUTINES,
                            "seed": seed,
                        }


def run(case: Parameters) -> list[Row]:
    topology = make_topology(Shape(case["topology"]), devices=case["devices"], seed=case["seed"])
    made = timed(case["preset"], case["seed"])
    strategy = Strategy[case["strategy"].upper()]
    found = measure(topology, made, strategy=strategy, routines=case["routines"], seed=case["seed"])
    apart = mean_apart(topology)
    return [{**row, "apart_hops": apart} for row in found.rows()]


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in table.distinct("preset"):
        of_preset = table.where(preset=preset)
        found += [
            _growth(preset, of_preset, Strategy.SEQUENTIAL),
            _growth(preset, of_preset, Strategy.OPTIMISTIC),
            _below(preset, of_preset),
            *_topologies(preset, of_preset),
            _polling(preset, of_preset),
        ]
    return found


def _growth(preset: str, table: Table, strategy: Strategy) -> Comparison:
    here = table.where(strategy=str(strategy))
    curves = here.curves("topology", "devices", "client_hops")
    together = {at: hops for (at,), hops in here.summary(("devices",), "client_hops").items()}
    sizes = table.distinct("devices")
    told = (
        f"{growth(together):.1f}x (" + ", ".join(f"{n} {growth(one):.1f}x" for n, one in curves.items()) + ")"
    )
    gradual = grows_slower(together)
    return Comparison(
        what=f"client delay from N = {min(sizes)} to {max(sizes)}, {NAMES[strategy]}, {preset}",
        ours=told,
        paper="grows gradually",
        verdict=judged(agrees=gradual),
        why="" if gradual else "the mean of the topologies does not grow, or grows as fast as the mesh",
    )


def _below(preset: str, table: Table) -> Comparison:
    by_size = {
        strategy: table.where(strategy=str(strategy)).summary(("devices",), "client_hops")
        for strategy in (Strategy.SEQUENTIAL, Strategy.OPTIMISTIC)
    }
    plain = {strategy: {at[0]: hops for at, hops in one.items()} for strategy, one in by_size.items()}
    ratio = mean_ratio(plain[Strategy.OPTIMISTIC], plain[Strategy.SEQUENTIAL])
    return Comparison(
        what=f"client delay of OLA against SLA, {preset}",
        ours=f"{ratio:.2f} of it",
        paper="below",
        verdict=judged(agrees=ratio < 1),
        why="" if ratio < 1 else "one lock after the other took no longer than all at once",
    )


def _topologies(preset: str, table: Table) -> Iterator[Comparison]:
    serial = table.where(strategy=str(Strategy.SEQUENTIAL))
    curves = serial.curves("topology", "devices", "client_hops")
    grid = serial.where(topology=str(Shape.GRID))
    for shape in (Shape.RANDOM, Shape.CLUSTERED):
        ratio = mean_ratio(curves[str(Shape.GRID)], curves[str(shape)])
        agrees = ratio > 1
        yield Comparison(
            what=f"client delay on the grid against {shape}, SLA, {preset}",
            ours=f"{ratio:.2f}x",
            paper="above",
            verdict=judged(agrees=agrees),
            why="" if agrees else _why_not_above(grid, serial.where(topology=str(shape))),
        )


def _why_not_above(grid: Table, other: Table) -> str:
    ideal = grid.mean("ideal_hops") / other.mean("ideal_hops")
    apart, others_apart = grid.mean("apart_hops"), other.mean("apart_hops")
    told = (
        f"the ideal delay, which is hops alone, is {ideal:.2f}x; two nodes are {apart:.1f} hops apart on the "
        f"grid and {others_apart:.1f} there"
    )
    if apart < others_apart:
        told += ". A reach of 1.41 spacings covers up to 18 neighbours on a grid, and fewer at random places"
    return told


def _polling(preset: str, table: Table) -> Comparison:
    wait, lost = table.mean("polling_hops"), sum(table.numbers("lost"))
    return Comparison(
        what=f"polling wait before it (not part of the delay), {preset}",
        ours=f"{wait:.0f} hops on average; {lost:.0f} of {len(table)} firings not seen",
        verdict=Verdict.OURS,
    )


def draw(table: Table) -> Figure:
    presets = table.distinct("preset")
    figure, axes = new_figure(len(presets), len(SHAPES), width=3.9)
    for row, preset in enumerate(presets):
        for column, shape in enumerate(SHAPES):
            here = table.where(preset=preset, topology=str(shape))
            curves = here.curves("strategy", "devices", "client_hops")
            named = {NAMES[Strategy[name.upper()]]: curve for name, curve in curves.items()}
            lines(axes[row][column], named)
            finish(axes[row][column], x="devices", y="client delay (hops)", title=f"{shape}, {preset}")
    return figure


CAMPAIGN = Campaign("client-delay", cases, run)
EXPERIMENT = Experiment(
    id="P7",
    title="Client delay",
    campaign=CAMPAIGN,
    paper=(
        "Grows gradually with N, whatever the topology or the strategy; OLA is below SLA; the grid is above "
        "random and clustered, which are alike."
    ),
    compare=compare,
    draw=draw,
    about=(
        "From the reading at the leader of the trigger's device to the first command; no other routine is "
        "active. Five routines per case, each fired once, on devices drawn uniformly. With the preset "
        "`paper` epochs last 200 hops, so a run often meets a handoff; with `default` 6,000."
    ),
)

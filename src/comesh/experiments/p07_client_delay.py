"""P7: client delay against the number of devices, by topology and by lock strategy, nobody else active.

SLA is our `sequential`, OLA our `optimistic`; `priority`, which asks as OLA does where nobody competes, is
measured at few sizes for F. Client delay: the leader of the trigger's device has read that the clause is true
-> the first command leaves. The wait until it is read is polling, and has a column of its own.
`measures/firings.py` says more.
"""

from collections.abc import Iterator
from statistics import median

from matplotlib.figure import Figure

from comesh.core.strategies import Strategy
from comesh.experiments.campaign import (
    Campaign,
    Comparison,
    Experiment,
    Parameters,
    Scale,
    Verdict,
    judged,
    within,
)
from comesh.experiments.measures.firings import mean_apart, measure, timed
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.plots import finish, means, new_figure
from comesh.experiments.table import Row, Table
from comesh.experiments.verdicts import by_devices, growth, mean_ratio, most_growth, slow_runs, with_lost
from comesh.sim.topology import Shape, make_topology

SHAPES = (Shape.GRID, Shape.RANDOM, Shape.CLUSTERED)
NAMES = {Strategy.SEQUENTIAL: "SLA", Strategy.OPTIMISTIC: "OLA", Strategy.PRIORITY: "priority"}
SIZES = (50, 250, 750)
QUICK_SIZES = (50, 150)
PRIORITY_SIZES = (50, 250)
ROUTINES, QUICK_ROUTINES = 5, 3
ALIKE = 0.1
"""Delays that differ by no more are alike."""
SECONDS_PER_DEVICE = {Preset.PAPER: 0.03, Preset.DEFAULT: 0.006}


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
        of_preset = with_lost(table.where(preset=preset))
        found += [
            *_growths(preset, of_preset),
            _below(preset, of_preset),
            *_topologies(preset, of_preset),
            _polling(preset, of_preset),
        ]
    return found


def _growths(preset: str, table: Table) -> Iterator[Comparison]:
    for strategy in (Strategy.SEQUENTIAL, Strategy.OPTIMISTIC):
        for shape in SHAPES:
            here = table.where(strategy=str(strategy), topology=str(shape))
            curve = by_devices(here, "client_hops")
            least, most = min(curve), max(curve)
            gradual = 1 < growth(curve) < most_growth(curve)
            yield Comparison(
                what=f"client delay from N = {least} to {most}, {shape}, {NAMES[strategy]}, {preset}",
                ours=f"{growth(curve):.2f}x ({curve[least]:.1f} to {curve[most]:.1f} hops)",
                paper=f"grows gradually: less than {most_growth(curve):.0f}x",
                verdict=judged(agrees=gradual),
                why="" if gradual else _why_not_gradual(here, least, most),
            )


def _why_not_gradual(here: Table, least: int, most: int) -> str:
    ideal, medians = by_devices(here, "ideal_hops"), by_devices(here, "client_hops", median)
    small, large = here.where(devices=least), here.where(devices=most)
    return (
        f"the ideal delay grows {growth(ideal):.2f}x, the median of ours {growth(medians):.2f}x; slower than "
        f"three times their ideal are {len(slow_runs(small))} of {len(small)} runs at N = {least} and "
        f"{len(slow_runs(large))} of {len(large)} at {most}"
    )


def _below(preset: str, table: Table) -> Comparison:
    ratios: dict[Shape, float] = {}
    for shape in SHAPES:
        serial, parallel = (
            by_devices(table.where(strategy=str(strategy), topology=str(shape)), "client_hops")
            for strategy in (Strategy.SEQUENTIAL, Strategy.OPTIMISTIC)
        )
        ratios[shape] = mean_ratio(parallel, serial)
    agrees = max(ratios.values()) < 1
    return Comparison(
        what=f"client delay of OLA against SLA, {preset}",
        ours=", ".join(f"{shape} {ratio:.2f}" for shape, ratio in ratios.items()) + " of it",
        paper="below",
        verdict=judged(agrees=agrees),
        why="" if agrees else "one lock after the other took no longer than all at once on one of them",
    )


def _topologies(preset: str, table: Table) -> Iterator[Comparison]:
    serial = table.where(strategy=str(Strategy.SEQUENTIAL))
    curves = {shape: by_devices(serial.where(topology=str(shape)), "client_hops") for shape in SHAPES}
    for shape in (Shape.RANDOM, Shape.CLUSTERED):
        ratio = mean_ratio(curves[Shape.GRID], curves[shape])
        agrees = ratio > 1
        yield Comparison(
            what=f"client delay on the grid against {shape}, SLA, {preset}",
            ours=f"{ratio:.2f}x",
            paper="above",
            verdict=judged(agrees=agrees),
            why="" if agrees else _why_not_above(serial, shape),
        )
    ratio = mean_ratio(curves[Shape.CLUSTERED], curves[Shape.RANDOM])
    yield Comparison(
        what=f"client delay on clustered against random, SLA, {preset}",
        ours=f"{ratio:.2f}x",
        paper="alike",
        verdict=judged(agrees=within(ratio, 1, ALIKE)),
        why="" if within(ratio, 1, ALIKE) else _why_apart(serial),
    )


def _why_not_above(serial: Table, shape: Shape) -> str:
    grid, other = (serial.where(topology=str(one)) for one in (Shape.GRID, shape))
    ideal = grid.mean("ideal_hops") / other.mean("ideal_hops")
    apart, others_apart = grid.mean("apart_hops"), other.mean("apart_hops")
    told = (
        f"the ideal delay, which is hops alone, is {ideal:.2f}x; two nodes are {apart:.1f} hops apart on the "
        f"grid and {others_apart:.1f} there"
    )
    if apart < others_apart:
        told += ". A reach of 1.41 spacings covers up to 18 neighbours on a grid, and fewer at random places"
    return told


def _why_apart(serial: Table) -> str:
    clustered, random = (serial.where(topology=str(one)) for one in (Shape.CLUSTERED, Shape.RANDOM))
    ideal = clustered.mean("ideal_hops") / random.mean("ideal_hops")
    return (
        f"the ideal delay is {ideal:.2f}x; slower than three times it are {len(slow_runs(clustered))} of "
        f"{len(clustered)} runs on clustered and {len(slow_runs(random))} of {len(random)} on random"
    )


def _polling(preset: str, table: Table) -> Comparison:
    wait, lost = table.mean("polling_hops"), sum(table.numbers("lost"))
    return Comparison(
        what=f"polling wait before it (not part of the delay), {preset}",
        ours=f"{wait:.0f} hops on average; {lost:.0f} of {len(table)} firings not seen",
        verdict=Verdict.OURS,
    )


def _name(strategy: str) -> str:
    return NAMES[Strategy[strategy.upper()]]


def draw(table: Table) -> Figure:
    presets = table.distinct("preset")
    figure, axes = new_figure(len(presets), len(SHAPES), width=3.9)
    for row, preset in enumerate(presets):
        for column, shape in enumerate(SHAPES):
            here = with_lost(table.where(preset=preset, topology=str(shape)))
            means(axes[row][column], here, "strategy", "devices", "client_hops", called=_name)
            finish(axes[row][column], x="devices", y="client delay (hops)", title=f"{shape}, {preset}")
    return figure


def about_s(case: Parameters) -> float:
    return float(SECONDS_PER_DEVICE[Preset(case["preset"])] * case["devices"])


CAMPAIGN = Campaign("client-delay", cases, run, about_s)
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
        f"active. {QUICK_ROUTINES} routines per case at the quick scale, {ROUTINES} at the full one, each "
        "fired once, on devices drawn uniformly. Gradually: it grows, by less than the 4x that the paper "
        "states for 50 to 750 (P9), and by less than N. Alike: within 10 %. A firing that was lost counts as "
        "long as it had. With the preset `paper` epochs last 200 hops, so a run often meets a handoff; with "
        "`default` 6,000. Here and in P8, P9, A and B devices are read and members are probed every 100 "
        "hops with either preset; in P11 to P13, D, E and G every 20 with `paper`."
    ),
)

"""P7: client delay against the number of devices, by topology and by lock strategy, nobody else active.

SLA is our `sequential`, OLA our `optimistic`; `priority`, which asks as OLA does where nobody competes, is
measured at few sizes for F. Client delay: the leader of the trigger's device has read that the clause is true
-> the first command leaves. The wait until it is read is polling, and has a column of its own.
`measures/firings.py` says more.
"""

from collections.abc import Iterator, Mapping
from math import sqrt
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
from comesh.experiments.verdicts import (
    CHANCE,
    INTERVALS,
    OF_SIZES,
    Interval,
    by_devices,
    either_way,
    growth,
    growth_interval,
    max_growth,
    mean_ratio,
    ratio_interval,
    slow_runs,
    told_growth,
    with_lost,
)
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
            curve, interval = by_devices(here, "client_hops"), growth_interval(here, "client_hops")
            least, most = min(curve), max(curve)
            gradual = _is_gradual(curve)
            either = either_way(interval, max_growth(curve)) or either_way(interval, 1)
            yield Comparison(
                what=f"client delay from N = {least} to {most}, {shape}, {NAMES[strategy]}, {preset}",
                ours=f"{told_growth(curve, interval)} ({curve[least]:.1f} to {curve[most]:.1f} hops)",
                paper=f"grows gradually: less than {max_growth(curve):.0f}x",
                verdict=judged(agrees=gradual),
                why="; ".join(filter(None, ("" if gradual else _why_not_gradual(here), either))),
                in_short="" if gradual else _not_gradual(here, interval),
            )


def _is_gradual(curve: Mapping[int, float]) -> bool:
    return 1 < growth(curve) < max_growth(curve)


def _why_not_gradual(here: Table) -> str:
    curve, ideal = by_devices(here, "client_hops"), by_devices(here, "ideal_hops")
    least, most = min(curve), max(curve)
    if not {least, most} <= ideal.keys():
        return "all firings of a size were lost, and count as long as they had"
    small, large = here.where(devices=least), here.where(devices=most)
    told = (
        f"the ideal delay, which is hops alone, grows {ideal[most] / ideal[least]:.2f}x; ours is "
        f"{curve[least] / ideal[least]:.2f} times the ideal at N = {least} and "
        f"{curve[most] / ideal[most]:.2f} times at {most}; its median grows "
        f"{growth(by_devices(here, 'client_hops', median)):.2f}x; slower than three times their ideal are "
        f"{len(slow_runs(small))} of {len(small)} runs at N = {least} and {len(slow_runs(large))} of "
        f"{len(large)} at {most}"
    )
    lost = here.where(lost=1)
    return f"{told}; lost are {len(lost)} of {len(here)}, and count as long as they had" if lost else told


def _not_gradual(here: Table, interval: Interval | None) -> str:
    curve, ideal = by_devices(here, "client_hops"), by_devices(here, "ideal_hops")
    seen, most = by_devices(here.where(lost=0), "client_hops"), max_growth(curve)
    if growth(curve) <= 1:
        found, chance = "A client delay does not grow with N", either_way(interval, 1)
    else:
        found, chance = f"A client delay grows by {most:.0f}x or more", either_way(interval, most)
    if len(ideal) < len(curve) or len(seen) < len(curve) or _is_gradual(seen):
        found += " where lost firings count as long as they had"
    elif growth(curve) > 1:
        mostly = growth(ideal) >= sqrt(growth(curve))
        found += f", {'most' if mostly else 'less than half'} of it in the hops of the ideal"
    else:
        found += f", {'nor' if growth(ideal) <= 1 else 'while'} does its ideal"
    return f"{found}{CHANCE if chance else ''}."


def _below(preset: str, table: Table) -> Comparison:
    serial, parallel = (
        {shape: table.where(strategy=str(strategy), topology=str(shape)) for shape in SHAPES}
        for strategy in (Strategy.SEQUENTIAL, Strategy.OPTIMISTIC)
    )
    ratios = {shape: _times(parallel[shape], serial[shape], "client_hops") for shape in SHAPES}
    above = [shape for shape in SHAPES if ratios[shape] >= 1]
    ideals = {shape: _times(parallel[shape], serial[shape], "ideal_hops") for shape in above}
    slow = "; ".join(
        f"{shape}: the ideal of OLA is {ideals[shape]:.2f} of that of SLA, slower than three times it are "
        f"{len(slow_runs(parallel[shape]))} of {len(parallel[shape])} runs with OLA and "
        f"{len(slow_runs(serial[shape]))} of {len(serial[shape])} with SLA"
        for shape in above
    )
    reason = "though its ideal is" if all(one < 1 for one in ideals.values()) else "nor is its ideal on each"
    return Comparison(
        what=f"client delay of OLA against SLA, {preset}",
        ours=", ".join(f"{shape} {ratio:.2f}" for shape, ratio in ratios.items()) + " of it",
        paper="below",
        verdict=judged(agrees=not above),
        why=slow,
        in_short=f"The client delay of OLA is not below that of SLA on every topology, {reason}."
        if above
        else "",
    )


def _times(one: Table, other: Table, column: str) -> float:
    return mean_ratio(by_devices(one, column), by_devices(other, column))


def _topologies(preset: str, table: Table) -> Iterator[Comparison]:
    serial = table.where(strategy=str(Strategy.SEQUENTIAL))
    by_shape = {shape: serial.where(topology=str(shape)) for shape in SHAPES}
    grid = by_shape[Shape.GRID]
    ratios = {
        shape: _times(grid, by_shape[shape], "client_hops") for shape in (Shape.RANDOM, Shape.CLUSTERED)
    }
    not_below = {shape: by_shape[shape] for shape, ratio in ratios.items() if ratio <= 1}
    for shape, ratio in ratios.items():
        interval = ratio_interval(grid, by_shape[shape], "client_hops")
        why = "" if ratio > 1 else _why_not_above(grid, by_shape[shape], shape)
        yield Comparison(
            what=f"client delay on the grid against {shape}, SLA, {preset}",
            ours=_told_ratio(ratio, interval),
            paper="above",
            verdict=judged(agrees=ratio > 1),
            why="; ".join(filter(None, (why, either_way(interval, 1)))),
            in_short="" if ratio > 1 else _not_above(grid, not_below),
        )
    clustered, random = by_shape[Shape.CLUSTERED], by_shape[Shape.RANDOM]
    ratio = _times(clustered, random, "client_hops")
    interval = ratio_interval(clustered, random, "client_hops")
    alike = within(ratio, 1, ALIKE)
    why = "" if alike else _why_apart(clustered, random)
    either = either_way(interval, 1 - ALIKE) or either_way(interval, 1 + ALIKE)
    yield Comparison(
        what=f"client delay on clustered against random, SLA, {preset}",
        ours=_told_ratio(ratio, interval),
        paper=f"alike: within {100 * ALIKE:.0f} %",
        verdict=judged(agrees=alike),
        why="; ".join(filter(None, (why, either))),
        in_short=""
        if alike
        else _apart(ratio, _times(clustered, random, "ideal_hops"), preset, by_chance=bool(either)),
    )


def _told_ratio(ratio: float, interval: Interval | None) -> str:
    return f"{ratio:.3f}x{'' if interval is None else f' {interval}'}"


def _why_not_above(grid: Table, other: Table, shape: Shape) -> str:
    apart, others_apart = grid.mean("apart_hops"), other.mean("apart_hops")
    told = (
        f"the ideal delay, which is hops alone, is {_times(grid, other, 'ideal_hops'):.2f}x; two nodes are "
        f"{apart:.1f} hops apart on the grid and {others_apart:.1f} there"
    )
    if shape is Shape.RANDOM and apart < others_apart:
        told += ". A reach of 1.41 spacings covers up to 18 neighbours on a grid, and fewer on average at "
        told += "random places"
    return told


def _not_above(grid: Table, others: Mapping[Shape, Table]) -> str:
    """others: those which it is not above."""
    found = f"Client delay on the grid is not above that on {' and '.join(others)}"
    ideals = [_times(grid, other, "ideal_hops") for other in others.values()]
    nearer = all(grid.mean("apart_hops") < other.mean("apart_hops") for other in others.values())
    if max(ideals) > 1:
        return f"{found}, though by hops alone it should be."
    return f"{found}, nor is its ideal{': nodes are fewer hops apart on the grid' if nearer else ''}."


def _why_apart(clustered: Table, random: Table) -> str:
    return (
        f"the ideal delay is {_times(clustered, random, 'ideal_hops'):.2f}x; slower than three times it are "
        f"{len(slow_runs(clustered))} of {len(clustered)} runs on clustered and {len(slow_runs(random))} of "
        f"{len(random)} on random"
    )


def _apart(ratio: float, ideal: float, preset: str, *, by_chance: bool) -> str:
    found = f"Client delay on clustered is not like that on random with `{preset}`"
    if within(ideal, 1, ALIKE):
        found += ", though its ideal is"
    else:
        found += ", nor is its ideal" if (ideal > 1) == (ratio > 1) else ", against its ideal"
    return f"{found}{CHANCE if by_chance else ''}."


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
            finish(axes[row][column], x="devices", y="client delay (hops)", title=f"{shape}, preset {preset}")
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
        "states for 50 to 750 (P9), and by less than N. Alike: within 10 %. One against the "
        "other: the mean over N of the ratio of their means. A firing that was lost counts as "
        f"long as it had. {INTERVALS} {OF_SIZES} With the preset `paper` epochs last 200 hops, so a "
        "run often meets a handoff; with `default` 6,000. Here and in P8, P9, A and B devices are read and "
        "members are probed every 100 hops with either preset; in P11 to P13, D, E and G every 20 with "
        "`paper`. The priority strategy is measured for F, at fewer sizes."
    ),
)

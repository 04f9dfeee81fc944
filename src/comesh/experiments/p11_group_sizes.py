"""P11: election, quorum and state transfer in groups of 3 to 11 members.

The paper's defaults: 250 devices, 100 of them nodes. What is measured: measures/mesh_operations.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan, sqrt

from matplotlib.figure import Figure

from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict, judged
from comesh.experiments.measures.mesh_operations import OPERATIONS, operations
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.measures.running import running
from comesh.experiments.operation_panels import delay, joined, mean_delay, panels, presets_of
from comesh.experiments.table import Row, Table
from comesh.experiments.verdicts import (
    CHANCE,
    INTERVALS,
    Interval,
    either_way,
    growth,
    means_interval,
    with_interval,
)
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
FAILURES = (1, 2, 3, 4, 5)
QUICK_FAILURES = {Preset.PAPER: FAILURES[::2], Preset.DEFAULT: FAILURES[::4]}
SHAPES = (Shape.GRID, Shape.RANDOM, Shape.CLUSTERED)
SEEDS, OTHER_SEEDS = 10, 5
"""The paper does not say on which topology it was; the others show whether it matters."""
EPOCHS = {Preset.PAPER: 4.0, Preset.DEFAULT: 1.1}
"""That a mesh is at work for: every group moves at least once."""
FLAT = 0.25
"""Who does not depend on k changes by no more than this from the least k to the greatest."""


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    for preset in PRESETS:
        for shape in SHAPES if full else SHAPES[:1]:
            for f in FAILURES if full else QUICK_FAILURES[preset]:
                for seed in range(1, (SEEDS if shape is Shape.GRID else OTHER_SEEDS) + 1 if full else 2):
                    yield {
                        "preset": preset,
                        "shape": shape,
                        "devices": DEVICES,
                        "k": 2 * f + 1,
                        "seed": seed,
                    }


def run(case: Parameters) -> list[Row]:
    topology = make_topology(Shape(case["shape"]), devices=case["devices"], seed=case["seed"])
    setup = running(case["preset"], f=(case["k"] - 1) // 2, seed=case["seed"])
    return operations(topology, setup, seed=case["seed"], epochs=EPOCHS[Preset(case["preset"])])


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in presets_of(table):
        for shape in table.where(preset=preset).distinct("shape"):
            rows = table.where(preset=preset, shape=shape)
            sizes = sorted(rows.distinct("k"))
            means = {
                operation: {k: mean_delay(rows, operation=operation, k=k) for k in sizes}
                for operation in OPERATIONS
            }
            for operation in OPERATIONS:
                medians = {k: delay(rows, operation, k=k) for k in sizes}
                interval = means_interval(rows.where(operation=operation), "k", sizes, _at_most)
                what = f"{operation} by k, {shape}, {preset}"
                found.append(_scales(what, operation, means, medians, interval))
            ends = [min(sizes), max(sizes)]
            interval = means_interval(rows.where(operation="state transfer"), "k", ends, growth)
            what = f"state transfer at k = {max(sizes)} against {min(sizes)}, {shape}, {preset}"
            found.append(_flat(what, means, interval))
            found.append(_questions(f"pre-vote by k, {shape}, {preset} (in the election)", rows, sizes))
            apart = {k: mean_delay(rows, operation="until suspicion", k=k) for k in sizes}
            found.append(
                Comparison(
                    what=f"from a crash to suspicion by k, {shape}, {preset} (not in the election)",
                    ours=f"{joined(apart)} hops, mean",
                    verdict=Verdict.OURS,
                )
            )
    return found


def _questions(what: str, rows: Table, sizes: Sequence[int]) -> Comparison:
    """How long an election takes that the paper has not: it claims at once."""
    whole, claim = (
        {k: mean_delay(rows, operation=operation, k=k) for k in sizes}
        for operation in ("election", "from the claim")
    )
    asked = {k: whole[k] - claim[k] for k in sizes}
    share = sum(asked.values()) / sum(whole.values())
    return Comparison(
        what=what,
        ours=f"{joined(asked)} hops, mean: {share:.0%} of the election",
        verdict=Verdict.OURS,
    )


def _at_most(by_size: Mapping[int, float]) -> float:
    """How many times what it is in the smallest groups."""
    return max(by_size.values()) / by_size[min(by_size)]


def _scales(
    what: str,
    operation: str,
    means: dict[str, dict[int, float]],
    medians: dict[int, float],
    interval: Interval | None,
) -> Comparison:
    """Scales well: grows by less than the square root of what the group does."""
    by_size = means[operation]
    most = sqrt(max(by_size) / min(by_size))
    ratio = _at_most(by_size)
    told = with_interval(ratio, interval)
    return Comparison(
        what=what,
        ours=f"{joined(by_size)} hops, mean: at most {told}; {joined(medians)} hops, median",
        paper=f"scales well: less than {most:.2f}x",
        verdict=judged(agrees=ratio < most),
        why=" ".join(filter(None, ("" if ratio < most else _why(operation, means), _unsure(interval, most)))),
        in_short="" if ratio < most else _perhaps(_in_short(operation, means), interval, most),
    )


def _flat(what: str, means: dict[str, dict[int, float]], interval: Interval | None) -> Comparison:
    ratio = growth(means["state transfer"])
    flat = abs(ratio - 1) <= FLAT
    return Comparison(
        what=what,
        ours=f"{with_interval(ratio, interval)}, of the means",
        paper=f"does not depend on k: within {100 * FLAT:.0f} %",
        verdict=judged(agrees=flat),
        why=" ".join(
            filter(None, ("" if flat else _why("state transfer", means), _unsure(interval, 1 + FLAT)))
        ),
        in_short="" if flat else _perhaps(_in_short("state transfer", means), interval, 1 + FLAT),
    )


def _unsure(interval: Interval | None, bar: float) -> str:
    told = either_way(interval, round(bar, 2))
    return f"{told[0].upper()}{told[1:]}." if told else ""


def _perhaps(in_short: str, interval: Interval | None, bar: float) -> str:
    return f"{in_short.removesuffix('.')}{CHANCE}." if either_way(interval, bar) else in_short


def _why(operation: str, means: dict[str, dict[int, float]]) -> str:
    by_size = means[operation]
    least, most = min(by_size), max(by_size)
    told = [_without(by_size) or f"From k = {least} to {most} it becomes {growth(by_size):.2f}x."]
    longest = max(by_size, key=lambda k: by_size[k])
    if longest not in (least, most):
        told.append(f"It is longest at k = {longest}.")
    if operation == "quorum":
        told.append(
            "The leader waits until f others have answered, so for the f-th nearest of the 2f others: f is "
            f"{least // 2} at k = {least} and {most // 2} at {most}."
        )
    else:
        quorums = {k: by_size[k] / means["quorum"][k] for k in (least, most)}
        told.append(
            f"It takes as long as {quorums[least]:.1f} quorums at k = {least} and {quorums[most]:.1f} at "
            f"{most}, and a quorum becomes {growth(means['quorum']):.2f}x."
        )
    if operation == "state transfer":
        told.append("It holds two: the commit of the old config's end and the installation of the next one.")
    return " ".join(told)


def _without(by_size: dict[int, float]) -> str:
    without = [str(k) for k, mean in by_size.items() if isnan(mean)]
    return f"There was none at k = {', '.join(without)}." if without else ""


def _in_short(operation: str, means: dict[str, dict[int, float]]) -> str:
    by_size = means[operation]
    name = f"{operation.capitalize()}s"
    if _without(by_size):
        return f"{name} are missing at some k."
    if growth(by_size) < 1:
        middle = max(by_size.values()) > by_size[min(by_size)]
        return f"{name} take less time in the largest groups than in the smallest{', most between' * middle}."
    if operation == "quorum":
        return (
            f"On some topology {operation}s grow by more than the square root of k: they wait for the f-th "
            "nearest member, and f grows with k."
        )
    as_quorums = growth(means["quorum"]) >= sqrt(growth(by_size))
    holding = ", of which they hold two" if operation == "state transfer" else ""
    mostly = "mostly because" if as_quorums else "less than half of it because"
    return f"{name} take longer with k, {mostly} quorums do{holding}."


def draw(table: Table) -> Figure:
    grid = table.where(shape=Shape.GRID)
    figure = panels(grid, _curves, x="members of a group, on the grid", y="mean delay, hops")
    for axes in figure.axes:
        axes.set_xticks(sorted(grid.distinct("k")))
    return figure


def _curves(rows: Table) -> dict[str, dict[int, float]]:
    return {
        str(preset): {
            k: mean_delay(rows, preset=preset, k=k) for k in rows.where(preset=preset).distinct("k")
        }
        for preset in presets_of(rows)
    }


CAMPAIGN = Campaign("group-sizes", cases, run, about_s=lambda _: 5.0)
EXPERIMENT = Experiment(
    id="P11",
    title="Operations inside groups, by their size",
    campaign=CAMPAIGN,
    paper=(
        "Election, quorum and state transfer all scale well from k = 3 to 11; state transfer does not "
        "depend on k."
    ),
    compare=compare,
    draw=draw,
    about=(
        f"{SEEDS} seeds on the grid, {OTHER_SEEDS} on the other shapes. "
        "Judged by the mean over all operations of all seeds, in hops; beside it the mean over seeds of each "
        "seed's median, which is a whole number of round trips. Scales well: by less than the square root of "
        "what the group grows by, as the paper's slow rise with N is (less than 4x for 15x). Messages that "
        "are sent in parallel, as it argues, take as long as the way to the farthest that is needed. "
        "Quorums and state transfers are those of a mesh at work, elections follow crashes of leaders, from "
        "the winner's first Ask; the time until somebody suspects the leader is a number of leases, and is "
        f"told apart. {INTERVALS} In the simulations of P11 to P13 the paper's unit of time is 10 ms "
        "(measures/running.py says why); here and in D, E and G devices are read and members are probed "
        "every 20 hops with `paper`, in P7 to P9, A and B every 100. The pre-vote, a round of questions "
        "before a claim, is a protection of ours; G counts its messages."
    ),
)

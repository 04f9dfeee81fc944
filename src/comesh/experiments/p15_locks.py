"""P15, a figure of section 6: how long a run waits for locks that are free, on the grid and on the line.

The paper measured radios, with a loop that looks once a second. Ours are processes on one machine, and
simulations with hops of 10 ms: so shapes and ratios are compared, not seconds.
"""

from statistics import median

from matplotlib.figure import Figure

from comesh.experiments.campaign import Comparison, Experiment, Verdict, judged
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Table
from comesh.experiments.trials import CAMPAIGN, REAL, SIMULATED
from comesh.lab.shapes import Shape

ACQUISITION, SYNC = "lock acquisition", "sync delay"
PAPER_S = {ACQUISITION: (3.41, 13.02), SYNC: (10.23, 20.83)}
"""The lowest and the highest median that it has, over shapes and numbers of routines."""
AUTHORS_MS = 220.0
"""Sync delay of the authors' own program: 11 processes on one machine of two cores, its loop cut to 1 ms."""
TIMES = 10.0
STABLE = 1.5
"""Medians that differ by no more than this are stable; the paper's own spread is 3.8 and 2.0."""
FEWEST = 5
"""Of fewer delays no median is told by number of routines."""
ENOUGH = 40
"""Of fewer in a number of routines it is not judged how the medians go on."""


def medians(table: Table, measure: str, fewest: int = FEWEST) -> dict[int, float]:
    """By number of routines, of the medians of trials; where there are delays enough, over all of them."""
    rows = table.where(measure=measure)
    counts = rows.summary(("routines",), "count", sum)
    found = rows.summary(("routines",), "value", median)
    return {routines: found[routines,] for (routines,), count in sorted(counts.items()) if count >= fewest}


def compare(table: Table) -> list[Comparison]:
    mesh = table.where(mode="mesh")
    found: list[Comparison] = []
    kinds = dict.fromkeys((row["where"], row["preset"]) for row in mesh)
    for where, preset in kinds:
        here = mesh.where(where=where, preset=preset)
        for measure in (ACQUISITION, SYNC):
            by_shape = {str(shape): medians(here.where(shape=str(shape)), measure) for shape in Shape}
            if any(by_shape.values()):
                found.append(_size(measure, where, preset, by_shape))
            for shape in by_shape:
                by_routines = medians(here.where(shape=shape), measure, ENOUGH)
                if len(by_routines) > 1:
                    found.append(_course(f"{measure}, {where}, {shape}, {preset}", shape, by_routines))
        found += _ratios(f"{where}, {preset}", here)
    return [*found, *_agreement(mesh)]


def _size(measure: str, where: str, preset: str, by_shape: dict[str, dict[int, float]]) -> Comparison:
    values = [one for by_routines in by_shape.values() for one in by_routines.values()]
    lowest_s, highest_s = PAPER_S[measure]
    is_judged = where == REAL and measure == SYNC
    return Comparison(
        what=f"{measure}, {where}, {preset}: medians over shapes and routines",
        ours=f"{min(values):.1f} to {max(values):.1f} ms",
        paper=f"{lowest_s} to {highest_s} s",
        verdict=judged(agrees=False, better=max(values) < 1000 * lowest_s),
        why="one machine without radios, and no loop that looks once a second: a lock is granted in the step "
        "that hears of it"
        if where == REAL
        else "hops of 10 ms, and no loop that looks once a second: these are round trips to other groups",
        bar=f"{TIMES:.0f} times below the authors' program on one machine, {AUTHORS_MS:.0f} ms"
        if is_judged
        else "",
        met=max(values) <= AUTHORS_MS / TIMES if is_judged else None,
    )


def _course(what: str, shape: str, by_routines: dict[int, float]) -> Comparison:
    few, *_, many = by_routines.values()
    spread = max(by_routines.values()) / min(by_routines.values())
    stable = spread <= STABLE
    rises_slightly = shape == Shape.LINE and what.startswith(ACQUISITION) and 1 <= many / few <= 2
    numbers = ", ".join(f"{value:.1f}" for value in by_routines.values())
    expected = "rises slightly" if shape == Shape.LINE and what.startswith(ACQUISITION) else "stable"
    return Comparison(
        what=f"{what}, by routines",
        ours=f"{numbers} ms at {', '.join(map(str, by_routines))} routines: {many / few:.2f} times",
        paper=expected,
        verdict=judged(agrees=stable or rises_slightly),
        why=f"it is a matter of which devices the routines want, near or far from their group: with few "
        f"routines that are few distances. Highest / lowest: {spread:.2f}",
    )


def _ratios(name: str, here: Table) -> list[Comparison]:
    """Sync delay against lock acquisition: how many locks one after the other a start waits for."""
    sync = here.where(measure=SYNC).numbers("value")
    acquisition = here.where(measure=ACQUISITION).numbers("value")
    waits = here.where(measure="lock wait")
    if not sync or not acquisition:
        return []
    ratio = median(sync) / median(acquisition)
    paper = [high / low for low, high in zip(PAPER_S[ACQUISITION], PAPER_S[SYNC], strict=True)]
    return [
        Comparison(
            what=f"sync delay / lock acquisition, {name}",
            ours=f"{ratio:.1f}",
            paper=f"{min(paper):.1f} to {max(paper):.1f}",
            verdict=judged(agrees=min(paper) / STABLE <= ratio <= max(paper) * STABLE),
            why="a run whose last device becomes free still asks for those after it in the order of locks",
        ),
        Comparison(
            what=f"lock wait, its turn included, {name}",
            ours=f"median {waits.median('value'):.1f} ms, mean {waits.mean('mean') / 1000:.1f} s",
            verdict=Verdict.OURS,
            why="a sequential run may wait, for seconds of somebody's commands, for one device while the "
            "next in its order is free: that is its strategy and the workload, not the protocol",
        ),
    ]


def _agreement(mesh: Table) -> list[Comparison]:
    """In quorums, which are the unit that both have."""
    found: dict[str, float] = {}
    for where in (REAL, SIMULATED):
        here = mesh.where(where=where, preset="default")
        quorum, sync = (
            here.where(measure="quorum").numbers("value"),
            here.where(measure=SYNC).numbers("value"),
        )
        if quorum and sync:
            found[where] = median(sync) / median(quorum)
    if len(found) < 2:
        return []
    return [
        Comparison(
            what="sync delay in quorums, real and simulated",
            ours=f"{found[REAL]:.1f} and {found[SIMULATED]:.1f}",
            verdict=Verdict.OURS,
            why="on one machine a message costs what its processes need to handle it, wherever its receiver "
            "stands; in simulation it costs hops, and a quorum is nearer than the next group",
        )
    ]


def draw(table: Table) -> Figure:
    figure, axes = new_figure(1, 2)
    for at, where in enumerate((REAL, SIMULATED)):
        here = table.where(where=where, mode="mesh", preset="default")
        curves = {
            f"{measure}, {shape}": medians(here.where(shape=str(shape)), measure)
            for measure in (ACQUISITION, SYNC)
            for shape in Shape
        }
        lines(axes[at], {name: curve for name, curve in curves.items() if curve})
        finish(axes[at], x="routines", y="median, ms" if at == 0 else "", title=where)
    return figure


EXPERIMENT = Experiment(
    id="P15",
    title="Lock acquisition and sync delay",
    campaign=CAMPAIGN,
    paper="Section 6, figure of wait times: lock acquisition has medians of 3.41 to 13.02 s, stable by "
    "routines on the grid and rising slightly on the line; sync delay 10.23 to 20.83 s, stable.",
    compare=compare,
    draw=draw,
    about=(
        "Lock acquisition: a device is free, and the run has asked for it, until its group has committed "
        "that the run holds it. A device is free when the run that has it begins to give its locks back. "
        "Sync delay: the last of a run's devices becomes free until the run executes. Read off recordings of "
        "the real nodes and off the simulation in the same way. With one routine there are no conflicts, and "
        "few runs."
    ),
)

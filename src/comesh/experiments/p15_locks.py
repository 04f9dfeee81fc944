"""P15, a figure of section 6: how long a run waits for locks that are free, on the grid and on the line.

The paper's lock acquisition is the average time from when a lock is available until it is held: our *lock
wait*. Most of it is the strategy: a sequential run waits for one device, for seconds of somebody's commands,
while the next one in its order is free. So what the protocol takes is told apart, as *lock acquisition*: from
when the device is free and the run has asked for it.

The bars are a tenth of what the authors published of their own program on one machine: 11 nodes as processes
on two cores, its loop of a second cut to a millisecond. This repository cannot repeat that. Many real trials
run at once; in full some are quiet, two at a time on the grid with 10 routines, and these are held to the
bars. Journals are files in memory, where flushing costs next to nothing.
"""

from statistics import fmean, median

from comesh.experiments import stage
from comesh.experiments.trials import CAMPAIGN, REAL, SIMULATED, held_to_authors

WAIT, ACQUISITION, SYNC = "lock wait", "lock acquisition", "sync delay"
CONFLICT = "sync delay, conflict"
"""Sync delay of those runs alone that found a device held by another."""
AUTHORS_MS = 220.0
"""Sync delay of the authors' own program: 11 processes on one machine of two cores, its loop cut to 1 ms."""
TIMES = 10.0
FEWEST = 5
"""Delays that a median needs."""
KIND = ("where", "preset", "shape")


def medians(table: stage.Table, measure: str) -> dict[int, float]:
    """By number of routines: the median over trials of their medians, where there are delays enough."""
    rows = table.where(measure=measure)
    counts, found = rows.summary("routines", "count", sum), rows.summary("routines", "value", median)
    return {routines: found[routines] for routines in sorted(found) if counts[routines] >= FEWEST}


def _enough(table: stage.Table, measure: str) -> stage.Table:
    """The rows of trials that have delays enough."""
    return stage.Table(row for row in table.where(measure=measure) if row["count"] >= FEWEST)


def tables(table: stage.Table) -> dict[str, stage.Table]:
    found: dict[str, list[stage.Row]] = {
        f"{name}, ms": [] for name in ("Medians", "Averages of lock wait", "P90")
    }
    began: list[stage.Row] = []
    routines = sorted(table.distinct("routines"))
    for key, rows in table.where(mode="mesh").groups(*KIND):
        kind = dict(zip(KIND, key, strict=True))
        for measure in (WAIT, ACQUISITION, SYNC, CONFLICT):
            line = {"measure": measure, **kind}
            found["Medians, ms"].append(line | _by_routines(medians(rows, measure), routines))
            enough = _enough(rows, measure)
            found["P90, ms"].append(line | _by_routines(enough.summary("routines", "p90", fmean), routines))
            if measure == WAIT:
                averages = enough.summary("routines", "mean", fmean)
                found["Averages of lock wait, ms"].append(kind | _by_routines(averages, routines))
        fired, executing = (
            rows.where(measure=f"runs {what}").summary("routines", "value", sum)
            for what in ("fired", "executing")
        )
        began.append(
            kind | _by_routines({at: executing[at] / count for at, count in fired.items() if count}, routines)
        )
    return {name: stage.Table(some) for name, some in found.items()} | {
        "Runs that began for each firing; what the others waited is in no delay": stage.Table(began)
    }


def _by_routines(values: dict[int, float], routines: list[int]) -> stage.Row:
    return {f"{at} routines": values.get(at) for at in routines}


def bars(table: stage.Table) -> list[stage.Bar]:
    held = held_to_authors(table)
    found = []
    for (preset,), rows in table.where(mode="mesh", where=held).groups("preset"):
        by_shape = [medians(some, SYNC) for _, some in _enough(rows, SYNC).groups("shape")]
        slowest_ms = [one for by_routines in by_shape for one in by_routines.values()]
        if slowest_ms:
            name = f"sync delay, the longest median in ms, {held}, {preset}"
            found.append(stage.Bar(name, max(slowest_ms), AUTHORS_MS / TIMES))
    return found


def draw(table: stage.Table) -> stage.Figure:
    figure, axes = stage.new_figure(1, 2)
    for at, where in enumerate((REAL, SIMULATED)):
        here = table.where(where=where, mode="mesh", preset="default")
        curves = {
            f"{measure}, {shape}": medians(rows, measure)
            for measure in (WAIT, ACQUISITION, SYNC)
            for (shape,), rows in here.groups("shape")
        }
        stage.draw_lines(axes[at], {name: curve for name, curve in curves.items() if curve})
        axes[at].set_xticks(sorted(here.distinct("routines")))
        y = "median, ms" if at == 0 else ""
        stage.finish(axes[at], x="routines", y=y, title=f"{where}, preset default", legend=at == 0)
    return figure


EXPERIMENT = stage.Experiment(
    id="P15",
    title="Lock acquisition and sync delay",
    campaign=CAMPAIGN,
    paper="Section 6, figure of wait times, on radios: the average time to acquire a lock after it becomes "
    "available is 3.41 to 13.02 s, its median stable by routines on the grid and rising slightly on the "
    "line; sync delay has medians of 10.23 to 20.83 s, stable.",
    tables=tables,
    draw=draw,
    bars=bars,
    about=__doc__,
)

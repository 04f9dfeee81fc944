"""P15, a figure of section 6: how long a run waits for locks that are free, on the grid and on the line.

The paper's lock acquisition is the average time from when a lock is available until it is held: our *lock
wait*. Most of it is the strategy: a sequential run waits for one device, for seconds of somebody's commands,
while the next one in its order is free. So what the protocol takes is told apart, as *lock acquisition*: from
when the device is free and the run has asked for it.

The paper measured radios, with a loop that looks once a second. Ours are processes on one machine, and
simulations with hops of 10 ms: of what the protocol takes shapes and ratios are compared, not seconds.
"""

from collections.abc import Iterable
from statistics import fmean, median

import msgspec
from matplotlib.figure import Figure

from comesh.experiments.campaign import Comparison, Experiment, Verdict, judged
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Table
from comesh.experiments.trials import (
    CAMPAIGN,
    REAL,
    SIMULATED,
    beside_it,
    beside_load,
    held_to_authors,
    real_and_simulated,
)
from comesh.experiments.verdicts import AUTHORS_PROGRAM, IN_MEMORY, against_authors
from comesh.lab.shapes import Shape

MEDIAN, AVERAGE = "value", "mean"
"""The columns of a trial's."""
WAIT, ACQUISITION, SYNC = "lock wait", "lock acquisition", "sync delay"
CONFLICT = "sync delay, conflict"
"""Sync delay of those runs alone that found a device held by another."""
PAPER_WAIT_S = (3.41, 13.02)
"""The lowest and the highest average of lock acquisition, over shapes and numbers of routines."""
PAPER_SYNC_S = (10.23, 20.83)
"""And of sync delay the medians."""
AUTHORS_MS = 220.0
"""Sync delay of the authors' own program: 11 processes on one machine of two cores, its loop cut to 1 ms."""
TIMES = 10.0
STABLE = 1.5
"""Medians that differ by no more than this are stable; the paper's own spread is 3.8 and 2.0."""
SLIGHTLY = (1.1, 2.0)
"""What rises slightly becomes so many times as long."""
MAX_SEEDS = 0.75
"""So many of the seeds have to rise, or it is not decided whether it does."""
RUNS = ("fired", "executing")
FEWEST = 5
"""Of fewer delays no median or average is told."""
ALL_BUT_FEW = 0.95
"""Where fewer runs began for each firing, it is said that the waits of the others are left out."""
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
    for where, preset in dict.fromkeys((row["where"], row["preset"]) for row in mesh):
        here, name = mesh.where(where=where, preset=preset), f"{where}, {preset}"
        found += _waits(name, here)
        found += _courses(WAIT, name, here)
        for measure in (ACQUISITION, SYNC, CONFLICT):
            is_judged = measure == SYNC and where == held_to_authors(mesh)
            found += _sizes(measure, name, here, beside_it(mesh, where), is_judged=is_judged)
            found += _courses(measure, name, here) if measure != CONFLICT else []
        found += _ratios(name, here)
    return [*found, *(one for measure in (ACQUISITION, SYNC) for one in real_and_simulated(mesh, measure))]


def _enough(here: Table, measure: str) -> Table:
    """The rows of trials that have delays enough."""
    return Table(row for row in here.where(measure=measure) if row["count"] >= FEWEST)


def _waits(name: str, here: Table) -> list[Comparison]:
    """Averages by shape and number of routines."""
    waits = _enough(here, WAIT)
    if not len(waits):
        return []
    averages_s = [one / 1000 for one in waits.summary(("shape", "routines"), "mean").values()]
    few = "" if len(averages_s) == 1 else f"{min(averages_s):.1f} to "
    told = f"{few}{max(averages_s):.1f}"
    half_ms = waits.median("value")
    lowest_paper, highest_paper = PAPER_WAIT_S
    return [
        Comparison(
            what=f"lock wait, {name}: averages over shapes and routines",
            ours=f"{told} s; the median {half_ms:.1f} ms",
            paper=f"{lowest_paper} to {highest_paper} s, on radios",
            verdict=Verdict.OURS,
            why=f"far above the median are runs that wait for another device of their order meanwhile. "
            f"{_not_in_it(here)}",
        )
    ]


def _starts(here: Table) -> dict[int, float]:
    """Runs that began to execute for each that fired, by number of routines. Both are counted while it is
    measured: some that began then had fired before, and who still waits at the end has no wait yet."""
    fired, executing = (
        here.where(measure=f"runs {what}").summary(("routines",), "value", sum) for what in RUNS
    )
    return {at: executing[at,] / count for (at,), count in sorted(fired.items()) if count}


def _not_in_it(here: Table) -> str:
    starts = _starts(here)
    told = ", ".join(f"{share:.2f}" for share in starts.values())
    return (
        f"For each firing {told} runs began to execute, with {_listed(starts)} routines: what a run waited "
        "that did not is not in it"
    )


def _left_out(here: Table, by_routines: Iterable[int]) -> str:
    """Where many runs still wait when a trial ends; empty: nowhere."""
    many = {at: share for at, share in _starts(here).items() if share < ALL_BUT_FEW and at in by_routines}
    if not many:
        return ""
    told = ", ".join(f"{share:.2f}" for share in many.values())
    began = f"with {_listed(many)} routines {told} runs began for each firing"
    return f"{began}; what the others waited is not in it"


def _listed(by_routines: dict[int, float]) -> str:
    return ", ".join(map(str, by_routines))


def _sizes(measure: str, name: str, here: Table, beside: str, *, is_judged: bool) -> list[Comparison]:
    """Medians over shapes and numbers of routines; and what lies above them."""
    rows = _enough(here, measure)
    values = {
        (str(shape), routines): one
        for shape in Shape
        for routines, one in medians(rows.where(shape=str(shape)), measure).items()
    }
    if not values or not len(rows):
        return []
    shape, routines = max(values, key=lambda one: values[one])
    slowest_ms = values[shape, routines]
    several = len(values) > 1
    kind = ("shape", "routines")
    p90 = max(rows.summary(kind, "p90").values())
    met = slowest_ms <= AUTHORS_MS / TIMES if is_judged else None
    lowest_s, highest_s = PAPER_SYNC_S
    return [
        Comparison(
            what=f"{measure}, {name}: {'medians over shapes and routines' if several else 'median'}",
            ours=f"{f'{min(values.values()):.1f} to ' if several else ''}{slowest_ms:.1f} ms "
            f"({shape}, {routines} routines); P90 {'up to ' if several else ''}{p90:.0f} ms",
            paper=f"{lowest_s} to {highest_s} s; its program on one machine {AUTHORS_MS:.0f} ms"
            if measure == SYNC
            else "",
            verdict=against_authors(slowest_ms, AUTHORS_MS) if is_judged else Verdict.OURS,
            why=(
                "one machine without radios, and no loop that looks once a second: a lock is granted in the "
                f"step that hears of it{f'. But {beside}' if met is False else ''}"
            )
            if not name.startswith(SIMULATED)
            else "hops of 10 ms, and no loop that looks once a second: these are round trips to other groups",
            bar=f"{TIMES:.0f} times below the authors' program on one machine, {AUTHORS_MS:.0f} ms"
            if is_judged
            else "",
            met=met,
        )
    ]


WAITING = (
    "the more routines, the more often a run that has its turn at one device waits for the commands of "
    "another run at the next one in its order, seconds each"
)
WAITING_IN_SHORT = "On average lock wait rises with the routines, its median hardly: few waits are long."
RISING_IN_SHORT = "Lock wait rises with the routines, on average and by its median."
NO_RISE = f"less than {SLIGHTLY[0]} times is no rise"


class _Course(msgspec.Struct, frozen=True):
    """How the medians of a measure in one shape, or its averages, go on as routines are added."""

    measure: str
    shape: str
    column: str
    rows: Table
    """Of that measure."""
    by_routines: dict[int, float]
    left_out: str

    @property
    def times(self) -> float:
        return self.by_routines[max(self.by_routines)] / self.by_routines[min(self.by_routines)]

    @property
    def spread(self) -> float:
        return max(self.by_routines.values()) / min(self.by_routines.values())

    @property
    def should_rise(self) -> bool:
        return self.measure == WAIT and self.shape == Shape.LINE

    @property
    def rising(self) -> tuple[int, int]:
        """Of how many seeds, of how many."""
        ends = [
            {row["seed"]: row[self.column] for row in self.rows.where(routines=at)}
            for at in (min(self.by_routines), max(self.by_routines))
        ]
        both = ends[0].keys() & ends[1].keys()
        return sum(ends[1][seed] > ends[0][seed] for seed in both), len(both)

    @property
    def apart(self) -> float:
        """How many times single trials of the same kind are apart, at most."""
        of_kind = [self.rows.where(routines=at).numbers(self.column) for at in self.by_routines]
        return max(max(values) / min(values) for values in of_kind)


def _courses(measure: str, name: str, here: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for shape in map(str, Shape):
        of_shape = here.where(shape=shape)
        by_routines = medians(of_shape, measure, ENOUGH)
        if len(by_routines) > 1:
            rows, left_out = _enough(of_shape, measure), _left_out(of_shape, by_routines)
            course = _Course(measure, shape, MEDIAN, rows, by_routines, left_out)
            where, preset = name.split(", ")
            load = beside_load(of_shape, measure) if where == REAL else ""
            found.append(_told(course, f"{measure}, {where}, {shape}, {preset}, by routines", load))
            if measure == WAIT:
                means = rows.summary(("routines",), AVERAGE, fmean)
                averages = {routines: means[routines,] for routines in by_routines}
                course = _Course(measure, shape, AVERAGE, rows, averages, left_out)
                found.append(_told(course, f"average {measure}, {where}, {shape}, {preset}, by routines", ""))
    return found


def _told(course: _Course, what: str, load: str) -> Comparison:
    unit, in_ms = ("s", 1000.0) if course.column == AVERAGE else ("ms", 1.0)
    numbers = ", ".join(f"{value / in_ms:.1f}" for value in course.by_routines.values())
    ours = f"{numbers} {unit} at {_listed(course.by_routines)} routines: {course.times:.2f} times"
    if course.measure == ACQUISITION:
        return Comparison(what=what, ours=ours, verdict=Verdict.OURS)
    if not course.should_rise:
        stable = course.spread <= STABLE
        why, in_short = ("", "") if stable else _why_not_stable(course, load)
        return Comparison(
            what=what,
            ours=ours,
            paper="stable",
            verdict=judged(agrees=stable),
            why="; ".join(filter(None, (why, course.left_out))),
            in_short=in_short,
        )
    rising, seeds = course.rising
    agrees = SLIGHTLY[0] <= course.times <= SLIGHTLY[1]
    decided = not agrees or rising >= MAX_SEEDS * seeds
    why, in_short = ("", "") if agrees else _why_not_slightly(course)
    undecided = f"not decided: it rises in {rising} of {seeds} trials"
    return Comparison(
        what=what,
        ours=ours,
        paper="rises slightly",
        verdict=judged(agrees=agrees) if decided else Verdict.OURS,
        why="; ".join(filter(None, (why if decided else undecided, course.left_out))),
        in_short=in_short,
    )


def _why_not_stable(course: _Course, load: str) -> tuple[str, str]:
    """Whether by more than trials of one kind are apart."""
    if course.column == AVERAGE and course.times > 1:
        return _why_averages_rise(course)
    told = f"highest / lowest: {course.spread:.2f}"
    if course.apart >= course.spread:
        told += f", and trials of the same kind are up to {course.apart:.2f} times apart"
        short = f"are more than {STABLE} times apart, by no more than trials of one kind are"
    else:
        told += f", while trials of the same kind are {course.apart:.2f} times apart at most"
        short = f"are more than {STABLE} times apart, which trials of one kind are not"
    return f"{told}{f'; {load}' if load else ''}", f"Some medians of {course.measure} {short}."


def _why_averages_rise(course: _Course) -> tuple[str, str]:
    """What commands last raises an average, not the median; where that rises, too, it is something else."""
    by_routines = medians(course.rows, course.measure)
    times = by_routines[max(course.by_routines)] / by_routines[min(course.by_routines)]
    if times <= STABLE:
        return f"the median becomes {times:.2f} times as long: {WAITING}", WAITING_IN_SHORT
    return f"the median becomes {times:.2f} times as long as well", RISING_IN_SHORT


def _why_not_slightly(course: _Course) -> tuple[str, str]:
    if course.times > SLIGHTLY[1]:
        if course.column == AVERAGE:
            why, in_short = _why_averages_rise(course)
            return f"it rises by more: {why}", in_short
        return "it rises by more", f"On the line {course.measure} rises by more than slightly by its median."
    if course.column == AVERAGE:
        return NO_RISE, f"On the line {course.measure} hardly rises or falls on average."
    half = f"half of the waits take no longer than {max(course.by_routines.values()):.0f} ms with any number"
    return f"{NO_RISE}: {half}", f"On the line {course.measure} hardly rises or falls by its median."


def _ratios(name: str, here: Table) -> list[Comparison]:
    """Sync delay against lock acquisition: how many locks one after the other a start waits for."""
    sync, acquisition = (_enough(here, measure) for measure in (SYNC, ACQUISITION))
    if not len(sync) or not len(acquisition):
        return []
    return [
        Comparison(
            what=f"sync delay / lock acquisition, {name}",
            ours=f"{sync.median('value') / acquisition.median('value'):.1f}",
            verdict=Verdict.OURS,
            why="a run whose last device becomes free still asks for those after it in the order of locks",
        ),
    ]


def draw(table: Table) -> Figure:
    figure, axes = new_figure(1, 2)
    for at, where in enumerate((REAL, SIMULATED)):
        here = table.where(where=where, mode="mesh", preset="default")
        curves = {
            f"{measure}, {shape}": medians(here.where(shape=str(shape)), measure)
            for measure in (WAIT, ACQUISITION, SYNC)
            for shape in Shape
        }
        lines(axes[at], {name: curve for name, curve in curves.items() if curve})
        axes[at].set_xticks(sorted(here.distinct("routines")))
        finish(
            axes[at],
            x="routines",
            y="median, ms" if at == 0 else "",
            title=f"{where}, preset default",
            legend=at == 0,
        )
    return figure


EXPERIMENT = Experiment(
    id="P15",
    title="Lock acquisition and sync delay",
    campaign=CAMPAIGN,
    paper="Section 6, figure of wait times: the average time to acquire a lock after it becomes available is "
    "3.41 to 13.02 s, its median stable by routines on the grid and rising slightly on the line; sync delay "
    "has medians of 10.23 to 20.83 s, stable.",
    compare=compare,
    draw=draw,
    about=(
        "Lock wait, which is the paper's time to acquire a lock: from when a device is free until its group "
        "has committed that the run holds it. Lock acquisition, ours: the same from when the run has asked "
        "for it. A device is free when the run that has it begins to give its locks back. Sync delay: the "
        "last of a run's devices becomes free until the run executes; conflict: of those runs alone that "
        "found a device held. Medians are those over trials of each trial's, P90 and averages the means over "
        "trials of theirs. Of sync delay and lock acquisition no averages are told: few of them are far too "
        "long, by an error of the measure (docs/measurements.md). In 50 of the simulated trials a mended one "
        "changed medians over trials of lock wait and sync delay by at most 6 %, averages of lock wait by at "
        "most 4 %, all of them down; in real trials the error is the same and cannot be measured any more. "
        "Read off recordings of the real nodes and off the simulation in the same way. With one routine "
        "there are no conflicts, and few runs. Many real trials run at once on one machine; in full there "
        "are quiet ones, two at a time on the grid with 10 routines, which are held to the authors' program. "
        f"{IN_MEMORY} {AUTHORS_PROGRAM}"
    ),
)

"""What several experiments say of delays: how much they grow, which are below which, what was lost."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import fmean
from typing import NamedTuple

from comesh.experiments.campaign import Verdict, judged, within
from comesh.experiments.table import Table, Value, percentile

SLOWLY = 4.0
"""What rises slowly by the paper's own words rises less, from 50 to 750 devices."""
NEAR = 0.25
"""Times that are no further apart agree."""
SLOW_RUN = 3.0
"""Times the ideal: who takes longer met more than hops."""
DRAWS, MIDDLE = 1000, 95
"""Of a bootstrap: how often seeds are drawn, and how many percent of what comes of it its interval holds."""
FEWEST_SEEDS = 5
"""Of fewer an interval says nothing, and one of them may decide a mean."""
INTERVALS = (
    f"In brackets: the middle {MIDDLE} % of what comes out if the seeds are drawn anew with repetition, "
    f"{DRAWS:,} times (bootstrap); of fewer than {FEWEST_SEEDS} none is told. Verdicts are by the number "
    "before it."
)
CHANCE = " (by chance, perhaps: see its interval)"
OF_SIZES = "A seed is a mesh of every size with its routines."


AUTHORS_PROGRAM = (
    "The authors' program on one machine: what they published, 11 nodes as processes on two cores, its loop "
    "of a second cut to a millisecond; measured apart from this repository, which cannot repeat it: so far "
    "goes what is *better* than it."
)

IN_MEMORY = "Journals of real nodes are files in memory (tmpfs), where flushing costs next to nothing."
"""What real trials leave out: a disk."""

AT_ONCE = (
    "many trials run at once here, and processes wait for one another (P14 tells the load of the machine); "
    "the authors' program had it for itself"
)
"""Why a real delay may miss a bar that was measured with one mesh."""


def against_authors(ours_ms: float, authors_ms: float) -> Verdict:
    """Both on one machine of two cores. The paper's own seconds are those of radios."""
    return judged(agrees=within(ours_ms, authors_ms, NEAR), better=ours_ms < authors_ms)


def growth(curve: Mapping[int, float]) -> float:
    """The last value against the first."""
    return curve[max(curve)] / curve[min(curve)]


def max_growth(curve: Mapping[int, float]) -> float:
    """What grows slowly with the devices grows less than fourfold, and less than they do."""
    return min(SLOWLY, max(curve) / min(curve))


class Interval(NamedTuple):
    """Between which a growth lies in most draws of the meshes."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"[{self.low:.2f}, {self.high:.2f}]"

    def holds(self, bar: float) -> bool:
        return self.low <= bar <= self.high


def growth_interval(table: Table, column: str) -> Interval | None:
    """Of the growth of the means from the fewest devices to the most. None: there are too few seeds."""
    sizes = by_devices(table, column)
    ends = [min(sizes), max(sizes)]
    return _over_seeds([_of_rows(table, column)], ends, lambda curves: growth(curves[0]))


def ratio_interval(one: Table, other: Table, column: str) -> Interval | None:
    """Of `mean_ratio` between the two. None: there are too few seeds that both have."""
    shared = [size for size in one.distinct("devices") if size in other.distinct("devices")]
    both = [_of_rows(table, column) for table in (one, other)]
    return _over_seeds(both, shared, lambda curves: mean_ratio(curves[0], curves[1]))


def means_interval(
    table: Table, column: str, points: Sequence[int], read_off: Callable[[Mapping[int, float]], float]
) -> Interval | None:
    """Of what is read off the means by a column, at these points of it; each row has the mean of so many, its
    count. None: there are too few seeds."""
    keys = [(at, seed) for at in points for seed in table.distinct("seed")]
    totals = _Totals(dict.fromkeys(keys, 0.0), dict.fromkeys(keys, 0.0))
    for row in table:
        if (key := (row[column], row["seed"])) in totals.sums:
            totals.sums[key] += row["mean"] * row["count"]
            totals.counts[key] += row["count"]
    return _over_seeds([totals], points, lambda curves: read_off(curves[0]))


class _Totals(NamedTuple):
    """What means are made of: by point of a curve and seed."""

    sums: dict[tuple[Value, ...], float]
    counts: dict[tuple[Value, ...], float]


def _of_rows(table: Table, column: str) -> _Totals:
    by = ("devices", "seed")
    return _Totals(table.summary(by, column, sum), table.summary(by, column, len))


def _over_seeds(
    totals: Sequence[_Totals],
    points: Sequence[int],
    read_off: Callable[[Sequence[Mapping[int, float]]], float],
) -> Interval | None:
    """Of what is read off curves of means, all by the same draw of the seeds that have every point."""
    seeds = [
        seed
        for seed in dict.fromkeys(seed for _, seed in totals[0].sums)
        if all((at, seed) in one.sums for at in points for one in totals)
    ]
    if len(seeds) < FEWEST_SEEDS:
        return None
    draws = Random(1)
    found: list[float] = []
    for _ in range(DRAWS):
        drawn = draws.choices(seeds, k=len(seeds))
        curves = [
            {
                at: sum(one.sums[at, seed] for seed in drawn) / count
                for at in points
                if (count := sum(one.counts[at, seed] for seed in drawn))
            }
            for one in totals
        ]
        if all(len(curve) == len(points) for curve in curves):
            found.append(read_off(curves))
    beside = (100 - MIDDLE) / 2
    return Interval(percentile(found, beside), percentile(found, 100 - beside))


def told_growth(curve: Mapping[int, float], interval: Interval | None) -> str:
    return with_interval(growth(curve), interval)


def with_interval(times: float, interval: Interval | None) -> str:
    return f"{times:.2f}x{'' if interval is None else f' {interval}'}"


def either_way(interval: Interval | None, bar: float) -> str:
    """To be said where other meshes may be judged otherwise; else empty."""
    if interval is None or not interval.holds(bar):
        return ""
    return f"{bar:g}x lies in the interval: other meshes may come out on its other side"


def few_meshes(table: Table) -> str:
    """To be said where a mean is of too few meshes to hold it to a bar; else empty."""
    meshes = len(table.distinct("seed"))
    if meshes >= FEWEST_SEEDS:
        return ""
    return f"its bar is not judged: of so few seeds ({meshes}) one may decide the mean; --full has more"


def mean_ratio(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    """One curve against the other, the mean over the points that both have."""
    shared = [at for at in one if at in other]
    return sum(one[at] / other[at] for at in shared) / len(shared)


def with_lost(table: Table) -> Table:
    """The same firings; those that were lost waited as long as they had, and in truth for longer."""
    return Table(
        {**row, "client_hops": row["window_hops"]} if row["client_hops"] is None else row for row in table
    )


def by_devices(table: Table, column: str, of: Callable[[Sequence[float]], float] = fmean) -> dict[int, float]:
    return {devices: number for (devices,), number in table.summary(("devices",), column, of).items()}


def slow_runs(table: Table) -> Table:
    """Slower than three times their ideal, or lost."""
    return Table(
        row for row in table if row["ideal_hops"] is None or row["client_hops"] > SLOW_RUN * row["ideal_hops"]
    )

"""What several experiments say of delays: how much they grow, which are below which, what was lost."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from comesh.experiments.campaign import Verdict, judged, within
from comesh.experiments.table import Table

SLOWLY = 4.0
"""What rises slowly by the paper's own words rises less, from 50 to 750 devices."""
NEAR = 0.25
"""Times that are no further apart agree."""
SLOW_RUN = 3.0
"""Times the ideal: who takes longer met more than hops."""


AUTHORS_PROGRAM = (
    "The authors' program on one machine: what they published, 11 nodes as processes on two cores, its loop "
    "of a second cut to a millisecond; measured apart from this repository."
)

IN_MEMORY = "Journals of real nodes are files in memory (tmpfs), where flushing costs next to nothing."
"""What real trials leave out: a disk."""

BUSY = "many trials run at once here, and processes wait for one another (P14 tells the load of the machine)"
AT_ONCE = f"{BUSY}; the authors' program had it for itself"
"""Why a real delay may miss a bar that was measured with one mesh."""


def against_authors(ours_ms: float, authors_ms: float) -> Verdict:
    """Both on one machine of two cores. The paper's own seconds are those of radios."""
    return judged(agrees=within(ours_ms, authors_ms, NEAR), better=ours_ms < authors_ms)


def growth(curve: Mapping[int, float]) -> float:
    """The last value against the first."""
    return curve[max(curve)] / curve[min(curve)]


def most_growth(curve: Mapping[int, float]) -> float:
    """What grows slowly with the devices grows less than fourfold, and less than they do."""
    return min(SLOWLY, max(curve) / min(curve))


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

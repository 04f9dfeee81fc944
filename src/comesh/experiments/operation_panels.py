"""What the experiments on operations inside groups (P11, P12, P13) read off and draw alike.

Delays are whole round trips, so a median jumps by two hops or not at all. Means tell what changes by less:
they are over all operations of all seeds. Medians are the mean over the seeds of each seed's.
"""

from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.figure import Figure

from comesh.experiments.measures.mesh_operations import OPERATIONS
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.plots import finish, lines, new_figure, of_presets
from comesh.experiments.table import Table


def delay(table: Table, operation: str, **wanted: Any) -> float:
    """The median in hops; nan: there was none."""
    found = table.where(operation=operation, **wanted).numbers("median")
    return sum(found) / len(found) if found else float("nan")


def mean_delay(table: Table, **wanted: Any) -> float:
    """In hops; nan: there was none."""
    rows = table.where(**wanted)
    count = sum(rows.numbers("count"))
    return sum(row["mean"] * row["count"] for row in rows) / count if count else float("nan")


def presets_of(table: Table) -> list[Preset]:
    return [preset for preset in PRESETS if len(table.where(preset=preset))]


def joined(numbers: Mapping[Any, float]) -> str:
    """`3: 2.0, 5: 2.1`"""
    return ", ".join(f"{name}: {number:.1f}" for name, number in numbers.items())


def panels(
    table: Table,
    curves: Callable[[Table], Mapping[str, Mapping[Any, float]]],
    *,
    x: str,
    y: str = "median delay, hops",
) -> Figure:
    """One for each operation; curves: from the rows of an operation."""
    figure, axes = new_figure(1, len(OPERATIONS), width=4.0)
    for one, operation in zip(axes, OPERATIONS, strict=True):
        lines(one, of_presets(curves(table.where(operation=operation))))
        finish(one, x=x, y=y, title=operation)
    return figure

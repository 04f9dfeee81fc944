"""What the experiments on operations inside groups (P11, P12, P13) read off and draw alike.

A delay is the mean over the seeds of each seed's median: delays are whole round trips, so one median alone
jumps by two hops or not at all.
"""

from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.figure import Figure

from comesh.experiments.measures.mesh_operations import OPERATIONS
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Table


def delay(table: Table, operation: str, **wanted: Any) -> float:
    """In hops; nan: there was none."""
    found = table.where(operation=operation, **wanted).numbers("median")
    return sum(found) / len(found) if found else float("nan")


def presets_of(table: Table) -> list[Preset]:
    return [preset for preset in PRESETS if len(table.where(preset=preset))]


def joined(numbers: Mapping[Any, float]) -> str:
    """`3: 2.0, 5: 2.1`"""
    return ", ".join(f"{name}: {number:.1f}" for name, number in numbers.items())


def panels(table: Table, curves: Callable[[Table], Mapping[str, Mapping[Any, float]]], *, x: str) -> Figure:
    """One for each operation; curves: from the rows of an operation."""
    figure, axes = new_figure(1, len(OPERATIONS), width=4.0)
    for one, operation in zip(axes, OPERATIONS, strict=True):
        lines(one, curves(table.where(operation=operation)))
        finish(one, x=x, y="median delay, hops", title=operation)
    return figure

"""How figures look: one style for all of them, in colours that can be told apart without colour vision."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import stdev
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from comesh.experiments.table import Table

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS: Final = "os^DvPX"
STYLES: Final = ("-", (0, (5, 1.5)), "-.", ":")
"""Of lines that lie on each other both are seen."""
BAND: Final = 1.96
"""Standard errors on either side of a mean."""
PAPER: Final[dict[str, Any]] = {"color": "#777777", "linestyle": "--", "marker": "x"}
"""What the paper reports, in every figure."""


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float = 5.2, height: float = 3.4
) -> tuple[Figure, Any]:
    """A figure, and its axes: one, or an array of them. No window, whatever there is."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns)
    for one in figure.axes:
        one.grid(alpha=0.3)
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def lines(axes: Axes, curves: Mapping[str, Mapping[Any, float]], *, first: int = 0) -> None:
    """A line per name: from x to y."""
    for number, (name, points) in enumerate(curves.items(), start=first):
        ordered = sorted(points)
        axes.plot(
            ordered,
            [points[x] for x in ordered],
            label=name,
            color=COLOURS[number % len(COLOURS)],
            linestyle=STYLES[number % len(STYLES)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=4,
        )


def means(axes: Axes, rows: Table, name: str, x: str, y: str, *, called: Callable[[str], str] = str) -> None:
    """A line per value of the column `name`: the mean of y at each x, and a band around it."""
    lines(axes, {called(curve): points for curve, points in rows.curves(name, x, y).items()})
    errors = rows.curves(name, x, y, standard_error)
    for number, (curve, points) in enumerate(rows.curves(name, x, y).items()):
        ordered = sorted(points)
        around = [BAND * errors[curve][at] for at in ordered]
        axes.fill_between(
            ordered,
            [points[at] - wide for at, wide in zip(ordered, around, strict=True)],
            [points[at] + wide for at, wide in zip(ordered, around, strict=True)],
            color=COLOURS[number % len(COLOURS)],
            alpha=0.15,
            linewidth=0,
        )


def standard_error(values: Sequence[float]) -> float:
    """Of the mean; 0 of a single value, which says nothing of it."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def paper_line(axes: Axes, points: Mapping[Any, float], name: str = "reported by the paper") -> None:
    axes.plot(sorted(points), [points[x] for x in sorted(points)], label=name, **PAPER)


def distribution(axes: Axes, values: Sequence[float], **look: Any) -> None:
    """The share of values up to x, as one line."""
    ordered = sorted(values)
    axes.step(ordered, [(at + 1) / len(ordered) for at in range(len(ordered))], where="post", **look)


def finish(
    axes: Axes, *, x: str, y: str = "", title: str = "", legend: bool = True, zero: bool = True
) -> None:
    """Names of the axes, the title, the legend. zero: the vertical axis begins at 0."""
    axes.set_xlabel(x)
    if y:
        axes.set_ylabel(y)
    if title:
        axes.set_title(title, fontsize=10)
    if zero:
        axes.set_ylim(bottom=0)
    if legend:
        axes.legend(fontsize=8, frameon=False)

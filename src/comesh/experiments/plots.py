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
STUDENT_T: Final = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14)
"""So many standard errors on either side of the mean of 2, 3, ... values hold the true one in 95 of 100
tries; of more values the last is a little too many."""
MESH: Final = "seed"
"""The column by which rows are of one mesh: what is measured in one belongs together."""
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


def of_presets(curves: Mapping[str, Mapping[Any, float]]) -> dict[str, Mapping[Any, float]]:
    """As legends name them: `paper` alone would be read as reported by it."""
    return {f"preset {name}": points for name, points in curves.items()}


def means(axes: Axes, rows: Table, name: str, x: str, y: str, *, called: Callable[[str], str] = str) -> None:
    """A line per value of the column `name`: the mean of y at each x, and a band around it."""
    curves = rows.curves(name, x, y)
    lines(axes, {called(curve): points for curve, points in curves.items()})
    around = _of_meshes(rows, name, x, y).curves(name, x, y, uncertainty)
    for number, (curve, points) in enumerate(curves.items()):
        ordered = sorted(points)
        axes.fill_between(
            ordered,
            [points[at] - around[curve][at] for at in ordered],
            [points[at] + around[curve][at] for at in ordered],
            color=COLOURS[number % len(COLOURS)],
            alpha=0.15,
            linewidth=0,
        )


def _of_meshes(rows: Table, name: str, x: str, y: str) -> Table:
    """One row of each mesh at each point: its mean. Where nothing says which mesh it was, the rows."""
    if MESH not in rows.columns:
        return rows
    keys = (name, x, MESH)
    return Table(
        {**dict(zip(keys, key, strict=True)), y: mean} for key, mean in rows.summary(keys, y).items()
    )


def uncertainty(values: Sequence[float]) -> float:
    """How far to either side the true mean may be; 0 of a single value, which says nothing of it."""
    if len(values) < 2:
        return 0.0
    times = STUDENT_T[min(len(values) - 2, len(STUDENT_T) - 1)]
    return times * stdev(values) / math.sqrt(len(values))


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

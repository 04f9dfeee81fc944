"""The stage of all experiments: what one is, what it reads off its results, and how its figures look.

A *case* is a set of parameters, its seed among them. What it measures depends on nothing else, so cases can
run anywhere and in any order. A *campaign* is many cases of one kind. An *experiment* is a figure, table or
claim of the paper (P1 to P16), or one of ours (A to G). Several experiments may look at one campaign.

A module per experiment states its parameters, how a case is run, and what is read off all of them:

    CAMPAIGN = Campaign("candidates", cases, run)
    EXPERIMENT = Experiment(id="P1", title="Candidates per selection", campaign=CAMPAIGN, paper="...",
                            about=__doc__, tables=tables, draw=draw, bars=bars)

An experiment measures and states numbers. What they mean is written by people (docs/results/findings.md).

A mesh, that is a seed, is the unit of what is sure: firings in one mesh are not independent. So the interval
of a mean is Student's t over the means of the seeds; that of a ratio is the middle 95 % of 1,000 draws of the
seeds with repetition (bootstrap). Of fewer than five seeds a ratio has no interval, and no mean meets a bar.
"""

import csv
import io
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from random import Random
from statistics import fmean, median, stdev
from typing import Any, Final, Literal, NamedTuple

import msgspec
from matplotlib import figure as plotted
from matplotlib.axes import Axes

Figure = plotted.Figure
Value = Any
"""A text, a number, true, false, or None: what a cell of a file can hold."""
Row = dict[str, Value]


class Table:
    """Rows in the order in which they were put in; columns in the order in which they first came."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows: list[Row] = list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def where(self, **wanted: Value) -> "Table":
        """The rows in which these columns have these values."""
        return Table(row for row in self.rows if all(row.get(name) == one for name, one in wanted.items()))

    def adding(self, **columns: Callable[[Row], Value]) -> "Table":
        """The same rows with these columns, computed from each."""
        return Table({**row, **{name: of(row) for name, of in columns.items()}} for row in self.rows)

    def groups(self, *by: str) -> list[tuple[tuple[Value, ...], "Table"]]:
        """For each combination of values of these columns: the values, and their rows."""
        found: dict[tuple[Value, ...], Table] = {}
        for row in self.rows:
            found.setdefault(tuple(row.get(name) for name in by), Table()).rows.append(row)
        return list(found.items())

    def distinct(self, column: str) -> list[Value]:
        """The values of a column, each once, in order of appearance."""
        return list(dict.fromkeys(row[column] for row in self.rows if row.get(column) is not None))

    def numbers(self, column: str) -> list[float]:
        """The values of a column, where a row has one."""
        return [float(row[column]) for row in self.rows if row.get(column) is not None]

    def mean(self, column: str) -> float:
        return fmean(self.numbers(column))

    def median(self, column: str) -> float:
        return median(self.numbers(column))

    def total(self, column: str) -> float:
        return sum(self.numbers(column))

    def summary(
        self, by: str, column: str, of: Callable[[Sequence[float]], float] = fmean
    ) -> dict[Value, float]:
        """For each value of the column `by`: one number of its values in `column`."""
        found = ((value, rows.numbers(column)) for (value,), rows in self.groups(by))
        return {value: of(numbers) for value, numbers in found if numbers}

    def csv(self) -> str:
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()


def percentile(values: Sequence[float], percent: float) -> float:
    """By nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


# -- experiments ---------------------------------------------------------------------------------------------

Parameters = dict[str, Value]
Cases = Iterator[Parameters]


class Scale(StrEnum):
    QUICK = "quick"
    """Every claim, in minutes."""
    FULL = "full"
    """The paper's seeds and sizes."""


_HOLDS: Final = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}


class Bar(msgspec.Struct, frozen=True):
    """A number that this project holds itself to: `Bar("hub / mean node", 5.2, 5.0, ">=")`."""

    name: str
    value: float
    limit: float
    sense: Literal["<=", "<", ">=", ">"] = "<="
    unjudged: str = ""
    """Why it is not judged; empty: it is."""

    @property
    def met(self) -> bool | None:
        """None: it is not judged. A value that is no number misses."""
        return None if self.unjudged else bool(_HOLDS[self.sense](self.value, self.limit))

    @property
    def verdict(self) -> str:
        return {True: "met", False: "MISSED", None: f"not judged: {self.unjudged}"}[self.met]


class Recorded(NamedTuple):
    """What a case measured, and a recording from which the campaign computes the same rows again
    (`reread`)."""

    rows: list[Row]
    recording: bytes


class Campaign(msgspec.Struct, frozen=True):
    name: str
    cases: Callable[[Scale], Iterable[Parameters]]
    run: Callable[[Parameters], list[Row] | Recorded]
    """What one case measures: rows without the parameters, which are put beside them."""
    about_s: Callable[[Parameters], float] = lambda _: 1.0
    """About how long a case takes: tells how much time is left, and lets long cases begin first."""
    real: bool = False
    """Real processes: cases wait for real time, so several run at once, and nothing simulated meanwhile."""
    is_quiet: Callable[[Parameters], bool] = lambda _: False
    """Whether a real case measures what many others at once would disturb."""
    reread: Callable[[bytes], list[Row]] | None = None
    """The rows of a case, computed from its recording."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str
    campaign: Campaign
    paper: str
    """What the paper reports; of ours: the question."""
    tables: Callable[[Table], Mapping[str, Table]]
    """What the report tabulates, each with a caption."""
    draw: Callable[[Table], Figure]
    bars: Callable[[Table], list[Bar]] = lambda _: []
    about: str = ""
    """How it was measured."""
    looks_at: Callable[[Parameters], bool] = lambda _: True
    """Which cases of a shared campaign it looks at."""


def combinations(**values: Iterable[Value]) -> Cases:
    """Each combination of these values once; the last parameter varies first."""
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def seeds(scale: Scale, quick: int, full: int) -> range:
    return range(1, (full if scale is Scale.FULL else quick) + 1)


# -- what is read off results -------------------------------------------------------------------------------

STUDENT_T: Final = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14)
"""So many standard errors on either side of the mean of 2, 3, ... values hold the true mean in 95 of 100
tries; of more values the last is slightly too many."""
SEED: Final = "seed"
DRAWS, MIDDLE = 1000, 95
MIN_SEEDS: Final = 5


class Estimate(msgspec.Struct, frozen=True):
    """A number and the interval that holds the true one in 95 of 100 tries; None: too few seeds tell."""

    value: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        told = number(self.value)
        if self.low is None or self.high is None or self.low == self.high:
            return told
        return f"{told} [{number(self.low)}, {number(self.high)}]"


def number(value: float) -> str:
    """As reports have it: three digits, or all in front of the point."""
    if not math.isfinite(value):
        return str(value)
    whole = abs(value) >= 100 or value == int(value)
    return f"{value:,.0f}" if whole else f"{value:.3g}"


def half_width(values: Sequence[float]) -> float:
    """How far to either side of their mean the true one may be; 0 of a single value, which tells nothing."""
    if len(values) < 2:
        return 0.0
    times = STUDENT_T[min(len(values) - 2, len(STUDENT_T) - 1)]
    return times * stdev(values) / math.sqrt(len(values))


def pooled(table: Table, column: str, weight: str = "") -> float:
    """The mean of a column over all rows that have it; weight: the column that says how often each counts."""
    rows = [row for row in table if row.get(column) is not None]
    counts = [float(row[weight]) if weight else 1.0 for row in rows]
    total = sum(counts)
    if not total:
        return math.nan
    return sum(float(row[column]) * count for row, count in zip(rows, counts, strict=True)) / total


def mean(table: Table, column: str, weight: str = "") -> Estimate | None:
    """Over all rows, with an interval over the means of the seeds; None: no row has it."""
    value = pooled(table, column, weight)
    if math.isnan(value):
        return None
    of_seeds = [pooled(rows, column, weight) for _, rows in table.groups(SEED)]
    known = [one for one in of_seeds if not math.isnan(one)]
    if len(known) < 2:
        return Estimate(value)
    off = half_width(known)
    return Estimate(value, value - off, value + off)


def means(
    table: Table,
    by: Sequence[str],
    columns: Sequence[str] | Mapping[str, str],
    *,
    across: str = "",
    weight: str = "",
) -> Table:
    """A row per combination of values of `by`, a column per mean. across: each mean has a column for each
    value of this one. columns: a mapping renames them."""
    names = columns if isinstance(columns, Mapping) else dict(zip(columns, columns, strict=True))
    found = []
    for key, rows in table.groups(*by):
        line: dict[str, Value] = dict(zip(by, key, strict=True))
        for column, name in names.items():
            if not across:
                line[name] = mean(rows, column, weight)
                continue
            for (value,), some in rows.groups(across):
                told = f"{name}, {value}" if len(names) > 1 else str(value)
                line[told] = mean(some, column, weight)
        found.append(line)
    return Table(found)


def ratio(one: Table, other: Table, column: str, weight: str = "") -> Estimate | None:
    """The mean of a column in one table against that in the other, over the seeds that both have."""
    both = [_by_seed(table, column, weight) for table in (one, other)]
    shared = [seed for seed in both[0] if seed in both[1]]
    if not shared or not _mean_of(both[1], shared):
        return None
    return Estimate(_mean_of(both[0], shared) / _mean_of(both[1], shared), *_resampled(both, shared))


_Sums = dict[Value, tuple[float, float]]
"""By seed: the sum of a column, and how many values it is of."""


def _by_seed(table: Table, column: str, weight: str) -> _Sums:
    found = {}
    for (seed,), rows in table.groups(SEED):
        count = sum(float(row[weight]) if weight else 1.0 for row in rows if row.get(column) is not None)
        if count:
            found[seed] = (pooled(rows, column, weight) * count, count)
    return found


def _mean_of(sums: _Sums, seeds: Sequence[Value]) -> float:
    return sum(sums[seed][0] for seed in seeds) / sum(sums[seed][1] for seed in seeds)


def _resampled(both: Sequence[_Sums], seeds: Sequence[Value]) -> tuple[float, float] | tuple[None, None]:
    if len(seeds) < MIN_SEEDS:
        return None, None
    draws = Random(1)
    found = []
    for _ in range(DRAWS):
        drawn = draws.choices(seeds, k=len(seeds))
        found.append(_mean_of(both[0], drawn) / _mean_of(both[1], drawn))
    beside = (100 - MIDDLE) / 2
    return percentile(found, beside), percentile(found, 100 - beside)


def ratios(
    table: Table,
    by: Sequence[str],
    columns: Mapping[str, str],
    *,
    across: str,
    one: Value,
    other: Value,
    weight: str = "",
) -> Table:
    """A row per combination of values of `by`: how many times as much each column is, on average, where the
    column `across` is one value as where it is the other."""
    found = []
    for key, rows in table.groups(*by):
        above, below = rows.where(**{across: one}), rows.where(**{across: other})
        times = {name: ratio(above, below, column, weight) for column, name in columns.items()}
        if any(times.values()):
            found.append(dict(zip(by, key, strict=True)) | times)
    return Table(found)


def growth(table: Table, x: str, column: str, weight: str = "") -> Estimate | None:
    """The mean at the greatest x against that at the least."""
    points = table.distinct(x)
    largest, smallest = (table.where(**{x: end(points)}) for end in (max, min))
    return ratio(largest, smallest, column, weight)


def growths(
    table: Table, by: Sequence[str], x: str, columns: Mapping[str, str], *, weight: str = ""
) -> Table:
    """A row per combination of values of `by`: between which x, and how many times each column grows."""
    found = []
    for key, rows in table.groups(*by):
        points = rows.distinct(x)
        line: dict[str, Value] = dict(zip(by, key, strict=True))
        line[x] = f"{min(points)} to {max(points)}"
        line |= {name: growth(rows, x, column, weight) for column, name in columns.items()}
        found.append(line)
    return Table(found)


def merged(table: Table) -> Table:
    """The same rows; where both presets measured the same, as where nothing that they set matters, once."""
    paper, default = (
        table.where(preset=name).adding(preset=lambda _: "both") for name in ("paper", "default")
    )
    return paper if paper.rows == default.rows else table


def few_seeds(table: Table) -> str:
    """Why a mean of these rows is not held to a bar; empty: it is."""
    seeds = len(table.distinct(SEED))
    return "" if seeds >= MIN_SEEDS else f"of {seeds} seeds one may decide the mean; --full has more"


# -- figures -------------------------------------------------------------------------------------------------

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS: Final = "os^DvPX"
STYLES: Final = ("-", (0, (5, 1.5)), "-.", ":")
"""Lines that lie on each other are both seen."""
BY_SIZE: Final = {"devices": "devices (40 % of them nodes)"}
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


def draw_lines(axes: Axes, curves: Mapping[str, Mapping[Any, float]], *, first: int = 0) -> None:
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


def named(column: str, value: Value) -> str:
    """As legends and titles have it: `paper` alone would be read as reported by it."""
    return f"preset {value}" if column == "preset" else str(value)


def draw_means(
    axes: Axes, table: Table, line: str, x: str, y: str, *, weight: str = "", first: int = 0
) -> None:
    """A line per value of the column `line`: the mean of y at each x, and a band with its interval."""
    for number, ((value,), rows) in enumerate(table.groups(line), start=first):
        found = ((at, mean(some, y, weight)) for (at,), some in rows.groups(x))
        points = {at: one for at, one in sorted(found) if one is not None}
        draw_lines(axes, {named(line, value): {at: one.value for at, one in points.items()}}, first=number)
        lows = [one.value if one.low is None else one.low for one in points.values()]
        highs = [one.value if one.high is None else one.high for one in points.values()]
        colour = COLOURS[number % len(COLOURS)]
        axes.fill_between(list(points), lows, highs, color=colour, alpha=0.15, linewidth=0)


def facets(
    table: Table,
    *,
    x: Mapping[str, str],
    y: Mapping[str, str],
    line: str,
    row: str = "",
    column: str = "",
    weight: str = "",
    width: float = 4.0,
    adjust: Callable[[Axes], object] = lambda _: None,
) -> Figure:
    """Panels of `draw_means`: one for each value of the columns `row` and `column`, and each y. x and y: from
    columns of the table to what axes are called."""
    ((at, x_label),) = x.items()
    rows, columns = ((table.distinct(one) if one else [None]) for one in (row, column))
    figure, _ = new_figure(len(rows), len(columns) * len(y), width=width)
    panels = [(down, over, *one) for down in rows for over in columns for one in y.items()]
    for number, (axes, (down, over, measured, y_label)) in enumerate(zip(figure.axes, panels, strict=True)):
        wanted = {name: value for name, value in ((row, down), (column, over)) if name}
        draw_means(axes, table.where(**wanted), line, at, measured, weight=weight)
        finish(
            axes,
            x=x_label,
            y=y_label,
            title=", ".join(named(name, value) for name, value in wanted.items()),
            legend=number == 0,
        )
        adjust(axes)
    return figure


def draw_bars(axes: Axes, heights: Mapping[str, Mapping[str, float]]) -> None:
    """A bar per name and place: from names, which the legend has, to heights by place."""
    places = list(dict.fromkeys(place for one in heights.values() for place in one))
    width = 0.8 / max(1, len(heights))
    for number, (name, by_place) in enumerate(heights.items()):
        at = [places.index(place) + number * width for place in by_place]
        axes.bar(at, list(by_place.values()), 0.95 * width, label=name, color=COLOURS[number % len(COLOURS)])
    axes.set_xticks([at + 0.4 - width / 2 for at in range(len(places))], places)


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
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, frameon=False)

"""Shared by the commands that list things: tables, times, and how fresh the answers are."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from comesh.cli.terminal import out, plain
from comesh.core.values import Value
from comesh.queries.answers import Freshness
from comesh.queries.times import clock

MAX_NAMED: Final = 10
"""Maximum names in one sentence; of more, their number follows."""


WIDEST: Final = 10_000
"""Maximum columns of a table that goes into a file or a pipe."""


class ListTable(Table):
    """A table without lines around cells, as all commands print them.

    On a terminal it folds to fit. Elsewhere it is as wide as it needs, so that every row is a line, unless it
    is part of a report (`folds`).
    """

    def __init__(self, *, folds: bool = False, **look: Any) -> None:
        self._folds = folds
        super().__init__(box=None, padding=(0, 2, 0, 0), pad_edge=False, title_justify="left", **look)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fitting = options if console.is_terminal or self._folds else options.update(max_width=WIDEST)
        drawn = cast("Iterable[Segment]", super().__rich_console__(console, fitting))
        for line in Segment.split_lines(drawn):
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                *before, last = line
                yield from before
                yield Segment(last.text.rstrip(), last.style)
            yield Segment.line()


def table(headings: Sequence[str], rows: Iterable[Sequence[RenderableType]]) -> Table:
    """A table of these columns, without those that have nothing in any row."""
    cells = [[*row, *[""] * (len(headings) - len(row))] for row in rows]
    made = ListTable()
    used = [at for at in range(len(headings)) if not cells or any(row[at] for row in cells)]
    for at in used:
        made.add_column(headings[at], overflow="fold")
    for row in cells:
        made.add_row(*(row[at] for at in used))
    return made


def details(rows: Iterable[tuple[str, str]]) -> None:
    """Prints one entity, a line for each of its properties that is not empty."""
    shown = ListTable(show_header=False)
    for what, text in rows:
        if text:
            shown.add_row(Text(what, style="dim"), plain(text))
    out.print(shown)


def value_text(value: Value) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value).lower()


def readings_text(readings: dict[str, Value] | None) -> str:
    return ", ".join(f"{name} {value_text(value)}" for name, value in (readings or {}).items())


def names_text(names: Sequence[str]) -> str:
    """Joins names: `a, b, c`, or `a, b, c and 20 more`."""
    shown = ", ".join(names[:MAX_NAMED])
    return shown if len(names) <= MAX_NAMED else f"{shown} and {len(names) - MAX_NAMED} more"


def age_text(one: Freshness) -> Text:
    """Says when the state of a row was so, if it is not fresh."""
    if one.reached:
        return Text("")
    known = "no answer yet" if one.as_of_ms is None else f"last known {clock(one.as_of_ms)}"
    return Text(f"not reached; {known}", style="red")


def freshness_text(found: Sequence[tuple[str, Freshness]]) -> str:
    """Says how fresh a table is, and which entities were not reached."""
    fresh = [one for _, one in found if one.reached and one.as_of_ms is not None]
    lost = [name for name, one in found if not one.reached]
    told = ""
    if fresh:
        leaders = sorted({str(one.answered_by) for one in fresh})
        times = [clock(one.as_of_ms or 0.0) for one in (min(fresh, key=_as_of), max(fresh, key=_as_of))]
        when = times[0] if times[0] == times[1] else f"{times[0]} to {times[1]}"
        told = f"as of {when} (source: {names_text(leaders)})"
    missing = f"not reached: {names_text(lost)}" if lost else ""
    return "; ".join(filter(None, (told, missing)))


def one_freshness_text(one: Freshness) -> str:
    if one.as_of_ms is None:
        return "no answer yet"
    told = f"as of {clock(one.as_of_ms)} (source: {one.answered_by})"
    return told if one.reached else f"not reached now; last known {told}"


def _as_of(one: Freshness) -> float:
    return one.as_of_ms or 0.0

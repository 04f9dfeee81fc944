"""Tidy results: one row per measurement, one column per parameter or measured value."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean, median
from typing import Any

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

    def summary(
        self, by: Sequence[str], column: str, of: Callable[[Sequence[float]], float] = fmean
    ) -> dict[tuple[Value, ...], float]:
        """One number for each combination of values of the columns `by`."""
        found: dict[tuple[Value, ...], list[float]] = {}
        for row in self.rows:
            if row.get(column) is not None:
                key = tuple(row.get(name) for name in by)
                found.setdefault(key, []).append(float(row[column]))
        return {key: of(values) for key, values in found.items()}

    def curves(
        self, name: str, x: str, y: str, of: Callable[[Sequence[float]], float] = fmean
    ) -> dict[str, dict[Value, float]]:
        """For each value of the column `name`: from each value of x to one number of its values of y."""
        found: dict[str, dict[Value, float]] = {}
        for (curve, at), number in self.summary((name, x), y, of).items():
            found.setdefault(str(curve), {})[at] = number
        return found

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

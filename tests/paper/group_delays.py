"""Delays of operations inside groups, over all cases of a table."""

from typing import Any

from comesh.experiments.stage import Table, pooled


def delay(table: Table, operation: str, **wanted: Any) -> float:
    """The mean of the medians of its cases, in hops."""
    return table.where(operation=operation, **wanted).mean("median")


def mean_delay(table: Table, **wanted: Any) -> float:
    return pooled(table.where(**wanted), "mean", "count")

"""What one measurement gave, ours or a peer's, and how two of them compare."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec


class Effort(msgspec.Struct, frozen=True):
    """How much is measured."""

    count: int = 2000
    """Lock and unlock pairs one after the other, and as many at once."""
    warm_up: int = 1000
    """Pairs before, which do not count: compilers and caches get warm."""
    trials: int = 5
    """How often an agent is killed."""
    at_once: int = 32
    """Workers, each with a connection and a lock of its own."""


class Result(msgspec.Struct, frozen=True):
    name: str
    unit: Literal["ms", "s"]
    """Of the three times."""
    count: int
    p50: float
    p90: float
    p99: float
    per_second: float | None = None
    """How many were done per second of the whole measurement; None where that says nothing."""


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least this share of all values does not exceed (nearest rank)."""
    if not values:
        raise ValueError("no values: nothing was measured")
    return sorted(values)[max(0, math.ceil(percent / 100 * len(values)) - 1)]


def result(
    name: str, unit: Literal["ms", "s"], values: Sequence[float], took_s: float | None = None
) -> Result:
    """took_s: the whole measurement, by the clock on the wall."""
    p50, p90, p99 = (percentile(values, percent) for percent in (50, 90, 99))
    per_second = None if took_s is None else len(values) / took_s
    return Result(name, unit, len(values), p50, p90, p99, per_second)


def ratio(ours: Result, theirs: Result) -> float:
    """How many times as fast we are by the median: 2 means that ours takes half as long."""
    if ours.unit != theirs.unit:
        raise ValueError(f"{ours.name} is in {ours.unit}, {theirs.name} in {theirs.unit}")
    return theirs.p50 / ours.p50


def rate_ratio(ours: Result, theirs: Result) -> float:
    """How many times as many per second we do: 2 means twice as many."""
    if ours.per_second is None or theirs.per_second is None:
        raise ValueError(f"{ours.name} or {theirs.name} has no rate")
    return ours.per_second / theirs.per_second


def table(results: Iterable[Result]) -> list[str]:
    """Lines for people."""
    lines = [f"{'':52} {'count':>6} {'p50':>9} {'p90':>9} {'p99':>9}     {'per second':>10}"]
    for one in results:
        times = " ".join(f"{value:9.3f}" for value in (one.p50, one.p90, one.p99))
        rate = "" if one.per_second is None else f"{one.per_second:10.0f}"
        lines.append(f"{one.name:52} {one.count:6} {times} {one.unit:3} {rate}".rstrip())
    return lines

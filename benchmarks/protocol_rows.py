"""A line of the protocol benchmark's table: what was measured, and the bar it is held to, if any."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

import msgspec


class Row(msgspec.Struct, frozen=True):
    what: str
    measured: float
    bar: str
    met: bool | None
    """None: held to no bar."""
    told: str = ""


def at_most(what: str, measured: float, bar: float, told: str = "") -> Row:
    return Row(what, measured, f"at most {bar:.4g}", measured <= bar, told)


def at_least(what: str, measured: float, bar: float, told: str = "") -> Row:
    return Row(what, measured, f"at least {bar:.4g}", measured >= bar, told)


def spread(values: Sequence[float]) -> str:
    """Least, median and most."""
    if not values:
        return "none"
    return f"{min(values):.4g} .. {median(values):.4g} .. {max(values):.4g}"


def show(row: Row) -> None:
    verdict = {True: "met", False: "MISSED", None: ""}[row.met]
    bar = f"{row.bar}: {verdict}" if row.bar else ""
    print(f"{row.what:78} {row.measured:9.3f}  {bar:22}  {row.told}", flush=True)


def main_of(parts: Mapping[str, Callable[[], Iterator[Row]]], usual: Sequence[str]) -> int:
    """Show the parts that are named on the command line, else the usual ones; the exit code."""
    unknown = [name for name in sys.argv[1:] if name not in parts]
    if unknown:
        print(f"there is no part {unknown[0]!r}; there are {', '.join(parts)}")
        return 2
    missed = 0
    for name in sys.argv[1:] or usual:
        for row in parts[name]():
            show(row)
            missed += row.met is False
    print("bars: all met" if not missed else f"bars: {missed} missed")
    return int(missed > 0)

"""A line of the protocol benchmark's table: what was measured, and the bar it is held to, if any."""

from collections.abc import Sequence
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

"""Durations and lengths as people write them: `500ms`, `1h30m`, `4.5m`, `120cm`, `3 m`.

Inside they are whole milliseconds and whole millimetres, because the core computes with integers only.
Exact decimals, no floats: `0.1m` is 100 mm on every machine. A bare number is refused, except 0, because
`epoch: 60` leaves open of what.
"""

import re
from decimal import Decimal

from comesh.deployment.problems import WrongError, quote, shorten

DURATION_PATTERN = r"^(\d+(\.\d+)? ?(d|h|min|m|s|ms) ?)+$"
LENGTH_PATTERN = r"^[+-]?\d+(\.\d+)? ?(km|m|cm|mm)$"
"""Pattern of lengths, also given to editors in the JSON Schema."""

MAX_DURATION_MS = 366 * 86_400_000
MAX_LENGTH_MM = 100_000_000

_DURATION_MS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "m": 60_000, "s": 1000, "ms": 1}
_LENGTH_MM = {"km": 1_000_000, "m": 1000, "cm": 10, "mm": 1}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?) ?(d|h|min|ms|m|s) ?", re.ASCII)
_LENGTH = re.compile(r"([+-]?\d+(?:\.\d+)?) ?(km|m|cm|mm)", re.ASCII)
_MAX_CHARACTERS = 40


def parse_duration_ms(value: object) -> int:
    """Whole milliseconds, or WrongError in words for people."""
    if isinstance(value, int) and not isinstance(value, bool) and value == 0:
        return 0
    negative = value < 0 if isinstance(value, int | float) else str(value).strip().startswith(("-", "\u2212"))
    if negative:
        raise WrongError(f"{quote(value)} is not a duration", "it cannot be negative")
    if not isinstance(value, str):
        raise WrongError(
            f"{quote(value)} is not a duration", "write it with its unit, such as 500ms, 60s, 2m or 1h30m"
        )
    text = value.strip()
    total = Decimal(0)
    end = 0
    largest = Decimal("Infinity")
    while end < len(text) and len(text) <= _MAX_CHARACTERS:
        part = _DURATION_PART.match(text, end)
        if part is None:
            break
        unit_ms = Decimal(_DURATION_MS[part.group(2)])
        if unit_ms >= largest:
            raise WrongError(
                f"'{text}' is not a duration", "go from large units to small ones, such as 1h30m"
            )
        largest = unit_ms
        total += Decimal(part.group(1)) * unit_ms
        end = part.end()
    if end == 0 or end != len(text):
        _refuse_comma(text, "duration")
        raise WrongError(
            f"{quote(value)} is not a duration", "write it with its unit, such as 500ms, 60s, 2m or 1h30m"
        )
    if total != total.to_integral_value():
        raise WrongError(f"'{text}' is not a whole number of milliseconds")
    if total > MAX_DURATION_MS:
        raise WrongError(f"'{text}' is longer than a year")
    return int(total)


def parse_length_mm(value: object) -> int:
    """Whole millimetres, or WrongError in words for people."""
    if isinstance(value, int) and not isinstance(value, bool) and value == 0:
        return 0
    found = None
    if isinstance(value, str) and len(value) <= _MAX_CHARACTERS:
        found = _LENGTH.fullmatch(value.strip())
    if found is None:
        _refuse_comma(value, "length")
        raise WrongError(
            f"{quote(value)} is not a length", "write it with its unit, such as 4.5m, 120cm or 350mm"
        )
    length_mm = Decimal(found.group(1)) * _LENGTH_MM[found.group(2)]
    if length_mm != length_mm.to_integral_value():
        raise WrongError(f"'{found.group(0)}' is not a whole number of millimetres")
    if abs(length_mm) > MAX_LENGTH_MM:
        raise WrongError(f"'{found.group(0)}' is more than 100 km from the origin")
    return int(length_mm)


def _refuse_comma(value: object, kind: str) -> None:
    if isinstance(value, str) and re.search(r"[0-9],[0-9]", value):
        better = shorten(value.replace(",", "."))
        raise WrongError(f"{quote(value)} is not a {kind}", f"write a decimal point: {better}")


def show_duration(duration_ms: int) -> str:
    """`90000` as `1m30s`: how a person would have written it."""
    shown = ""
    for unit in ("d", "h", "m", "s", "ms"):
        count, duration_ms = divmod(duration_ms, _DURATION_MS[unit])
        if count:
            shown += f"{count}{unit}"
    return shown or "0s"


def show_length(length_mm: int) -> str:
    """`4500` as `4.5m`."""
    whole, rest = divmod(abs(length_mm), 1000)
    sign = "-" if length_mm < 0 else ""
    return f"{sign}{whole}.{rest:03d}".rstrip("0").rstrip(".") + "m"

"""Orders over HTTP: the path of each, and its answer as the control socket gives it."""

from typing import Any, Final
from urllib.parse import quote

ORDERS: Final = {
    "pause": ("routine", "pause"),
    "resume": ("routine", "resume"),
    "maintain": ("device", "maintain"),
    "set": ("device", "command"),
    "unlock": ("device", "unlock"),
}
"""What each names, and the last part of its path."""


def order_path(ask: str, about: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The path below the base, and what remains for the body."""
    kind, last = ORDERS[ask]
    wish = dict(about)
    name = wish.pop(kind, None)
    return (last if name is None else f"{kind}s/{quote(name, safe='')}/{last}"), wish


def done(answer: dict[str, Any], why_not: str = "") -> dict[str, Any]:
    """As `operations.Done`."""
    return {"request": "", **answer, "why_not": why_not}

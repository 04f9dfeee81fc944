"""Completes names of the running mesh in the shell: quick, and silent whatever goes wrong.

A node on this machine is asked, over its control socket: it knows all names without asking anybody.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from comesh.cli.nodes_here import places
from comesh.queries.answers import QueryError
from comesh.queries.requests import ListNames
from comesh.runtime.client import Client

WITHIN_S: Final = 0.5
Kind = Literal["node", "group", "device", "routine"]


def complete_nodes(ctx: Any, incomplete: str) -> list[str]:
    return _names(ctx, "node", incomplete)


def complete_groups(ctx: Any, incomplete: str) -> list[str]:
    return _names(ctx, "group", incomplete)


def complete_devices(ctx: Any, incomplete: str) -> list[str]:
    return _names(ctx, "device", incomplete)


def complete_routines(ctx: Any, incomplete: str) -> list[str]:
    return _names(ctx, "routine", incomplete)


def _names(ctx: Any, kind: Kind, incomplete: str) -> list[str]:
    data = ctx.params.get("data")
    with suppress(Exception):
        for place in places(None if data is None else Path(data)):
            found = _asked(place, kind)
            if found:
                return [name for name in found if name.startswith(incomplete)]
    return []


def _asked(place: Path, kind: Kind) -> tuple[str, ...]:
    """Returns the names that a node here knows; empty: nobody answers there."""
    try:
        with Client(place, within_s=WITHIN_S) as client:
            return client.ask(ListNames(kind=kind))
    except QueryError:
        return ()

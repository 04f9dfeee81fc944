"""Names of the running mesh for the shell's completion. Quick, and silent whatever goes wrong.

A node on this machine is asked, over its control socket: it knows all names without asking anybody.
"""

import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from comesh.cli.nodes_here import places
from comesh.runtime.client import socket_of

WITHIN_S: Final = 0.5
MAX_BYTES: Final = 4 * 1024 * 1024


def complete_nodes(ctx: Any, incomplete: str) -> list[str]:
    return _names(ctx, "node", incomplete)


def complete_groups(ctx: Any, incomplete: str) -> list[str]:
    return _names(ctx, "group", incomplete)


def complete_devices(ctx: Any, incomplete: str) -> list[str]:
    return _names(ctx, "device", incomplete)


def complete_routines(ctx: Any, incomplete: str) -> list[str]:
    return _names(ctx, "routine", incomplete)


def _names(ctx: Any, kind: str, incomplete: str) -> list[str]:
    data = ctx.params.get("data")
    with suppress(Exception):
        for place in places(None if data is None else Path(data)):
            found = _asked(place, kind)
            if found:
                return [name for name in found if name.startswith(incomplete)]
    return []


def _asked(place: Path, kind: str) -> list[str]:
    """Empty: nobody answers there."""
    path = socket_of(place)
    if path is None:
        return []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked, suppress(OSError, ValueError):
        asked.settimeout(WITHIN_S)
        asked.connect(str(path))
        asked.sendall(json.dumps({"ask": "names", "kind": kind}).encode() + b"\n")
        with asked.makefile("rb") as lines:
            answer = json.loads(lines.readline(MAX_BYTES))
            return [str(name) for name in answer] if isinstance(answer, list) else []
    return []

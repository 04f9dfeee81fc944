"""The nodes that run on this machine: where their data is, and who of them answers."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from comesh.cli.terminal import fail
from comesh.runtime.client import Client, NoAnswerError
from comesh.runtime.control import socket_of
from comesh.runtime.options import OWNER

RUNS: Final = Path(".comesh")
"""Where `comesh up` keeps what it runs, below the directory it is called in."""
NODE_DATA: Final = Path("comesh-data")
"""Where `comesh node` keeps its data, unless told otherwise."""
SERVICE_DATA: Final = Path("/var/lib/comesh")
"""Where a service made by `comesh service` keeps its data, unless told otherwise."""

DataDirectory = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="The directory of `comesh up`, or of one node; left out: what runs below .comesh, "
        "from comesh-data, or from /var/lib/comesh.",
    ),
]


def places(data: Path | None) -> list[Path]:
    """Data directories of nodes, those of the newest run first."""
    if data is not None:
        return _nodes_of(data) or [data]
    runs = [run for run in RUNS.iterdir() if run.is_dir()] if RUNS.is_dir() else []
    runs.sort(key=lambda run: -run.stat().st_mtime)
    found = [place for run in runs for place in _nodes_of(run)]
    return found + [place for place in (NODE_DATA, SERVICE_DATA) if place.is_dir()]


def name_of(place: Path) -> str:
    """Whose data directory it is: as the node wrote down, else as it is called."""
    with suppress(OSError):
        return (place / OWNER).read_text().strip() or place.name
    return place.name


def clients_here(data: Path | None, among: list[Path] | None = None) -> Iterator[Client]:
    """Each node that answers; ends the command with what to do where there is none."""
    if data is not None and not data.is_dir():
        fail(f"{data} is no directory; --data takes that of `comesh up`, or of one node")
    why: list[str] = []
    found = False
    for place in places(data) if among is None else among:
        try:
            client = Client(place)
        except NoAnswerError as wrong:
            why.append(str(wrong))
            continue
        found = True
        yield client
    if found:
        return
    if not why:
        fail(
            "no mesh runs below this directory; start one with `comesh up FILE`, or say where with --data, "
            "or ask a node elsewhere with --node HOST:PORT"
        )
    fail(why[0] if len(set(why)) == 1 else f"none of {len(why)} nodes answers; the first: {why[0]}")


def _nodes_of(run: Path) -> list[Path]:
    """Of a directory of `comesh up`, those whose socket is there."""
    nodes = run / "nodes"
    if not nodes.is_dir():
        return []
    return [place for place in sorted(nodes.iterdir()) if socket_of(place) is not None]

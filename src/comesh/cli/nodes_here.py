"""Finding a node on this machine to ask: what `status`, `fire`, `trace` and `watch` share."""

from pathlib import Path
from typing import Annotated, Final

import typer

from comesh.cli.terminal import fail
from comesh.runtime.client import Client, NoAnswerError
from comesh.runtime.control import socket_of

RUNS: Final = Path(".comesh")
"""Where `comesh up` keeps what it runs, below the directory it is called in."""

DataDirectory = Annotated[
    Path | None,
    typer.Option(
        "--data", help="The directory of `comesh up`, or of one node; left out: what runs below .comesh."
    ),
]
NodeName = Annotated[
    str | None, typer.Option("--node", help="Which node to ask; left out: the first one that answers.")
]


def connect(data: Path | None, node: str | None) -> Client:
    """A node that answers; ends the command with what to do where there is none."""
    places = _places(data)
    if node is not None:
        places = [place for place in places if place.name == node]
        if not places:
            fail(f"there is no node {node!r} here" + (f" in {data}" if data else ""))
    for place in places:
        try:
            return Client(place)
        except NoAnswerError:
            continue
    if data is None and not places:
        return fail("no mesh runs below this directory; start one with `comesh up FILE`, or use --data")
    return fail("no node answers" + (f" in {data}" if data else "") + "; is the mesh running?")


def _places(data: Path | None) -> list[Path]:
    """Data directories of nodes whose socket is there."""
    if data is None:
        runs = sorted(RUNS.iterdir(), key=lambda path: -path.stat().st_mtime) if RUNS.is_dir() else []
        return [place for run in runs for place in _nodes_of(run)]
    return _nodes_of(data) or [data]


def _nodes_of(run: Path) -> list[Path]:
    nodes = run / "nodes"
    if not nodes.is_dir():
        return []
    return [place for place in sorted(nodes.iterdir()) if socket_of(place) is not None]

"""Finds the nodes that run on this machine: their data, and which of them answer."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from comesh.cli.terminal import fail
from comesh.runtime.client import Client, NoAnswerError, socket_of
from comesh.runtime.options import OWNER

RUNS: Final = Path(".comesh")
"""Directory in which `comesh up` keeps the meshes that it runs, below the one it is called in."""
NODE_DATA: Final = Path("comesh-data")
"""Default data directory of `comesh node`."""
SERVICE_DATA: Final = Path("/var/lib/comesh")
"""Default data directory of a service made by `comesh service`."""

WHICH_NODE: Final = "Which node to ask"
"""Section of help for the options that choose a node."""

DataDirectory = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Data directory of a node, or of `comesh up`.  [default: the mesh that runs below .comesh, or "
        "the node of ./comesh-data or /var/lib/comesh]",
        rich_help_panel=WHICH_NODE,
    ),
]


def places(data: Path | None) -> list[Path]:
    """Returns data directories of nodes, those of the newest run first."""
    if data is not None:
        return _nodes_of(data) or [data]
    runs = [run for run in RUNS.iterdir() if run.is_dir()] if RUNS.is_dir() else []
    runs.sort(key=lambda run: -run.stat().st_mtime)
    found = [place for run in runs for place in _nodes_of(run)]
    return found + [place for place in (NODE_DATA, SERVICE_DATA) if place.is_dir()]


def name_of(place: Path) -> str:
    """Returns the name of the node whose data directory it is: as the node wrote it down, else that of the
    directory."""
    with suppress(OSError):
        return (place / OWNER).read_text().strip() or place.name
    return place.name


def clients_here(data: Path | None, among: list[Path] | None = None) -> Iterator[Client]:
    """Yields a client for each node that answers; ends the command with what to do where there is none."""
    if data is not None and not data.is_dir():
        fail(f"{data} is not a directory; --data takes that of `comesh up`, or of one node")
    asked = places(data) if among is None else among
    if data is None:
        _refuse_two_meshes(asked)
    why: list[str] = []
    found = False
    for place in asked:
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


def _refuse_two_meshes(asked: list[Path]) -> None:
    """Ends the command where two meshes of `comesh up` run: it is not clear which one is meant."""
    runs = list(dict.fromkeys(_run_of(place) for place in asked if place.is_relative_to(RUNS)))
    if len(runs) < 2:
        return
    running = [run for run in runs if any(_answers(place) for place in asked if _run_of(place) == run)]
    if len(running) > 1:
        names = ", ".join(sorted(run.name for run in running))
        fail(f"{len(running)} meshes run here: {names}. Say which one, such as --data {running[0]}")


def _run_of(place: Path) -> Path:
    return place.parent.parent


def _answers(place: Path) -> bool:
    try:
        Client(place).close()
    except NoAnswerError:
        return False
    return True


def _nodes_of(run: Path) -> list[Path]:
    """Returns the nodes of a directory of `comesh up` whose socket is there."""
    nodes = run / "nodes"
    if not nodes.is_dir():
        return []
    return [place for place in sorted(nodes.iterdir()) if socket_of(place) is not None]

"""`comesh trace`: what a run did, step by step, collected from all nodes that had a part in it."""

import re
import time
from typing import Annotated

import typer

from comesh.cli.nodes_here import DataDirectory, NodeName, connect
from comesh.cli.terminal import Exit, fail, out, plain, print_json
from comesh.runtime.client import NoAnswerError
from comesh.runtime.view import TraceLine

Lines = tuple[TraceLine, ...]
_MOMENT = re.compile(r"scheduled for (\d{13})\b")


def trace(
    run: Annotated[
        str | None,
        typer.Argument(
            help="A run such as 'evening#4:0.0:12', or a routine: its latest run. Left out: the latest runs.",
            show_default=False,
        ),
    ] = None,
    *,
    data: DataDirectory = None,
    node: NodeName = None,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Readings, firing, locks, commands and answers, changes of leader, and the end of a run."""
    try:
        with connect(data, node) as client:
            lines: Lines = client.ask(Lines, "runs") if run is None else client.ask(Lines, "trace", run=run)
    except NoAnswerError as wrong:
        fail(str(wrong))
    if json:
        print_json(lines)
    elif not lines:
        what = "no run was traced yet" if run is None else f"no node knows a run {run!r}"
        fail(f"{what}; nodes keep the latest runs of the groups they led", Exit.NO)
    else:
        for line in lines:
            about = f"{line.run} " if run is None else ""
            told = f"{about}{line.what} {readable(line.detail)}".rstrip()
            out.print(plain(f"{clock(line.wall_ms)} {line.node:<16} {told}"))
    raise typer.Exit(int(Exit.OK if lines else Exit.NO))


def readable(detail: str) -> str:
    """With times of day in the place of milliseconds since 1970."""
    return _MOMENT.sub(lambda found: f"scheduled for {clock(float(found[1]))}", detail)


def clock(wall_ms: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(wall_ms / 1000)) + f".{int(wall_ms % 1000):03d}"

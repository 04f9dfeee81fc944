"""`comesh trace`: shows what a run did, step by step, collected from all nodes that took part."""

import re
from typing import Annotated, Final

import typer

from comesh.cli.asking import asking
from comesh.cli.completion import complete_routines
from comesh.cli.tables import clock, names_text
from comesh.cli.terminal import Exit, err, fail, out, plain, print_json
from comesh.queries.answers import TraceLine
from comesh.queries.requests import MAX_LISTED, ListRuns, ShowRun
from comesh.runtime.client import AnyClient

_MOMENT: Final = re.compile(r"scheduled for (\d{13})\b")


@asking
def trace(
    client: AnyClient,
    run: Annotated[
        str | None,
        typer.Argument(
            help="A run such as 'evening#4:0.0:12', or a routine for its latest run.  [default: the "
            "latest runs]",
            show_default=False,
            autocompletion=complete_routines,
        ),
    ] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show what a run did, step by step.

    Readings, firing, locks, commands and answers, changes of leader, and the end of the run.
    """
    lines: tuple[TraceLine, ...]
    if run is None:
        latest = client.ask(ListRuns(limit=MAX_LISTED))
        lines, silent = latest.runs[::-1], tuple(latest.silent)
    else:
        told = client.ask(ShowRun(run=run))
        lines, silent = told.trace, tuple(told.silent)
    if json:
        print_json(lines)
    elif not lines:
        fail("no run was traced yet; nodes keep the latest runs of the groups they led", Exit.NO)
    else:
        for line in lines:
            about = f"{line.run} " if run is None else ""
            what = f"{about}{line.what} {readable(line.detail)}".rstrip()
            out.print(plain(f"{clock(line.wall_ms)} {line.node:<16} {what}"))
    if silent:
        err.print(plain(f"not reached: {names_text(silent)}; what only they know is missing"))
    raise typer.Exit(int(Exit.OK if lines else Exit.NO))


def readable(detail: str) -> str:
    """Replaces milliseconds since 1970 by times of day."""
    return _MOMENT.sub(lambda found: f"scheduled for {clock(float(found[1]))}", detail)

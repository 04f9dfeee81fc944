"""`comesh trace`: shows what a run did, step by step, collected from all nodes that took part."""

from typing import Annotated

import typer

from comesh.cli.asking import asking
from comesh.cli.completion import complete_routines
from comesh.cli.tables import names_text
from comesh.cli.terminal import Exit, err, fail, out, plain, print_json
from comesh.queries.answers import TraceLine
from comesh.queries.requests import MAX_LISTED, ListRuns, ShowRun
from comesh.queries.trace_text import Telling
from comesh.runtime.client import AnyClient


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
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show stamps, groups and attempts, too.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show what a run did, step by step.

    Readings, firing, locks, commands and answers, changes of leader, and the end of the run. Times are in the
    document's time zone.
    """
    lines: tuple[TraceLine, ...]
    if run is None:
        latest = client.ask(ListRuns(limit=MAX_LISTED))
        lines, silent, zone = latest.runs[::-1], tuple(latest.silent), latest.time_zone
    else:
        told = client.ask(ShowRun(run=run))
        lines, silent, zone = told.trace, tuple(told.silent), told.time_zone
    if json:
        print_json(lines)
    elif not lines:
        fail("no run was traced yet; nodes keep the latest runs of the groups they led", Exit.NO)
    else:
        _show(lines, zone, runs=run is None, verbose=verbose)
    if silent:
        err.print(plain(f"not reached: {names_text(silent)}; what only they know is missing"))
    raise typer.Exit(int(Exit.OK if lines else Exit.NO))


def _show(lines: tuple[TraceLine, ...], zone: str, *, runs: bool, verbose: bool) -> None:
    telling = Telling(verbose=verbose, time_zone=zone)
    for line in lines:
        about = f"{line.run} " if runs else ""
        what = telling.text(line.run, line.node, line.wall_ms, line.trace)
        out.print(plain(f"{telling.clock(line.wall_ms)} {line.node:<16} {about}{what}"))
    if telling.differs_here(lines[-1].wall_ms):
        err.print(plain(f"times are those of {zone}, as in the document", "dim"))

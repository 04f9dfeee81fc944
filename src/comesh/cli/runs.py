"""`comesh runs`: lists the latest runs, as the nodes that led their groups remember them."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from comesh.cli.asking import asking
from comesh.cli.completion import complete_routines
from comesh.cli.tables import clock, names_text, table
from comesh.cli.terminal import Exit, fail, number, out, plain, print_json
from comesh.deployment.problems import did_you_mean
from comesh.queries.answers import ENDED, TraceLine
from comesh.queries.requests import MAX_LISTED, ListRoutines, ListRuns
from comesh.runtime.client import AnyClient


@asking
def runs(
    client: AnyClient,
    *,
    routine: Annotated[
        str | None,
        typer.Option("--routine", help="Only runs of this routine.", autocompletion=complete_routines),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Only runs that have not ended.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="Only runs that failed.")] = False,
    last: Annotated[int, typer.Option("--last", min=1, max=MAX_LISTED, help="Maximum number of runs.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the latest runs, newest first.

    Exit code 0: there are such runs; 1: there are none.
    """
    if routine is not None:
        known = [one.routine for one in client.ask(ListRoutines()).routines]
        if routine not in known:
            hint = did_you_mean(routine, known) or "see: comesh routines"
            fail(f"there is no routine {routine!r}; {hint}", Exit.NO)
    answer = client.ask(ListRuns(limit=MAX_LISTED))
    found = chosen(answer.runs, routine, live=live, failed=failed)[:last]
    if json:
        print_json(msgspec.structs.replace(answer, runs=tuple(found)))
    else:
        if found:
            out.print(table(("time", "run", "last step", "", "source"), map(_row, found)))
        silent = f"; not reached: {names_text(tuple(answer.silent))}" if answer.silent else ""
        fresh = f"as of {clock(answer.as_of_ms)}, asked {answer.answered_by}"
        out.print(plain(f"{number(len(found), 'run')}; {fresh}{silent}"))
    raise typer.Exit(int(Exit.OK if found else Exit.NO))


def chosen(found: Iterable[TraceLine], routine: str | None, *, live: bool, failed: bool) -> list[TraceLine]:
    return [
        one
        for one in found
        if routine in (None, one.run.partition("#")[0])
        and not (live and one.what in ENDED)
        and not (failed and one.what != "failed")
    ]


def _row(one: TraceLine) -> list[str | Text]:
    what = Text(one.what, style="red" if one.what == "failed" else "")
    return [clock(one.wall_ms), one.run, what, plain(one.detail), one.node]

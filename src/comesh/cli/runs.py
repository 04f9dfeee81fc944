"""`comesh runs`: lists the latest runs, as the nodes that led their groups remember them."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from comesh.cli.asking import asking
from comesh.cli.completion import complete_routines
from comesh.cli.tables import names_text, table
from comesh.cli.terminal import Exit, fail, number, out, plain, print_json
from comesh.core.traces import Failed
from comesh.deployment.problems import did_you_mean
from comesh.queries.answers import TraceLine
from comesh.queries.requests import MAX_LISTED, ListRoutines, ListRuns
from comesh.queries.times import clock, zone_named
from comesh.queries.trace_text import Telling
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
            telling = Telling(time_zone=answer.time_zone)
            out.print(table(("time", "run", "last step", "source"), (_row(one, telling) for one in found)))
        silent = f"; not reached: {names_text(tuple(answer.silent))}" if answer.silent else ""
        fresh = f"as of {clock(answer.as_of_ms, zone_named(answer.time_zone))}, asked {answer.answered_by}"
        out.print(plain(f"{number(len(found), 'run')}; {fresh}{silent}"))
    raise typer.Exit(int(Exit.OK if found else Exit.NO))


def chosen(found: Iterable[TraceLine], routine: str | None, *, live: bool, failed: bool) -> list[TraceLine]:
    return [
        one
        for one in found
        if routine in (None, one.run.partition("#")[0])
        and not (live and one.ends)
        and not (failed and not isinstance(one.trace, Failed))
    ]


def _row(one: TraceLine, telling: Telling) -> list[str | Text]:
    told = telling.text(one.run, one.node, one.wall_ms, one.trace)
    what = plain(told, "red" if isinstance(one.trace, Failed) else "")
    return [telling.clock(one.wall_ms), one.run, what, one.node]

"""`comesh routines`: lists the routines of the mesh, as the leaders of their groups see them."""

from typing import Annotated

import typer
from rich.text import Text

from comesh.cli.asking import asking
from comesh.cli.completion import complete_routines
from comesh.cli.tables import age_text, details, freshness_text, one_freshness_text, table
from comesh.cli.terminal import Exit, number, out, plain, print_json
from comesh.core.ids import RoutineId
from comesh.queries.answers import RoutineAnswer, Routines, RunSeen
from comesh.queries.requests import ListRoutines, ShowRoutine
from comesh.runtime.client import AnyClient


@asking
def routines(
    client: AnyClient,
    routine: Annotated[
        str | None,
        typer.Argument(
            metavar="ROUTINE",
            help="Show this routine in detail.",
            show_default=False,
            autocompletion=complete_routines,
        ),
    ] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the routines: what runs or waits, and how runs ended.

    Exit code 0: the groups of all listed routines answer; 1: otherwise.
    """
    if routine is not None:
        one = client.ask(ShowRoutine(routine=RoutineId(routine)))
        if json:
            print_json(one)
        else:
            _show_one(one)
        raise typer.Exit(int(Exit.OK if one.reached else Exit.NO))
    found = client.ask(ListRoutines()).routines
    if json:
        print_json(Routines(routines=found))
    else:
        if found:
            out.print(table(("routine", "group", "now", "waiting", "last run", ""), map(_row, found)))
        fresh = freshness_text([(one.routine, one) for one in found])
        out.print(plain("; ".join(filter(None, (number(len(found), "routine"), fresh)))))
    raise typer.Exit(int(Exit.OK if all(one.reached for one in found) else Exit.NO))


def going(live: RunSeen | None) -> str:
    return "" if live is None else f"{live.stage.lower()} {live.done}/{live.steps}"


def _row(one: RoutineAnswer) -> list[str | Text]:
    state = one.state
    if state is None:
        return [one.routine, one.group, "", "", "", age_text(one)]
    ended = "" if state.last is None else state.last_reason or "finished"
    waiting = str(state.waiting or "")
    now = Text(going(state.live))
    if state.paused_by is not None:
        now.append(" paused" if state.live else "paused", style="yellow")
    return [one.routine, one.group, now, waiting, plain(ended), age_text(one)]


def _show_one(one: RoutineAnswer) -> None:
    out.print(plain(one.routine + (f", {one.name}" if one.name else ""), "bold"))
    state = one.state
    rows = [("group", str(one.group)), ("commands", ", ".join(one.commands))]
    if state is not None:
        live = state.live
        rows += [
            ("paused", "" if state.paused_by is None else f"by {state.paused_by}"),
            ("clause", "" if state.truth is None else "true" if state.truth else "false"),
            ("now", "no run" if live is None else f"{live.run}: {going(live)}, attempt {live.attempt}"),
            ("holds", "" if live is None else ", ".join(live.held)),
            ("waiting", f"{number(state.waiting, 'firing')}" if state.waiting else ""),
            (
                "last run",
                "none yet" if state.last is None else f"{state.last}: {state.last_reason or 'finished'}",
            ),
        ]
    details([*rows, ("", one_freshness_text(one))])

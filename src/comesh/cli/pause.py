"""`comesh pause`: stops a routine from firing; with --all it stops everything, also what runs."""

from typing import Annotated

import typer

from comesh.cli.asking import asking
from comesh.cli.completion import complete_routines
from comesh.cli.ordering import Json, Request, order, say
from comesh.cli.terminal import fail, number
from comesh.core.ids import RoutineId
from comesh.queries.requests import PauseAll, PauseRoutine
from comesh.runtime.client import AnyClient

All = Annotated[bool, typer.Option("--all", help="All routines of the mesh.")]
Routine = Annotated[
    str | None,
    typer.Argument(help="The routine.", show_default=False, autocompletion=complete_routines),
]


@asking
def pause(
    client: AnyClient,
    routine: Routine = None,
    *,
    everything: All = False,
    request: Request = None,
    json: Json = False,
) -> None:
    """Stop a routine, or all of them, until `comesh resume`.

    Nothing fires the routine, its run ends before its next command, and waiting firings are dropped. A
    command under way is not taken back. Exit code 0: the order is committed; 1: it is not, with the reason.
    """
    check(routine, everything=everything)
    if routine is None:
        done = order(client, PauseAll(request=request))
    else:
        done = order(client, PauseRoutine(routine=RoutineId(routine), request=request))
    what = routine or f"all routines of {number(done.groups, 'group')}"
    say(done, f"paused {what}; go on with: comesh resume {routine or '--all'}", json=json)


def check(routine: str | None, *, everything: bool) -> None:
    if (routine is None) != everything:
        fail("name one routine, or say --all")

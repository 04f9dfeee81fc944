"""`comesh fire`: runs a routine now, whatever its trigger says."""

from typing import Annotated

import typer

from comesh.cli.asking import asking
from comesh.cli.completion import complete_routines
from comesh.cli.ordering import order
from comesh.cli.terminal import out, print_json
from comesh.core.ids import RoutineId
from comesh.queries.requests import FireRoutine
from comesh.runtime.client import AnyClient


@asking
def fire(
    client: AnyClient,
    routine: Annotated[
        str,
        typer.Argument(
            metavar="ROUTINE",
            help="The routine to fire.",
            show_default=False,
            autocompletion=complete_routines,
        ),
    ],
    *,
    request: Annotated[
        str | None,
        typer.Option(help="Your own id of the request: repeating it never fires twice."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Fire a routine by hand.

    Exit code 0: the firing is committed; 1: it is not, with the reason.
    """
    fired = order(client, FireRoutine(routine=RoutineId(routine), request=request))
    if json:
        print_json(fired)
    else:
        out.print(f"{fired.run} fired; see what it does with: comesh trace '{fired.run}'")

"""`comesh fire`: have a routine run now, whatever its trigger says."""

from typing import Annotated

import typer

from comesh.cli.asking import asking
from comesh.cli.completion import complete_routines
from comesh.cli.terminal import Exit, fail, out, print_json
from comesh.queries.answers import FIRE_WAIT_S, Fired
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
    asked = {} if request is None else {"request": request}
    client.wait(FIRE_WAIT_S + 5.0)
    fired = client.ask(Fired, "fire", routine=routine, **asked)
    if json:
        print_json(fired)
    elif fired.run is None:
        fail(f"{routine} was not fired: {fired.why_not}", Exit.NO)
    else:
        out.print(f"{fired.run} fired; see what it does with: comesh trace '{fired.run}'")
    raise typer.Exit(int(Exit.NO if fired.run is None else Exit.OK))

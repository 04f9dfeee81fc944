"""`comesh fire`: have a routine run now, whatever its trigger says."""

from typing import Annotated

import typer

from comesh.cli.nodes_here import DataDirectory, NodeName, connect
from comesh.cli.terminal import Exit, fail, out, print_json
from comesh.runtime.client import NoAnswerError
from comesh.runtime.inquiries import FIRE_WAIT_S, Fired


def fire(
    routine: Annotated[str, typer.Argument(help="The routine.", show_default=False)],
    *,
    data: DataDirectory = None,
    node: NodeName = None,
    request: Annotated[
        str | None,
        typer.Option(help="An id of your own: the same one fires once, however often it is asked."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Fire a routine by hand. Exit 0: its firing is committed; 1: it was not, and why."""
    try:
        with connect(data, node) as client:
            asked = {} if request is None else {"request": request}
            client.wait(FIRE_WAIT_S + 5.0)
            fired = client.ask(Fired, "fire", routine=routine, **asked)
    except NoAnswerError as wrong:
        fail(str(wrong))
    if json:
        print_json(fired)
    elif fired.run is None:
        fail(f"{routine} was not fired: {fired.why_not}", Exit.NO)
    else:
        out.print(f"{fired.run} fired; see what it does with: comesh trace '{fired.run}'")
    raise typer.Exit(int(Exit.NO if fired.run is None else Exit.OK))

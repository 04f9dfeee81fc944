"""`comesh maintain`: routines leave a device alone while somebody works at it."""

from typing import Annotated

import typer

from comesh.cli.asking import asking
from comesh.cli.completion import complete_devices
from comesh.cli.ordering import Json, Request, order, say
from comesh.runtime.client import AnyClient


@asking
def maintain(
    client: AnyClient,
    device: Annotated[
        str, typer.Argument(help="The device.", show_default=False, autocompletion=complete_devices)
    ],
    *,
    end: Annotated[bool, typer.Option("--end", help="The maintenance is over.")] = False,
    request: Request = None,
    json: Json = False,
) -> None:
    """Put a device into maintenance: commands of routines to it fail untried, and what it senses reaches
    none of them; `comesh set` works. Exit 0: that is committed; 1: it is not, and why."""
    done = order(client, "maintain", request, device=device, on=not end)
    began = f"{device} is in maintenance; end it with: comesh maintain {device} --end"
    say(done, f"the maintenance of {device} is over" if end else began, json=json)

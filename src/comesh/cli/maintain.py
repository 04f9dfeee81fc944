"""`comesh maintain`: keeps routines away from a device while somebody works at it."""

from typing import Annotated

import typer

from comesh.cli.asking import asking
from comesh.cli.completion import complete_devices
from comesh.cli.ordering import Json, Request, order, say
from comesh.core.ids import DeviceId
from comesh.queries.requests import MaintainDevice
from comesh.runtime.client import AnyClient


@asking
def maintain(
    client: AnyClient,
    device: Annotated[
        str, typer.Argument(help="The device.", show_default=False, autocompletion=complete_devices)
    ],
    *,
    end: Annotated[bool, typer.Option("--end", help="End the maintenance.")] = False,
    request: Request = None,
    json: Json = False,
) -> None:
    """Put a device into maintenance, or end it.

    In maintenance, commands of routines to the device fail untried, and its readings reach no routine;
    `comesh set` still works. Exit code 0: the order is committed; 1: it is not, with the reason.
    """
    done = order(client, MaintainDevice(device=DeviceId(device), on=not end, request=request))
    began = f"{device} is in maintenance; end it with: comesh maintain {device} --end"
    say(done, f"the maintenance of {device} is over" if end else began, json=json)

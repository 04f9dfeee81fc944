"""`comesh unlock`: breaks the lock of a device; the run that holds it is stopped first."""

from typing import Annotated

import typer

from comesh.cli.asking import asking
from comesh.cli.completion import complete_devices
from comesh.cli.ordering import Json, Request, Yes, order, say
from comesh.cli.terminal import Exit, confirm, fail
from comesh.core.ids import DeviceId
from comesh.queries.requests import ShowDevice, UnlockDevice
from comesh.runtime.client import AnyClient


@asking
def unlock(
    client: AnyClient,
    device: Annotated[
        str, typer.Argument(help="The device.", show_default=False, autocompletion=complete_devices)
    ],
    *,
    yes: Yes = False,
    request: Request = None,
    json: Json = False,
) -> None:
    """Stop the run that holds a device, so that others get it.

    The device is free once the run's own group has stopped the run; a group that is out of reach is waited
    for. Exit code 0: the stop is committed; 1: it is not, with the reason.
    """
    state = client.ask(ShowDevice(device=DeviceId(device))).state
    holder = None if state is None else state.holder
    if holder is None:
        fail(f"nobody holds {device}", Exit.NO)
    confirm(f"{device} is held by {holder}, which fails if its lock is broken. Break it?", yes=yes)
    done = order(client, UnlockDevice(device=DeviceId(device), run=holder, request=request))
    say(done, f"{holder} is told to stop and give {device} back; see: comesh devices {device}", json=json)

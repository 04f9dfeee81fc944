"""`comesh virtual set` and `comesh virtual press`: open the door, or press the button.

A node on this machine does it: to a device that is part of it, or to one of the process that it reaches
virtual devices in.
"""

from pathlib import Path
from typing import Annotated

import typer

from comesh.cli.asking import tell_error
from comesh.cli.completion import complete_devices
from comesh.cli.nodes_here import DataDirectory, clients_here
from comesh.cli.tables import readings_text
from comesh.cli.terminal import Exit, fail, out, plain, print_json
from comesh.core.ids import DeviceId
from comesh.queries.answers import QueryError
from comesh.queries.requests import PressDevice, TouchDevice

DeviceName = Annotated[
    str, typer.Argument(help="The virtual device.", show_default=False, autocompletion=complete_devices)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def set_readings(
    device: DeviceName,
    readings: Annotated[
        list[str],
        typer.Argument(metavar="READING=VALUE", help="New readings, such as open=true.", show_default=False),
    ],
    *,
    data: DataDirectory = None,
    json: Json = False,
) -> None:
    """Set readings of a virtual device, as a person would by hand.

    Exit code 0: the device reads so; 1: it does not, with the reason.
    """
    _touch(data, TouchDevice(device=DeviceId(device), readings=_pairs(readings)), "reads", json=json)


def press(
    device: DeviceName,
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="READING=VALUE", help="Values of the event, such as press=double.", show_default=False
        ),
    ] = None,
    *,
    data: DataDirectory = None,
    json: Json = False,
) -> None:
    """Trigger an event of a virtual device, such as a button."""
    _touch(data, PressDevice(device=DeviceId(device), readings=_pairs(values or [])), "told", json=json)


def _pairs(texts: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        reading, equals, value = text.partition("=")
        if not (reading and equals):
            fail(f"{text!r} is not READING=VALUE; write, for example, open=true")
        found[reading] = value
    return found


def _touch(data: Path | None, order: TouchDevice | PressDevice, did: str, *, json: bool) -> None:
    """Acts on a virtual device by a node here that has it; each node knows which one does."""
    home = ""
    try:
        for client in clients_here(data):
            with client:
                touched = client.ask(order)
            if touched.home is None:
                if json:
                    print_json(touched)
                else:
                    what = readings_text(touched.readings) or "an event"
                    out.print(plain(f"{order.device} {did} {what}"))
                raise typer.Exit(int(Exit.OK))
            home = touched.home
    except QueryError as wrong:
        tell_error(wrong, json=json)
    fail(
        f"{order.device} is part of the node {home}, which does not run on this machine: do it there", Exit.NO
    )

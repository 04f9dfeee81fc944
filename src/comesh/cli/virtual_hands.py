"""`comesh virtual set` and `comesh virtual press`: somebody opens the door, or presses the button.

A node on this machine does it: to a device that is part of it, or to one of the process that it reaches
virtual devices in.
"""

from pathlib import Path
from typing import Annotated

import typer

from comesh.cli.completion import complete_devices
from comesh.cli.nodes_here import DataDirectory, clients_here
from comesh.cli.tables import readings_text
from comesh.cli.terminal import Exit, fail, out, plain, print_json
from comesh.queries.answers import Touched
from comesh.runtime.client import NoAnswerError

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
    _touch(data, device, {"readings": _pairs(readings)}, json=json)


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
    _touch(data, device, {"press": _pairs(values or [])}, json=json)


def _pairs(texts: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        reading, equals, value = text.partition("=")
        if not (reading and equals):
            fail(f"{text!r} is no READING=VALUE; write, for example, open=true")
        found[reading] = value
    return found


def _touch(data: Path | None, device: str, what: dict[str, dict[str, str]], *, json: bool) -> None:
    """Some node here has it in its hands; which one, each of them knows."""
    home = ""
    try:
        for client in clients_here(data):
            with client:
                touched = client.ask(Touched, "device", device=device, **what)
            if touched.home is None:
                if json:
                    print_json(touched)
                else:
                    did = "reads" if "readings" in what else "told"
                    out.print(plain(f"{device} {did} {readings_text(touched.readings) or 'an event'}"))
                raise typer.Exit(int(Exit.OK))
            home = touched.home
    except NoAnswerError as wrong:
        fail(str(wrong), Exit.NO)
    fail(f"{device} is part of the node {home}, which does not run on this machine: do it there", Exit.NO)

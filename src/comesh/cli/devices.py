"""`comesh devices`: lists the devices of the mesh, as the leaders of their groups see them."""

from typing import Annotated

import typer
from rich.text import Text

from comesh.cli.asking import asking
from comesh.cli.completion import complete_devices, complete_groups
from comesh.cli.tables import (
    age_text,
    details,
    freshness_text,
    one_freshness_text,
    readings_text,
    table,
)
from comesh.cli.terminal import Exit, fail, number, out, plain, print_json
from comesh.core.ids import DeviceId
from comesh.deployment.problems import did_you_mean
from comesh.queries.answers import DeviceAnswer, Devices
from comesh.queries.requests import ListDevices, ShowDevice
from comesh.runtime.client import AnyClient


@asking
def devices(
    client: AnyClient,
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="DEVICE",
            help="Show this device in detail.",
            show_default=False,
            autocompletion=complete_devices,
        ),
    ] = None,
    *,
    down: Annotated[bool, typer.Option("--down", help="Only devices that are not up.")] = False,
    held: Annotated[bool, typer.Option("--held", help="Only devices that a run holds or waits for.")] = False,
    group: Annotated[
        str | None,
        typer.Option("--group", help="Only devices of this group.", autocompletion=complete_groups),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the devices: status, readings, and runs that hold them.

    Exit code 0: all listed devices are up; 1: otherwise.
    """
    if device is not None:
        one = client.ask(ShowDevice(device=DeviceId(device)))
        if json:
            print_json(one)
        else:
            _show_one(one)
        raise typer.Exit(int(Exit.OK if is_up(one) else Exit.NO))
    answer = client.ask(ListDevices())
    groups = {str(one.group) for one in answer.devices}
    if group is not None and group not in groups:
        hint = did_you_mean(group, groups)
        fail(f"there is no group {group!r} with devices" + (f"; {hint}" if hint else ""), Exit.NO)
    found = tuple(
        one
        for one in answer.devices
        if group in (None, one.group) and not (down and is_up(one)) and (not held or _is_held(one))
    )
    if json:
        print_json(Devices(devices=found))
    else:
        _show(found, len(answer.devices))
    raise typer.Exit(int(Exit.OK if all(map(is_up, found)) else Exit.NO))


def is_up(one: DeviceAnswer) -> bool:
    return one.reached and one.state is not None and one.state.status == "up"


def _is_held(one: DeviceAnswer) -> bool:
    return one.state is not None and bool(one.state.holder or one.state.waiting)


def _show(found: tuple[DeviceAnswer, ...], of: int) -> None:
    if found:
        out.print(
            table(
                ("device", "group", "status", "readings", "held by", "waiting", ""),
                [_row(one) for one in found],
            )
        )
    fresh = freshness_text([(one.device, one) for one in found])
    count = number(len(found), "device") if len(found) == of else f"{len(found)} of {number(of, 'device')}"
    out.print(plain("; ".join(filter(None, (count, fresh)))))


def _row(one: DeviceAnswer) -> list[str | Text]:
    state = one.state
    if state is None:
        return [one.device, one.group, "", "", "", "", age_text(one)]
    status = Text(state.status, style="" if state.status == "up" else "red")
    if state.maintained_by is not None:
        status.append(", in maintenance", style="yellow")
    readings = plain(readings_text(state.readings))
    return [
        one.device,
        one.group,
        status,
        readings,
        state.holder or "",
        ", ".join(state.waiting),
        age_text(one),
    ]


def _show_one(one: DeviceAnswer) -> None:
    out.print(plain(one.device + (f", {one.name}" if one.name else ""), "bold"))
    state = one.state
    details(
        [
            ("group", one.group),
            ("status", "" if state is None else state.status),
            ("readings", "" if state is None else readings_text(state.readings)),
            ("held by", "" if state is None else state.holder or "nobody"),
            ("waiting", "" if state is None else ", ".join(state.waiting)),
            ("maintenance", "" if state is None or not state.maintained_by else f"by {state.maintained_by}"),
            ("lock", "" if state is None or not state.breaking_by else f"broken by {state.breaking_by}"),
            ("", one_freshness_text(one)),
        ]
    )

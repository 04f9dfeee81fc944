"""`comesh status`: shows the state of the mesh, as the asked node finds it out from all others."""

from typing import Annotated

import typer
from rich.text import Text

from comesh.cli.asking import asking
from comesh.cli.mesh_view import answering, as_of, attention, groups_of, groups_table, nodes_table
from comesh.cli.routines import going
from comesh.cli.tables import names_text, readings_text, table
from comesh.cli.terminal import Exit, number, out, plain, print_json
from comesh.cli.waiting import unseated, wait_until_well
from comesh.core.ids import GroupId
from comesh.queries.answers import DeviceSeen, GroupSeen, MeshStatus, NodeStatus, RoutineSeen
from comesh.queries.requests import ShowMesh
from comesh.runtime.client import AnyClient


@asking
def status(
    client: AnyClient,
    *,
    devices: Annotated[
        bool, typer.Option("--devices", help="Also list all devices, with their readings.")
    ] = False,
    routines: Annotated[bool, typer.Option("--routines", help="Also list all routines.")] = False,
    wait: Annotated[
        float,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            help="First wait, at most this long, until all is well and every group has all its members.",
        ),
    ] = 0.0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show nodes, groups, and what needs attention.

    Exit code 0: every node answers, every group is served, and nothing needs attention; 1: otherwise.
    """
    mesh = wait_until_well(client, wait) if wait else client.ask(ShowMesh())
    missing = unseated(mesh) if wait else []
    if json:
        print_json(mesh)
    else:
        _show(mesh, groups_of(mesh), devices=devices, routines=routines)
        for what in missing:
            out.print(plain(f"waited in vain: {what}", "yellow"))
    raise typer.Exit(int(Exit.NO if missing or attention(mesh) else Exit.OK))


def _show(mesh: MeshStatus, found: dict[GroupId, GroupSeen], *, devices: bool, routines: bool) -> None:
    statuses = answering(mesh)
    name = next((one.deployment for one in statuses if one.deployment), "the mesh")
    versions = {one.version for one in statuses}
    version = f"version {min(versions)}" + (f" to {max(versions)}" if len(versions) > 1 else "")
    out.print(plain(f"{name}, deployment {version}, {as_of(mesh)}", "bold"))
    out.print(nodes_table(mesh))
    out.print()
    out.print(groups_table(found.values()))
    if devices:
        seen = sorted((one for status in statuses for one in status.devices), key=lambda one: one.device)
        out.print()
        out.print(table(("device", "group", "status", "readings", "held by", "waiting"), map(_device, seen)))
    if routines:
        known = sorted((one for status in statuses for one in status.routines), key=lambda one: one.routine)
        out.print()
        out.print(table(("routine", "group", "now", "waiting", "last run"), map(_routine, known)))
    down = [one.device for status in statuses for one in status.devices if one.status == "down"]
    live = [one.live for status in statuses for one in status.routines if one.live is not None]
    out.print(
        f"{number(sum(len(one.devices) for one in statuses), 'device')}"
        + (f", down: {', '.join(sorted(down))}" if down else ", all up")
        + f"; {number(len(live), 'run')} going"
    )
    for what in _standing(statuses):
        out.print(plain(what, "yellow"))
    for what in attention(mesh):
        out.print(plain(f"needs attention: {what}", "red"))


def _standing(statuses: list[NodeStatus]) -> list[str]:
    """Returns the orders that stand: what somebody paused or maintains."""
    routines = [one for status in statuses for one in status.routines]
    paused = [one.routine for one in routines if one.paused_by is not None]
    by = sorted({one.paused_by for one in routines if one.paused_by is not None})
    devices = [one for status in statuses for one in status.devices]
    maintained = [one.device for one in devices if one.maintained_by is not None]
    said = []
    if paused:
        everything = f"all {number(len(routines), 'routine')}"
        what = everything if len(paused) == len(routines) else names_text(sorted(paused))
        said.append(f"paused by {names_text(by)}: {what}")
    if maintained:
        said.append(f"in maintenance: {names_text(sorted(maintained))}")
    return said


def _device(one: DeviceSeen) -> list[str | Text]:
    status = Text(one.status, style="red" if one.status == "down" else "")
    readings = plain(readings_text(one.readings))
    return [one.device, one.group, status, readings, one.holder or "", ", ".join(one.waiting)]


def _routine(one: RoutineSeen) -> list[str | Text]:
    ended = "" if one.last is None else one.last_reason or "finished"
    return [one.routine, one.group, going(one.live), str(one.waiting or ""), plain(ended)]

"""`comesh status`: how the mesh is, as a node on this machine finds out by asking all others."""

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from comesh.cli.nodes_here import DataDirectory, NodeName, connect
from comesh.cli.terminal import Exit, fail, number, out, plain, print_json
from comesh.core.ids import GroupId
from comesh.core.values import Value
from comesh.runtime.client import NoAnswerError
from comesh.runtime.inquiries import Mesh
from comesh.runtime.view import DeviceSeen, GroupSeen, NodeStatus, RoutineSeen


def status(
    *,
    data: DataDirectory = None,
    node: NodeName = None,
    devices: Annotated[bool, typer.Option("--devices", help="Every device with its readings.")] = False,
    routines: Annotated[bool, typer.Option("--routines", help="Every routine.")] = False,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Nodes, groups, and what needs attention. Exit 0: every node answers, every group is served, and nothing
    needs attention; 1: not so."""
    try:
        with connect(data, node) as client:
            mesh = client.ask(Mesh, "mesh")
    except NoAnswerError as wrong:
        fail(str(wrong))
    found = groups_of(mesh)
    if json:
        print_json(mesh)
    else:
        _show(mesh, found, devices=devices, routines=routines)
    raise typer.Exit(int(Exit.NO if attention(mesh) else Exit.OK))


def answering(mesh: Mesh) -> list[NodeStatus]:
    return [one for one in mesh.nodes.values() if one is not None]


def attention(mesh: Mesh) -> list[str]:
    """What a person should look after, in whole sentences."""
    said = [f"{one.node}: {what}" for one in answering(mesh) for what in one.trouble]
    told = {what.split(":")[0] for what in mesh.trouble}
    silent = [f"{node}: {why}" for node, why in mesh.silent.items() if node not in told]
    waiting = [f"{one.node}: not ready yet" for one in answering(mesh) if not one.ready]
    unserved = [f"{group}: nobody serves it" for group, one in groups_of(mesh).items() if not one.serves]
    return [*mesh.trouble, *silent, *waiting, *unserved, *said]


def groups_of(mesh: Mesh) -> dict[GroupId, GroupSeen]:
    """Each group as whoever serves it says; else the newest that anybody has heard of, served by nobody."""
    found: dict[GroupId, GroupSeen] = {}
    for one in answering(mesh):
        for seen in one.groups:
            known = found.get(seen.group)
            if known is None or (seen.serves, seen.number) > (known.serves, known.number):
                found[seen.group] = seen
    return dict(sorted(found.items()))


def _show(mesh: Mesh, found: dict[GroupId, GroupSeen], *, devices: bool, routines: bool) -> None:
    statuses = answering(mesh)
    name = next((one.deployment for one in statuses if one.deployment), "the mesh")
    versions = {one.version for one in statuses}
    version = f"version {min(versions)}" + (f" to {max(versions)}" if len(versions) > 1 else "")
    out.print(plain(f"{name}, deployment {version}, asked {mesh.asked}", "bold"))
    out.print(_nodes(mesh))
    out.print(_groups(found.values()))
    if devices:
        out.print(_devices(one for status in statuses for one in status.devices))
    if routines:
        out.print(_routines(one for status in statuses for one in status.routines))
    down = [one.device for status in statuses for one in status.devices if one.status == "down"]
    live = [one.live for status in statuses for one in status.routines if one.live is not None]
    out.print(
        f"{number(sum(len(one.devices) for one in statuses), 'device')}"
        + (f", down: {', '.join(sorted(down))}" if down else ", all up")
        + f"; {number(len(live), 'run')} going"
    )
    for what in attention(mesh):
        out.print(plain(f"needs attention: {what}", "red"))


def _nodes(mesh: Mesh) -> Table:
    table = Table(box=None, padding=(0, 1))
    for heading in ("node", "state", "leads", "MB"):
        table.add_column(heading)
    for name, one in mesh.nodes.items():
        if one is None:
            table.add_row(name, Text(mesh.silent.get(name, "no answer"), style="red"), "", "")
            continue
        leads = ", ".join(seen.group for seen in one.groups if seen.serves)
        state = Text("ready", style="green") if one.ready else Text("not ready", style="yellow")
        table.add_row(name, state, leads, f"{one.memory_kb / 1024:.0f}")
    return table


def _groups(found: Iterable[GroupSeen]) -> Table:
    table = Table(box=None, padding=(0, 1))
    for heading in ("group", "config", "epoch", "members", "leader"):
        table.add_column(heading)
    for one in found:
        leader = Text(str(one.leader), style="green") if one.serves else Text("nobody serves it", style="red")
        table.add_row(one.group, str(one.number), str(one.epoch), ", ".join(one.members), leader)
    return table


def _devices(devices: Iterable[DeviceSeen]) -> Table:
    table = Table(box=None, padding=(0, 1))
    for heading in ("device", "group", "status", "readings", "held by", "waiting"):
        table.add_column(heading)
    for one in sorted(devices, key=lambda seen: seen.device):
        readings = ", ".join(f"{name} {shown(value)}" for name, value in (one.readings or {}).items())
        table.add_row(
            one.device,
            one.group,
            Text(one.status, style="red" if one.status == "down" else ""),
            plain(readings),
            one.holder or "",
            ", ".join(one.waiting),
        )
    return table


def _routines(routines: Iterable[RoutineSeen]) -> Table:
    table = Table(box=None, padding=(0, 1))
    for heading in ("routine", "group", "now", "waiting", "last run"):
        table.add_column(heading)
    for one in sorted(routines, key=lambda seen: seen.routine):
        live = one.live
        now = "" if live is None else f"{live.stage.lower()} {live.done}/{live.steps}"
        ended = "" if one.last is None else one.last_reason or "finished"
        table.add_row(one.routine, one.group, now, str(one.waiting or ""), plain(ended))
    return table


def shown(value: Value) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value).lower()

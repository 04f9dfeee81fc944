"""Puts the reports of all nodes together for people: for `status`, `nodes`, `groups`, the doctor, the
demo."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from comesh.cli.tables import names_text, table
from comesh.core.ids import GroupId
from comesh.queries.answers import GroupSeen, MeshStatus, NodeStatus
from comesh.queries.times import clock


def answering(mesh: MeshStatus) -> list[NodeStatus]:
    return [one for one in mesh.nodes.values() if one is not None]


def attention(mesh: MeshStatus) -> list[str]:
    """Returns what a person should look after, in whole sentences."""
    said = [f"{one.node}: {what}" for one in answering(mesh) for what in one.trouble]
    told = {what.split(":")[0] for what in mesh.trouble}
    silent = [f"{node}: {why}" for node, why in mesh.silent.items() if node not in told]
    waiting = [f"{one.node}: not ready yet" for one in answering(mesh) if not one.ready]
    unserved = [f"{group}: nobody serves it" for group, one in groups_of(mesh).items() if not one.serves]
    absent = [
        f"{group}: {names_text(one.unseated)} was away when its members were chosen; it is one of them from "
        "the next handoff on"
        for group, one in groups_of(mesh).items()
        if one.serves and one.unseated and not mesh.silent.keys() & set(one.unseated)
    ]
    return [*mesh.trouble, *silent, *waiting, *unserved, *absent, *said]


def groups_of(mesh: MeshStatus) -> dict[GroupId, GroupSeen]:
    """Returns each group as the node that serves it reports it; else its newest known state, served by
    nobody."""
    found: dict[GroupId, GroupSeen] = {}
    for one in answering(mesh):
        for seen in one.groups:
            known = found.get(seen.group)
            if known is None or (seen.serves, seen.number) > (known.serves, known.number):
                found[seen.group] = seen
    return dict(sorted(found.items()))


def as_of(mesh: MeshStatus) -> str:
    """Says how fresh the answer is, and which nodes were not reached."""
    asked = mesh.nodes[mesh.asked]
    when = "" if asked is None else f"as of {clock(asked.wall_ms)}, "
    silent = [f"{node} ({why})" for node, why in sorted(mesh.silent.items())]
    return f"{when}asked {mesh.asked}" + (f"; not reached: {names_text(silent)}" if silent else "")


def nodes_table(mesh: MeshStatus) -> Table:
    rows: list[list[str | Text]] = []
    for name, one in mesh.nodes.items():
        if one is None:
            rows.append([name, Text(mesh.silent.get(name, "no answer"), style="red"), "", ""])
            continue
        leads = ", ".join(seen.group for seen in one.groups if seen.serves)
        state = Text("ready", style="green") if one.ready else Text("not ready", style="yellow")
        rows.append([name, state, leads, f"{one.memory_kb / 1024:.0f}"])
    return table(("node", "state", "leads", "MB"), rows)


def groups_table(found: Iterable[GroupSeen]) -> Table:
    rows: list[list[str | Text]] = []
    for one in found:
        leader = Text(str(one.leader), style="green") if one.serves else Text("nobody serves it", style="red")
        rows.append([one.group, str(one.number), str(one.epoch), ", ".join(one.members), leader])
    return table(("group", "config", "epoch", "members", "leader"), rows)

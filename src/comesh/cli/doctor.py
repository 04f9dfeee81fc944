"""`comesh doctor`: looks for problems of the mesh and its machines, now or soon, with advice.

One node is asked, and asks every other one how it is and whom it hears. Where no node answers on this
machine, what can be seen without one is told: who has its port.
"""

import statistics
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from comesh.cli.asking import asking, one_document
from comesh.cli.checkup import DAY_MS, Finding, examine, median_offset_ms, size
from comesh.cli.mesh_view import answering, groups_of
from comesh.cli.tables import table
from comesh.cli.terminal import Exit, number, out, plain, print_json
from comesh.core.ids import NodeId
from comesh.queries.answers import Checked, Hears, MeshHealth
from comesh.queries.requests import ShowHealth, ShowMesh
from comesh.queries.times import clock
from comesh.runtime.client import AnyClient

WIDEST: Final = 100_000
"""Maximum columns that a table may ask for when it is measured."""


def _nobody_here(file: Path | None) -> None:
    """Finds out which process has the ports of the nodes that should run here, where none answers."""
    document = file or one_document()
    if document is None:
        return
    findings: list[Finding] = import_module("comesh.cli.ports_here").findings(document)
    _show_findings(findings)
    raise typer.Exit(int(Exit.NO))


@asking(otherwise=_nobody_here)
def doctor(
    client: AnyClient,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Look for problems of the mesh and its machines.

    Checks clocks, certificates, ports, disks, memory, versions, connections between nodes, and groups. Exit
    code 0: nothing was found; 1: there are findings, each with advice.
    """
    health = client.ask(ShowHealth())
    mesh = client.ask(ShowMesh())
    trouble = [f"{one.node}: {what}" for one in answering(mesh) for what in one.trouble]
    findings = examine(health, groups_of(mesh).values(), trouble)
    if json:
        print_json({"findings": findings, "health": health})
    else:
        show(health)
        _show_findings(findings)
    raise typer.Exit(int(Exit.NO if findings else Exit.OK))


def _show_findings(findings: list[Finding]) -> None:
    for one in findings:
        out.print(Text.assemble((f"{one.about}: ", "red"), plain(one.what)))
        out.print(plain(f"    {one.advice}", "dim"))
    out.print(number(len(findings), "finding") if findings else Text("nothing found", style="green"))


def show(health: MeshHealth) -> None:
    answered = [one for one in health.nodes.values() if one is not None]
    median_ms = median_offset_ms(answered)
    rows: list[list[str | Text]] = []
    machines: list[list[str | Text]] = []
    for node, one in health.nodes.items():
        if one is None:
            rows.append([node, Text(health.silent[node], style="red")])
        else:
            rows.append(_row(node, one, health, median_ms))
            machines.append(_machine(node, one))
    out.print(table(("node", "software", "document", "clock", "from median", "certificate"), rows))
    out.print()
    out.print(table(("node", "disk free", "journal", "MB", "listens on UDP"), machines))
    if len(health.nodes) > 1:
        pairs = _pairs(health)
        needs = Measurement.get(out, out.options.update(max_width=WIDEST), pairs).maximum
        out.print()
        out.print(pairs if needs <= out.width else plain(_round_trips(health)))
    out.print(plain(f"as of {clock(health.as_of_ms)}, asked {health.asked}", "dim"))


def _row(node: NodeId, one: Checked, health: MeshHealth, median_ms: float) -> list[str | Text]:
    said = one.said
    asked = "asked" if node == health.asked else f"{one.offset_ms:+.0f} ms"
    return [
        node,
        said.software,
        f"{said.version} ({said.document[:6]})",
        asked,
        f"{one.offset_ms - median_ms:+.0f} ms",
        f"{(said.certificate_ends_ms - health.as_of_ms) / DAY_MS:.0f} days",
    ]


def _machine(node: NodeId, one: Checked) -> list[str | Text]:
    said = one.said
    return [
        node,
        size(said.data_free_bytes),
        size(said.journal_bytes),
        f"{said.memory_kb / 1024:.0f}",
        ", ".join(said.listens),
    ]


def _round_trips(health: MeshHealth) -> str:
    """Summarises round trips where the table of all pairs has no room: problems are among the findings
    anyway."""
    found = [
        (hears.round_trip_ms, node, other)
        for node, one in health.nodes.items()
        if one is not None
        for other, hears in one.said.hears.items()
        if hears.round_trip_ms is not None
    ]
    if not found:
        return "no round trip was measured yet"
    slowest_ms, node, other = max(found)
    middle_ms = statistics.median(took_ms for took_ms, _, _ in found)
    return (
        f"round trips between {number(len(found), 'pair')}: median {middle_ms:.1f} ms, slowest "
        f"{slowest_ms:.1f} ms ({node} to {other}); --json has all"
    )


def _pairs(health: MeshHealth) -> Table:
    """Tabulates which nodes hear each other: round trips as the node of the row measures them."""
    rows: list[list[str | Text]] = []
    for node, one in health.nodes.items():
        hears = {} if one is None else one.said.hears
        cells = [
            Text("·", style="dim") if other == node else _heard(hears.get(other)) for other in health.nodes
        ]
        rows.append([node, *cells])
    return table(("hears, in ms", *health.nodes), rows)


def _heard(hears: Hears | None) -> Text:
    if hears is None:
        return Text("?", style="dim")
    if not hears.living:
        return Text("no", style="red")
    if not hears.connected and hears.why:
        return Text("by others", style="yellow")
    return Text("yes" if hears.round_trip_ms is None else f"{hears.round_trip_ms:.1f}")

"""`comesh nodes`: lists the nodes of the mesh, each as it reports itself."""

from typing import Annotated

import typer

from comesh.cli.asking import asking
from comesh.cli.completion import complete_nodes
from comesh.cli.mesh_view import answering, as_of, nodes_table
from comesh.cli.tables import details, one_freshness_text
from comesh.cli.terminal import Exit, number, out, plain, print_json
from comesh.core.ids import NodeId
from comesh.queries.answers import NodeAnswer
from comesh.queries.requests import ShowMesh, ShowNode
from comesh.queries.times import clock
from comesh.runtime.client import AnyClient


@asking
def nodes(
    client: AnyClient,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NODE",
            help="Show this node in detail.",
            show_default=False,
            autocompletion=complete_nodes,
        ),
    ] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the nodes: which answer, what they lead, their memory.

    Exit code 0: all listed nodes answer and are ready; 1: otherwise.
    """
    if name is not None:
        one = client.ask(ShowNode(node=NodeId(name)))
        if json:
            print_json(one)
        else:
            _show_one(one)
        fine = one.reached and one.status is not None and one.status.ready
        raise typer.Exit(int(Exit.OK if fine else Exit.NO))
    mesh = client.ask(ShowMesh())
    if json:
        print_json(mesh)
    else:
        out.print(nodes_table(mesh))
        out.print(plain(f"{number(len(mesh.nodes), 'node')}; {as_of(mesh)}"))
    fine = not mesh.silent and all(one.ready for one in answering(mesh))
    raise typer.Exit(int(Exit.OK if fine else Exit.NO))


def _show_one(one: NodeAnswer) -> None:
    about, status = one.about, one.status
    out.print(plain(about.node + (f", {about.name}" if about.name else ""), "bold"))
    rows = [("power domain", about.power_domain or ""), ("life", about.life)]
    if status is not None:
        seats = [seen for seen in status.groups if seen.role]
        rows += [
            ("ready", "yes" if status.ready else "not yet"),
            ("leads", ", ".join(seen.group for seen in seats if seen.serves) or "nothing"),
            ("member of", ", ".join(f"{seen.group} ({seen.role})" for seen in seats if not seen.serves)),
            ("hears", ", ".join(status.living)),
            ("deployment", f"{status.deployment} version {status.version}".strip()),
            ("software", f"{status.software}, process {status.pid}, boot {status.boot}"),
            ("memory", f"{status.memory_kb / 1024:.0f} MB, {status.cpu_s:.1f} s of CPU time"),
            ("its time", clock(status.wall_ms)),
            *(("trouble", what) for what in status.trouble),
        ]
    details([*rows, ("", one_freshness_text(one))])

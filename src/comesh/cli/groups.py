"""`comesh groups`: lists the groups that look after clusters of devices."""

from typing import Annotated

import typer

from comesh.cli.asking import asking
from comesh.cli.completion import complete_groups
from comesh.cli.mesh_view import as_of, groups_of, groups_table
from comesh.cli.tables import details, one_freshness_text
from comesh.cli.terminal import Exit, number, out, plain, print_json
from comesh.core.ids import GroupId
from comesh.queries.answers import GroupAnswer
from comesh.queries.requests import ShowGroup, ShowMesh
from comesh.runtime.client import AnyClient


@asking
def groups(
    client: AnyClient,
    group: Annotated[
        str | None,
        typer.Argument(
            metavar="GROUP",
            help="Show this group in detail.",
            show_default=False,
            autocompletion=complete_groups,
        ),
    ] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the groups: members, leader, and whether one serves.

    Exit code 0: all listed groups are served; 1: otherwise.
    """
    if group is not None:
        one = client.ask(ShowGroup(group=GroupId(group)))
        if json:
            print_json(one)
        else:
            _show_one(one)
        raise typer.Exit(int(Exit.OK if one.reached else Exit.NO))
    mesh = client.ask(ShowMesh())
    found = groups_of(mesh)
    if json:
        print_json({"groups": list(found.values()), "asked": mesh.asked, "silent": mesh.silent})
    else:
        out.print(groups_table(found.values()))
        out.print(plain(f"{number(len(found), 'group')}; {as_of(mesh)}"))
    raise typer.Exit(int(Exit.OK if all(one.serves for one in found.values()) else Exit.NO))


def _show_one(one: GroupAnswer) -> None:
    out.print(plain(one.group, "bold"))
    state = one.state
    rows: list[tuple[str, str]] = []
    if state is not None:
        rows = [
            (
                "leader",
                str(state.leader) if state.serves else f"nobody serves it; last heard of: {state.leader}",
            ),
            ("members", ", ".join(state.members)),
            ("config", f"{state.number}, of epoch {state.epoch}"),
        ]
    rows += [("devices", ", ".join(one.devices)), ("routines", ", ".join(one.routines))]
    details([*rows, ("", one_freshness_text(one))])

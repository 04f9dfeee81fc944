"""`comesh recover GROUP`: lets one member go on alone, where the others are lost for good."""

from typing import Annotated, Final

import typer
from rich.text import Text

from comesh.cli.asking import asking
from comesh.cli.completion import complete_groups
from comesh.cli.mesh_view import answering, as_of, groups_of
from comesh.cli.tables import table
from comesh.cli.terminal import Exit, confirm, err, fail, out, plain
from comesh.core.ids import GroupId
from comesh.deployment.problems import did_you_mean
from comesh.queries.answers import GroupSeen, MeshStatus, QueryError
from comesh.queries.requests import RecoverGroup, ShowMesh
from comesh.runtime.client import AnyClient

WARNING: Final = (
    "Whatever the other members of a group have accepted and this one has not is lost: firings, locks, "
    "commands. If one of them still lives somewhere, two will act on the same devices. Have the devices "
    "stand still first"
)
NEXT: Final = (
    "Devices are commanded again once each group has a quorum of living nodes: start the lost nodes anew "
    "with empty data directories, or put others in their place with `comesh apply`"
)


@asking
def recover(
    client: AnyClient,
    groups: Annotated[
        list[str],
        typer.Argument(
            metavar="GROUP",
            help="Groups that lost their quorum.",
            show_default=False,
            autocompletion=complete_groups,
        ),
    ],
    *,
    unsafe: Annotated[
        bool,
        typer.Option(
            "--unsafe", help="Go on alone: the other members are lost for good, and never come back."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Go on alone with groups that lost their quorum for good.

    The node that is asked (--node) goes on alone. Without --unsafe, the command only shows which member has
    which state.
    """
    mesh = client.ask(ShowMesh())
    known = groups_of(mesh)
    for group in groups:
        if group not in known:
            hint = did_you_mean(group, known)
            fail(f"there is no group {group!r}" + (f"; {hint}" if hint else ""), Exit.NO)
        _show(mesh, known[GroupId(group)])
    if not unsafe:
        err.print(
            f"nothing was done. {WARNING}. To have {mesh.asked} go on alone nevertheless: --unsafe; another "
            "one: --node NODE"
        )
        raise typer.Exit(int(Exit.NO))
    err.print(plain(f"{WARNING}.", "bold red"))
    confirm(f"have {mesh.asked} go on alone with {', '.join(groups)}?", yes=yes)
    code = Exit.OK
    for group in groups:
        try:
            client.ask(RecoverGroup(group=GroupId(group)))
        except QueryError as wrong:
            code = Exit.NO
            err.print(plain(f"{group}: {wrong}", "red"))
        else:
            out.print(plain(f"{group} goes on from what {mesh.asked} had; this is in its audit log"))
    if code is Exit.OK:
        out.print(NEXT)
    raise typer.Exit(int(code))


def _show(mesh: MeshStatus, group: GroupSeen) -> None:
    """Shows what each member has of the state; the newest one is marked."""
    said = {
        one.node: seen
        for one in answering(mesh)
        for seen in one.groups
        if seen.group == group.group and seen.state
    }
    newest = max((seen.state for seen in said.values() if seen.state is not None), default=None)
    rows: list[list[str | Text]] = []
    for node in dict.fromkeys((*group.members, *said)):
        seen = said.get(node)
        if seen is None or seen.state is None:
            rows.append([node, Text(mesh.silent.get(node, "has no seat"), style="red"), "", ""])
            continue
        config, round_, rank, entry = seen.state
        is_newest = Text("the newest that is reached" if seen.state == newest else "")
        rows.append([node, seen.role, f"config {config}, ballot {round_}.{rank}, entry {entry}", is_newest])
    out.print(plain(f"{group.group}, {as_of(mesh)}", "bold"))
    out.print(table(("member", "role", "has", ""), rows))

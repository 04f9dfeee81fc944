"""`comesh leave NODE`: takes a node out of the mesh for good, whether it lives or not."""

import time
from typing import Annotated, Final

import typer

from comesh.cli.apply import USUAL_WITHIN_S, Why, Within, Yes, apply_text
from comesh.cli.asking import asking
from comesh.cli.change_view import end_with_problems, follow, show_followed, show_preview
from comesh.cli.completion import complete_nodes
from comesh.cli.terminal import Exit, confirm, fail, out, plain
from comesh.deployment.edits import EditError, without_node
from comesh.deployment.problems import did_you_mean
from comesh.queries.requests import (
    ListGroups,
    ListNodes,
    ListVersions,
    PreviewDocument,
    ReachVersion,
    ShowVersion,
)
from comesh.runtime.client import AnyClient

LOOK_S: Final = 0.2


@asking(but="name")
def leave(
    client: AnyClient,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NODE", help="The node that leaves.", show_default=False, autocompletion=complete_nodes
        ),
    ],
    *,
    why: Why = "",
    yes: Yes = False,
    within: Within = USUAL_WITHIN_S,
) -> None:
    """Take a node out of the document and out of all groups.

    Exit code 0: the node is a member of no group any more.
    """
    listed = client.ask(ListNodes())
    if name not in {one.node for one in listed.nodes}:
        hint = did_you_mean(name, [one.node for one in listed.nodes])
        fail(f"there is no node {name!r} in the document" + (f"; {hint}" if hint else ""), Exit.NO)
    if name == listed.answered_by:
        fail(f"{name} is the node that is asked, and would end while it tells: ask another one with --node")
    newest = client.ask(ListVersions()).newest
    try:
        text = without_node(client.ask(ShowVersion(version=newest)).text, name)
    except EditError as wrong:
        fail(str(wrong), Exit.NO)
    preview = client.ask(PreviewDocument(text=text))
    end_with_problems(preview.problems)
    show_preview(preview)
    confirm(f"have the mesh go on without {name}?", yes=yes)
    began = time.monotonic()
    version = apply_text(client, newest, text, why=why or f"{name} leaves")
    out.print(f"applied as version {version}")
    client.ask(ReachVersion(version=version))
    reached = follow(client, version, within_s=within)
    code = show_followed(reached, version, time.monotonic() - began)
    if code is Exit.OK:
        code = _wait_for_seats(client, name, within - (time.monotonic() - began))
    raise typer.Exit(int(code))


def _wait_for_seats(client: AnyClient, name: str, within_s: float) -> Exit:
    ends = time.monotonic() + within_s
    while seats := [one.group for one in client.ask(ListGroups()).groups if name in one.members]:
        if time.monotonic() > ends:
            out.print(plain(f"{name} still has a seat in {', '.join(seats)}; `comesh groups` says when not"))
            return Exit.NO
        time.sleep(LOOK_S)
    out.print(
        plain(
            f"{name} has no seat any more. If it runs it ends by itself, with 1, within seconds; disable its "
            f"service there. Its keys remain valid until you revoke them: comesh keys revoke {name}"
        )
    )
    return Exit.OK

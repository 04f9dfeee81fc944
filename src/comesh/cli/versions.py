"""`comesh versions`: lists the documents that a mesh ran by, who applied them, and how many groups follow."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from comesh.cli.asking import asking
from comesh.cli.change_view import show_changes
from comesh.cli.tables import table
from comesh.cli.terminal import Exit, err, fail, number, out, plain, print_json
from comesh.deployment.changes import changes
from comesh.queries.answers import Versions, VersionSeen
from comesh.queries.requests import ListVersions, ShowChain, ShowVersion
from comesh.runtime.client import AnyClient
from comesh.runtime.documents import parsed


@asking
def versions(
    client: AnyClient,
    first: Annotated[
        int | None,
        typer.Argument(metavar="N", help="Print the document of this version.", show_default=False),
    ] = None,
    second: Annotated[
        int | None,
        typer.Argument(metavar="M", help="With --diff: compare N with this version.", show_default=False),
    ] = None,
    *,
    diff: Annotated[bool, typer.Option("--diff", help="List what differs between N and M.")] = False,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export", metavar="FILE", help="Write all versions to this file, for a new node to start from."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the versions of the document, print or compare them."""
    if export is not None:
        _export(client, export)
    elif first is not None and (diff or second is not None):
        _diff(client, first, second, json=json)
    elif first is not None:
        found = client.ask(ShowVersion(version=first))
        if json:
            print_json(found)
        else:
            typer.echo(found.text, nl=not found.text.endswith("\n"))
    else:
        _list(client.ask(ListVersions()), json=json)


def _list(known: Versions, *, json: bool) -> None:
    if json:
        print_json(known)
        return
    out.print(table(("version", "when", "who", "groups", "why"), map(_row, known.versions)))
    if not known.reached:
        err.print("who applied them is not known now: nobody who leads the group deployment is reached")


def _row(one: VersionSeen) -> list[str | Text]:
    when = "" if one.at_ms is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.at_ms / 1000))
    why = "the first one" if one.version == 1 else one.why
    return [str(one.version), when, plain(one.by), str(one.groups or ""), plain(why)]


def _diff(client: AnyClient, first: int, second: int | None, *, json: bool) -> None:
    other = client.ask(ListVersions()).newest if second is None else second
    one, two = (
        parsed(client.ask(ShowVersion(version=which)).text, f"version {which}") for which in (first, other)
    )
    found = changes(one, two)
    if json:
        print_json(found)
    elif found:
        show_changes(found)
    else:
        out.print(f"versions {first} and {other} mean the same")
    raise typer.Exit(int(Exit.NO if found else Exit.OK))


def _export(client: AnyClient, file: Path) -> None:
    chain = client.ask(ShowChain())
    try:
        file.write_text(chain.chain)
    except OSError as wrong:
        fail(f"{file} cannot be written ({wrong.strerror or wrong})")
    out.print(
        plain(
            f"{file} has {number(chain.newest, 'version')}. The very first start of a new node, on its "
            f"machine: comesh node {file} --name NODE --init"
        )
    )

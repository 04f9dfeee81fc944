"""`comesh keys token|tokens`: makes and lists tokens of people who may ask nodes over HTTP."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from comesh.api.tokens import FILE, Token, TokensError, create, read, remove
from comesh.cli.tables import ListTable
from comesh.cli.terminal import fail, out, plain, print_json
from comesh.queries.requests import Role

DEFAULT_DIRECTORY: Final = Path("keys")
Directory = Annotated[
    Path,
    typer.Option("--keys", metavar="DIR", help="Directory with the keys of the node, or of `comesh up`."),
]


class Listed(msgspec.Struct, frozen=True):
    """A token, as `tokens --json` prints it."""

    name: str
    role: str
    made: str
    expires: str | None
    expired: bool


def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Owner of the token.", show_default=False)],
    role: Annotated[
        Role, typer.Option("--role", help="A viewer may look; an operator may also fire, command and change.")
    ] = Role.VIEWER,
    days: Annotated[
        int | None, typer.Option("--days", help="Days of validity.  [default: until it is removed]")
    ] = None,
    gone: Annotated[bool, typer.Option("--remove", help="Remove the token: it is refused at once.")] = False,
    directory: Directory = DEFAULT_DIRECTORY,
) -> None:
    """Make a token for the HTTP interface, and print it once.

    Only a hash of the token is kept.
    """
    try:
        if gone:
            remove(directory, name)
            out.print(f"removed {name} from {directory / FILE}")
            return
        secret = create(directory, name, role, 1000.0 * time.time(), days)
    except TokensError as wrong:
        fail(str(wrong))
    typer.echo(secret)
    typer.echo(
        f"this is the {role} token of {name}; it is not shown again. Nodes with the file {directory / FILE} "
        "take it from now on: copy the file to the keys of the others",
        err=True,
    )


def tokens(
    directory: Directory = DEFAULT_DIRECTORY,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the valid tokens of the HTTP interface."""
    try:
        listed = [_listed(one) for one in read(directory)]
    except TokensError as wrong:
        fail(str(wrong))
    if json:
        print_json(listed)
        return
    if not listed:
        out.print(f"{directory} has no tokens; make one with: comesh keys token NAME --role viewer")
        return
    table = ListTable()
    for heading in ("name", "role", "made", "expires"):
        table.add_column(heading, no_wrap=True)
    for one in listed:
        expires = one.expires or "never"
        table.add_row(
            plain(one.name), one.role, one.made, plain(f"{expires} (expired)" if one.expired else expires)
        )
    out.print(table)


def _listed(one: Token) -> Listed:
    return Listed(
        one.name,
        one.role.value,
        _date(one.made_ms),
        None if one.expires_ms is None else _date(one.expires_ms),
        one.expires_ms is not None and one.expires_ms <= 1000.0 * time.time(),
    )


def _date(ms: float) -> str:
    return f"{datetime.fromtimestamp(ms / 1000.0, UTC):%Y-%m-%d}"

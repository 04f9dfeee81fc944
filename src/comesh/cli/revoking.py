"""`comesh keys revoke|replace`: revokes certificates, and makes new ones in their place."""

from pathlib import Path
from typing import Annotated

import typer

from comesh.cli.key_options import DEFAULT_DIRECTORY, Days, Keys
from comesh.cli.terminal import fail, number, out
from comesh.runtime.credentials import NODE_DAYS, CredentialsError
from comesh.runtime.keyring import replace_node, revoke, revoked_of
from comesh.runtime.revocation import FILE


def revoke_keys(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NODE", help="Names of nodes.", show_default=False)
    ] = None,
    certificates: Annotated[
        list[Path] | None,
        typer.Option(
            "--certificate",
            metavar="FILE",
            help="Also revoke the certificate in this file, if it is not here.",
        ),
    ] = None,
    directory: Keys = DEFAULT_DIRECTORY,
) -> None:
    """Revoke all certificates of nodes, such as stolen ones.

    No other node talks to a revoked one any more.
    """
    if not names and not certificates:
        fail("whose certificates? Name a node, or give --certificate FILE")
    try:
        count = revoke(directory, names or [], certificates or [])
        if not count:
            out.print("they are revoked already, or of an authority that is not trusted: nothing to do")
            return
        _tell(directory, count)
    except CredentialsError as problem:
        fail(str(problem))


def replace(
    name: Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.", show_default=False)],
    directory: Keys = DEFAULT_DIRECTORY,
    days: Days = NODE_DAYS,
) -> None:
    """Make new keys for a node, and revoke its former ones.

    A new machine takes over the node's name.
    """
    try:
        count = replace_node(directory, name, days)
        out.print(f"wrote {directory / name}.key and {directory / name}.crt: they belong on the new machine")
        _tell(directory, count)
    except CredentialsError as problem:
        fail(str(problem))


def _tell(directory: Path, count: int) -> None:
    lists = revoked_of(directory).lists
    of = ", ".join(str(one.number) for one in lists)
    out.print(f"revoked {number(count, 'certificate')}; wrote {directory / FILE} (list {of})")
    out.print("next: copy it to the keys of any node that runs. It is taken within seconds, and goes to")
    out.print("all others by itself. Keep it beside authority.key: the next list builds on it")

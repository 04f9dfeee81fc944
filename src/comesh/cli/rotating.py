"""`comesh keys rotate`: makes new keys before the old ones expire, while the mesh goes on."""

from pathlib import Path
from typing import Annotated

import typer

from comesh.cli.key_options import DEFAULT_DIRECTORY, Keys, keys_option
from comesh.cli.terminal import fail, out
from comesh.runtime.credentials import AUTHORITY, AUTHORITY_DAYS, NODE_DAYS, CredentialsError
from comesh.runtime.keyring import finish, nodes_of, revoked_nodes, rotate, rotate_authority


def rotate_keys(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NODE", help="Names of nodes.", show_default=False)
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All nodes with a certificate here.")] = False,
    authority: Annotated[
        bool, typer.Option("--authority", help="Replace the authority itself, in steps: see docs/keys.md.")
    ] = False,
    end: Annotated[
        bool, typer.Option("--finish", help="With --authority: accept only the new one from now on.")
    ] = False,
    directory: Keys = DEFAULT_DIRECTORY,
    days: Annotated[int | None, typer.Option("--days", help="Days of validity.")] = None,
) -> None:
    """Make new keys for nodes, or a new authority.

    Running nodes take the new files without a restart.
    """
    chosen = [bool(names), every, authority]
    if sum(chosen) != 1 or (end and not authority):
        fail("rotate what? Name nodes, or give --all, or --authority (and at its end --authority --finish)")
    try:
        if authority and end:
            _finish(directory)
        elif authority:
            _authority(directory, AUTHORITY_DAYS if days is None else days)
        else:
            _nodes(directory, names or [], NODE_DAYS if days is None else days)
    except CredentialsError as problem:
        fail(str(problem))


def _nodes(directory: Path, names: list[str], days: int) -> None:
    if not names:
        left_out = revoked_nodes(directory)
        names = [name for name in nodes_of(directory) if name not in left_out]
        for name in left_out:
            out.print(f"left out {name}: its certificate is revoked")
    if not names:
        fail(f"{directory} has no certificates of nodes; make them with: comesh keys node NAME...")
    rotate(directory, names, days)
    for name in names:
        out.print(f"wrote {directory / name}.key and {directory / name}.crt")
    out.print(
        "next: copy them to the keys of their nodes, which take them within seconds, without a restart."
    )
    out.print("The former ones stay valid until they expire; comesh keys replace NODE makes an end of them")


def _authority(directory: Path, days: int) -> None:
    has_key = rotate_authority(directory, days)
    out.print(f"wrote a new {directory / AUTHORITY}.key; {directory / AUTHORITY}.crt holds both authorities")
    if not has_key:
        out.print("the former authority's key is not here: what it signed cannot be revoked, only dropped")
    more = keys_option(directory)
    out.print("next, one after the other; the mesh goes on meanwhile:")
    out.print(f"  1. copy {directory / AUTHORITY}.crt to the keys of every node")
    out.print("     until the log of each says: certificates of 2 authorities count now")
    out.print(f"  2. comesh keys rotate --all{more}, and copy each node its two files")
    out.print("     until comesh status tells of no former authority any more")
    out.print(
        f"  3. comesh keys rotate --authority --finish{more}, and copy authority.crt to all nodes again"
    )


def _finish(directory: Path) -> None:
    finish(directory)
    out.print(f"{directory / AUTHORITY}.crt holds the new authority only")
    out.print("next: copy it to the keys of every node, which then refuses certificates of the former one")

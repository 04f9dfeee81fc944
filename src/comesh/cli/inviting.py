"""`comesh keys bundle|invite`: makes what a new machine needs to be a node, as a file, or with a token."""

from pathlib import Path
from typing import Annotated

import typer

from comesh.cli.key_options import DEFAULT_DIRECTORY, Keys
from comesh.cli.node_requests import NoNodeError, post
from comesh.cli.terminal import fail, out
from comesh.runtime.bundle import authority_of, pack
from comesh.runtime.client import NoAnswerError
from comesh.runtime.credentials import AUTHORITY, CredentialsError, write_file
from comesh.runtime.invitation import JoinToken
from comesh.runtime.remote import TOKEN, read_token

Document = Annotated[
    Path, typer.Option("--document", metavar="FILE", help="The deployment document, which names the node.")
]
NodeName = Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.", show_default=False)]


def bundle(
    name: NodeName,
    *,
    document: Document,
    to: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="File to write.")],
    directory: Keys = DEFAULT_DIRECTORY,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Pack what a machine needs to be a node into one file.

    Whoever has the file can be that node: carry it safely.
    """
    if to.exists() and not force:
        fail(f"{to} exists already and is left as it is; --force replaces it")
    try:
        content, made = pack(directory, name, document)
        write_file(to, content, 0o600)
    except CredentialsError as problem:
        fail(str(problem))
    _tell_made(directory, name, made=made)
    out.print(f"wrote {to}. On the new machine: comesh join {to.name}; then remove the file everywhere")


def invite(
    name: NodeName,
    *,
    at: Annotated[
        str,
        typer.Option("--at", metavar="URL", help="HTTP interface of any node, such as https://HOST:8460."),
    ],
    document: Document,
    hours: Annotated[
        float, typer.Option("--hours", help="How long the invitation is valid, in hours.")
    ] = 24.0,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"File with an operator's token.  [default: ${TOKEN}]")
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option(
            "--ca",
            metavar="FILE",
            help="CA certificate of the HTTP interface, if not the deployment's authority.",
        ),
    ] = None,
    directory: Keys = DEFAULT_DIRECTORY,
) -> None:
    """Leave a sealed bundle at a node for a new machine to take.

    Prints the token with which the new machine takes it, once.
    """
    try:
        operator = read_token(token_file, operator=True)
        token = JoinToken.draw(authority_of(directory))
        content, made = pack(directory, name, document)
        wish = {
            "id": token.id,
            "node": name,
            "verifier": token.verifier,
            "hours": hours,
            "sealed": token.seal(content),
        }
        post(
            at,
            "/api/v1/invitations",
            wish,
            bearer=operator,
            trusted=directory / f"{AUTHORITY}.crt" if ca is None else ca,
            any_name=ca is None,
        )
    except (CredentialsError, NoNodeError, NoAnswerError) as problem:
        fail(str(problem))
    _tell_made(directory, name, made=made, err=True)
    typer.echo(token.text())
    within = "1 hour" if hours == 1 else f"{hours:g} hours"
    typer.echo(
        f"this token makes a machine {name}, once, within {within}. On that machine: "
        f"comesh join - --at {at}, which asks for it",
        err=True,
    )


def _tell_made(directory: Path, name: str, *, made: bool, err: bool = False) -> None:
    if made:
        typer.echo(f"made {directory / name}.key and {directory / name}.crt", err=err)

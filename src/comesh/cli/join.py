"""`comesh join`: makes this machine a node, from a bundle or with the token of an invitation."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from cryptography import x509

from comesh.cli.key_options import DEFAULT_DIRECTORY, Force
from comesh.cli.node_requests import NoNodeError, post
from comesh.cli.terminal import fail, out
from comesh.runtime.bundle import Bundle, decoded, read_bundle, unpack
from comesh.runtime.credentials import CredentialsError, fingerprint
from comesh.runtime.invitation import PREFIX, JoinToken

BundleOrToken = Annotated[
    str,
    typer.Argument(
        metavar="FILE|TOKEN",
        help="A bundle of `comesh keys bundle`, or a token of `comesh keys invite`; -: read the token "
        "from standard input.",
        show_default=False,
    ),
]


def join(
    what: BundleOrToken,
    *,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="URL", help="With a token: HTTP interface of the node that has the invitation."
        ),
    ] = None,
    data: Annotated[Path, typer.Option(help="Directory for the node's journal.")] = Path("comesh-data"),
    keys: Annotated[Path, typer.Option(help="Directory for the node's keys.")] = DEFAULT_DIRECTORY,
    first: Annotated[
        bool,
        typer.Option(
            "--first",
            help="This name never ran before, and the bundle has all versions of the document: the node may "
            "start groups that begin with it or later.",
        ),
    ] = False,
    start: Annotated[bool, typer.Option("--start", help="Start the node at once.")] = False,
    force: Force = False,
) -> None:
    """Make this machine a node of a running mesh.

    Checks the bundle or the invitation, writes the node's files, and says how to start the node.
    """
    try:
        if what == "-":  # so it is in no list of processes, and in no history
            is_asked = sys.stdin.isatty()
            what = typer.prompt("token", hide_input=True, err=True) if is_asked else sys.stdin.readline()
            JoinToken.read(what)
        bundle = _fetched(what, at) if what.startswith(PREFIX) else read_bundle(Path(what))
        document = unpack(bundle, keys, data, force=force)
    except (CredentialsError, NoNodeError) as problem:
        fail(str(problem))
    command = [
        "comesh",
        "node",
        str(document),
        "--name",
        bundle.node,
        "--data",
        str(data),
        "--keys",
        str(keys),
        *(["--init"] if first else []),
    ]
    out.print(f"this machine is {bundle.node}: wrote its keys to {keys}, and {document}")
    if start:
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", *command])
    once = ", the first time; later without --init" if first else ""
    out.print(f"start it with: {shlex.join(command)}{once}")
    out.print(f"as a service:  comesh service {document} --name {bundle.node}")


def _fetched(text: str, at: str | None) -> Bundle:
    """Takes the invitation that waits for this token. Nobody on the way can read or change it, so any node
    may be asked."""
    if at is None:
        fail("where does the invitation wait? Give --at https://HOST:PORT, as it was made with")
    token = JoinToken.read(text)
    said = post(at, f"/api/v1/invitations/{token.id}/take", {"proof": token.proof})
    sealed = said.get("sealed") if isinstance(said, dict) else None
    if not isinstance(sealed, str):
        raise NoNodeError(f"{at} answers what no node would; is this its HTTP interface?")
    bundle = decoded(token.open(sealed), at)
    try:
        authorities = x509.load_pem_x509_certificates(bundle.authorities.encode())
    except ValueError:
        authorities = []
    if token.fingerprint not in map(fingerprint, authorities):
        raise CredentialsError("the bundle is of another authority than the token says; it is not used")
    return bundle

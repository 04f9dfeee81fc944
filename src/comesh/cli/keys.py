"""`comesh keys`: the keys of a deployment, as files. Only `invite` needs a network.

`init`, `node` and `show` are here; `revoking`, `rotating`, `inviting` and `tokens` have the others.
"""

import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from cryptography import x509

from comesh.cli.help import group
from comesh.cli.inviting import bundle, invite
from comesh.cli.key_options import DEFAULT_DIRECTORY, Days, Force, Keys, keys_option
from comesh.cli.revoking import replace, revoke_keys
from comesh.cli.rotating import rotate_keys
from comesh.cli.tables import ListTable
from comesh.cli.terminal import Exit, err, fail, number, out, plain, print_json
from comesh.cli.tokens import token, tokens
from comesh.runtime.credentials import (
    AUTHORITY,
    AUTHORITY_DAYS,
    BACKDATED,
    FORMER,
    NODE_DAYS,
    WARN_DAYS,
    Authority,
    CredentialsError,
    fingerprint,
    name_in,
    read_certificates,
)
from comesh.runtime.keyring import revoked_of, trusted
from comesh.runtime.revocation import FILE, Revocations

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Directory with the keys.")]
MaybeDirectory = Annotated[
    Path | None,
    typer.Argument(metavar="DIR", help="Directory with the keys.  [default: keys]", show_default=False),
]


class Shown(msgspec.Struct, frozen=True):
    """A certificate, as `show --json` prints it."""

    who: str
    file: str
    fingerprint: str
    made: str
    valid_from: str
    """A day before it was made, for machines whose clocks are behind."""
    valid_to: str
    days_left: int
    has_key: bool
    state: str
    """in use; former: replaced, and still valid; revoked; expired"""
    revoked: str | None
    """Date of its revocation."""


def init(
    directory: Directory = DEFAULT_DIRECTORY,
    name: Annotated[str, typer.Option("--name", help="Name of the deployment.")] = "comesh",
    days: Annotated[int, typer.Option("--days", help="Days of validity.")] = AUTHORITY_DAYS,
    force: Force = False,
) -> None:
    """Make the deployment's own authority.

    Its key signs the certificates of all nodes: keep it safe, and keep it off the nodes.
    """
    try:
        Authority.create(directory, name, days, force=force)
    except CredentialsError as problem:
        fail(str(problem))
    out.print(f"wrote {directory / AUTHORITY}.key and {directory / AUTHORITY}.crt")
    out.print("next: make the keys of your nodes with")
    out.print(f"  comesh keys node NAME...{keys_option(directory)}")


def node(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Names of nodes.", show_default=False)],
    directory: Keys = DEFAULT_DIRECTORY,
    days: Days = NODE_DAYS,
    force: Force = False,
) -> None:
    """Make a key and a certificate for each node."""
    try:
        authority = Authority.load(directory)
        issued = {name: authority.issue(name, days) for name in names}
        for name, one in issued.items():
            one.write(directory, name, force=force)
            out.print(f"wrote {directory / name}.key and {directory / name}.crt")
    except CredentialsError as problem:
        fail(str(problem))
    out.print(f"a node needs these two and {directory / AUTHORITY}.crt, and nothing else")


def show(
    named: MaybeDirectory = None,
    keys_in: Annotated[Path | None, typer.Option("--keys", metavar="DIR", help="The same as DIR.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List certificates: owner, end of validity, revocation.

    Exit code 1: one has expired.
    """
    if named is not None and keys_in is not None and named != keys_in:
        fail(f"one directory at a time: {named}, or --keys {keys_in}")
    directory = named or keys_in or DEFAULT_DIRECTORY
    if not directory.is_dir():
        fail(f"{directory} is not a directory; make one with: comesh keys init{_argument(directory)}")
    try:
        shown = _all_shown(directory)
    except CredentialsError as problem:
        fail(str(problem))
    if not shown:
        fail(
            f"{directory} has no certificates; make them with: comesh keys init{_argument(directory)}",
            Exit.NO,
        )
    if json:
        print_json(shown)
    else:
        _print(shown)
    _warn(directory, shown)
    expired = any(one.state == "expired" for one in shown)
    raise typer.Exit(int(Exit.NO if expired else Exit.OK))


def _all_shown(directory: Path) -> list[Shown]:
    """Returns all certificates: those in use first, then replaced ones."""
    has_lists = (directory / FILE).exists()
    authorities = trusted(directory) if has_lists else ()
    revocations = revoked_of(directory) if has_lists else Revocations()
    found: list[Shown] = []
    paths = [*sorted(directory.glob("*.crt")), *sorted((directory / FORMER).glob("*.pem"))]
    for path in paths:
        for number_in_file, one in enumerate(read_certificates(path, "move it away")):
            since = revocations.since(one, authorities)
            former = path.suffix == ".pem" or number_in_file > 0
            found.append(_shown(path.relative_to(directory), one, since, path, former=former))
    return found


def _shown(
    file: Path, certificate: x509.Certificate, revoked: datetime | None, path: Path, *, former: bool
) -> Shown:
    name = name_in(certificate)
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    state = "former" if former else "expired" if left.days < 0 else "in use"
    return Shown(
        who=f"node {name}" if name else certificate.subject.rfc4514_string().removeprefix("CN="),
        file=str(file),
        fingerprint=fingerprint(certificate),
        made=f"{certificate.not_valid_before_utc + BACKDATED:%Y-%m-%d}",
        valid_from=f"{certificate.not_valid_before_utc:%Y-%m-%d}",
        valid_to=f"{certificate.not_valid_after_utc:%Y-%m-%d}",
        days_left=left.days,
        has_key=not former and path.with_suffix(".key").exists(),
        state="revoked" if revoked is not None else state,
        revoked=None if revoked is None else f"{revoked:%Y-%m-%d}",
    )


def _print(shown: list[Shown]) -> None:
    table = ListTable()
    for heading in ("who", "made", "valid to", "days", "state", "key", "fingerprint"):
        table.add_column(heading, no_wrap=True)
    for one in shown:
        style = "red" if one.days_left < 0 else "yellow" if one.days_left < WARN_DAYS else ""
        since = f" {one.revoked}" if one.revoked else ""
        table.add_row(
            plain(one.who),
            one.made,
            one.valid_to,
            plain(str(one.days_left), style),
            plain(one.state + since, "red" if one.state == "revoked" else ""),
            "yes" if one.has_key else "no",
            one.fingerprint[:12],
        )
    out.print(table)


def _warn(directory: Path, shown: list[Shown]) -> None:
    for one in shown:
        if one.state == "expired":
            err.print(f"warning: {one.file} has expired")
        elif one.state == "in use" and one.days_left < WARN_DAYS:
            err.print(f"warning: {one.file} expires in {number(one.days_left, 'day')}")
    for path in sorted(directory.glob("*.key")):
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            err.print(f"warning: {path} can be read by others; keep it to its owner with: chmod 600 {path}")


def _argument(directory: Path) -> str:
    return "" if directory == DEFAULT_DIRECTORY else f" {directory}"


keys = group(
    "keys",
    "Make, revoke and rotate the keys of nodes, and API tokens.",
    {
        "init": init,
        "node": node,
        "show": show,
        "revoke": revoke_keys,
        "replace": replace,
        "rotate": rotate_keys,
        "bundle": bundle,
        "invite": invite,
        "token": token,
        "tokens": tokens,
    },
)

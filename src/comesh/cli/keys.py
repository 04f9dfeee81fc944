"""`comesh keys init|node|show|token|tokens`: who is who in a deployment, as files. No network is needed."""

import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.table import Table

from comesh.cli.terminal import Exit, err, fail, number, out, plain, print_json
from comesh.cli.tokens import token, tokens
from comesh.runtime.credentials import (
    AUTHORITY,
    AUTHORITY_DAYS,
    NODE_DAYS,
    WARN_DAYS,
    Authority,
    CredentialsError,
    fingerprint,
    name_in,
    read_certificate,
)

DEFAULT_DIRECTORY: Final = Path("keys")

keys = typer.Typer(
    name="keys",
    help="Make and show keys and certificates of nodes, and tokens for their HTTP interface.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
keys.command("token")(token)
keys.command("tokens")(tokens)
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


class Shown(msgspec.Struct, frozen=True):
    """One certificate, as `show --json` prints it."""

    who: str
    file: str
    fingerprint: str
    valid_from: str
    valid_to: str
    days_left: int
    has_key: bool


@keys.command("init")
def init(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", show_default="keys")] = DEFAULT_DIRECTORY,
    name: Annotated[str, typer.Option("--name", help="Of the deployment.")] = "comesh",
    days: Annotated[int, typer.Option("--days", help="How long it is valid.")] = AUTHORITY_DAYS,
    force: Force = False,
) -> None:
    """Make the deployment's own authority. Its key signs all nodes: keep it, and keep it off the nodes."""
    try:
        Authority.create(directory, name, days, force=force)
    except CredentialsError as problem:
        fail(str(problem))
    out.print(f"wrote {directory / AUTHORITY}.key and {directory / AUTHORITY}.crt")
    out.print("next: make the keys of your nodes with")
    out.print(f"  comesh keys node NAME...{_option(directory)}")


@keys.command("node")
def node(
    names: Annotated[list[str], typer.Argument(metavar="NAME", show_default=False)],
    directory: Annotated[Path, typer.Option("--keys", metavar="DIR")] = DEFAULT_DIRECTORY,
    days: Annotated[int, typer.Option("--days", help="How long they are valid.")] = NODE_DAYS,
    force: Force = False,
) -> None:
    """Make a key and a certificate for each node, signed by the authority."""
    try:
        authority = Authority.load(directory)
        issued = {name: authority.issue(name, days) for name in names}
        for name, one in issued.items():
            one.write(directory, name, force=force)
            out.print(f"wrote {directory / name}.key and {directory / name}.crt")
    except CredentialsError as problem:
        fail(str(problem))
    out.print(f"a node needs these two and {directory / AUTHORITY}.crt, and nothing else")


@keys.command("show")
def show(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", show_default="keys")] = DEFAULT_DIRECTORY,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """List who has a certificate here, and until when. Exit code 1 if one has expired."""
    if not directory.is_dir():
        fail(f"{directory} is no directory; make one with: comesh keys init{_argument(directory)}")
    try:
        shown = [_shown(path) for path in sorted(directory.glob("*.crt"))]
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
    raise typer.Exit(int(Exit.NO if any(one.days_left < 0 for one in shown) else Exit.OK))


def _shown(path: Path) -> Shown:
    certificate = read_certificate(path, "move it away")
    name = name_in(certificate)
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    return Shown(
        who=f"node {name}" if name else certificate.subject.rfc4514_string().removeprefix("CN="),
        file=path.name,
        fingerprint=fingerprint(certificate),
        valid_from=f"{certificate.not_valid_before_utc:%Y-%m-%d}",
        valid_to=f"{certificate.not_valid_after_utc:%Y-%m-%d}",
        days_left=left.days,
        has_key=path.with_suffix(".key").exists(),
    )


def _print(shown: list[Shown]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("who", "valid from", "to", "days left", "key here", "fingerprint"):
        table.add_column(heading, no_wrap=True)
    for one in shown:
        style = "red" if one.days_left < 0 else "yellow" if one.days_left < WARN_DAYS else ""
        table.add_row(
            plain(one.who),
            one.valid_from,
            one.valid_to,
            plain(str(one.days_left), style),
            "yes" if one.has_key else "no",
            one.fingerprint[:16],
        )
    out.print(table)


def _warn(directory: Path, shown: list[Shown]) -> None:
    for one in shown:
        if one.days_left < 0:
            err.print(f"warning: {one.file} has expired")
        elif one.days_left < WARN_DAYS:
            err.print(f"warning: {one.file} expires in {number(one.days_left, 'day')}")
    for path in sorted(directory.glob("*.key")):
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            err.print(f"warning: {path} can be read by others; keep it to its owner with: chmod 600 {path}")


def _option(directory: Path) -> str:
    return "" if directory == DEFAULT_DIRECTORY else f" --keys {directory}"


def _argument(directory: Path) -> str:
    return "" if directory == DEFAULT_DIRECTORY else f" {directory}"

"""`comesh apply FILE`: changes a running mesh to another document; shows first what differs."""

import time
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from comesh.cli.asking import asking
from comesh.cli.change_view import end_with_problems, follow, show_followed, show_preview
from comesh.cli.documents import read_deployment, read_text
from comesh.cli.terminal import Exit, confirm, fail, out, plain, print_json
from comesh.core.ids import GroupId
from comesh.deployment.change import Change
from comesh.deployment.virtual import all_virtual
from comesh.queries.answers import QueryError
from comesh.queries.requests import ApplyDocument, PreviewDocument, ReachVersion, ShowVersion
from comesh.runtime.client import AnyClient

USUAL_WITHIN_S: Final = 300.0

File = Annotated[Path | None, typer.Argument(metavar="FILE", help="The new document.", show_default=False)]
To = Annotated[
    int | None,
    typer.Option("--to", metavar="VERSION", help="Apply an earlier version again, instead of FILE."),
]
Base = Annotated[
    int | None,
    typer.Option(
        "--base", metavar="VERSION", help="Refuse to apply if the mesh is at another version than this."
    ),
]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for `comesh versions`.")]
Now = Annotated[
    bool, typer.Option("--now", help="Hand off all groups at once, not one by one as they learn of it.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show what differs; exit code 1 if something does.")
]
Virtual = Annotated[
    bool, typer.Option("--virtual", help="Use virtual devices in place of all others, as `comesh up` does.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait until every group runs by the new version.")
]
Within = Annotated[
    float, typer.Option("--within", metavar="SECONDS", help="How long to wait for the groups.")
]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `--json`."""

    base: int
    changes: tuple[Change, ...]
    means: tuple[str, ...]
    version: int | None = None
    """The new version; null: nothing was applied."""
    groups: dict[GroupId, bool] = {}
    """Whether each group runs by the new version; empty: that was not waited for."""
    seconds: float | None = None
    """Seconds until all groups ran by it."""


@asking
def apply(
    client: AnyClient,
    document: File = None,
    *,
    to: To = None,
    base: Base = None,
    why: Why = "",
    now: Now = False,
    dry_run: DryRun = False,
    virtual: Virtual = False,
    yes: Yes = False,
    wait: Wait = True,
    within: Within = USUAL_WITHIN_S,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON, for programs; needs --yes or --dry-run.")
    ] = False,
) -> None:
    """Change a running mesh to another document.

    Exit code 0: the mesh runs by it; 1: it does not.
    """
    if json and not (yes or dry_run):
        fail("--json needs --yes or --dry-run: nobody is asked")
    what, text = _text(client, document, to, virtual=virtual)
    preview = client.ask(PreviewDocument(text=text))
    end_with_problems(preview.problems)
    report = Report(base=preview.base, changes=preview.changes, means=preview.means)
    if not json:
        out.print(plain(f"{what} against version {preview.base}, which the mesh runs by:", "bold"))
        show_preview(preview)
    if base is not None and base != preview.base:
        fail(f"nothing is applied: it builds on version {base}, but the mesh is at {preview.base}", Exit.NO)
    if not preview.changes:
        _nothing_to_do(client, report, what, now=now, json=json)
    if dry_run:
        if json:
            print_json(report)
        raise typer.Exit(int(Exit.NO))
    confirm(f"apply this as version {preview.base + 1}?", yes=yes)
    version = apply_text(client, preview.base if base is None else base, text, why=why)
    began = time.monotonic()
    if not json:
        out.print(f"applied as version {version}")
    if now:
        client.ask(ReachVersion(version=version))
    reached = follow(client, version, within_s=within, quiet=json) if wait else {}
    took_s = time.monotonic() - began
    code = Exit.OK if all(reached.values()) else Exit.NO
    if json:
        took = took_s if wait and code is Exit.OK else None
        print_json(msgspec.structs.replace(report, version=version, groups=reached, seconds=took))
    elif wait:
        code = show_followed(reached, version, took_s)
    raise typer.Exit(int(code))


def _text(client: AnyClient, document: Path | None, to: int | None, *, virtual: bool) -> tuple[str, str]:
    """Returns the document's name and text."""
    if (document is None) == (to is None):
        fail("name one document: a FILE, or --to VERSION")
    if to is not None:
        return f"version {to}", client.ask(ShowVersion(version=to)).text
    assert document is not None
    read_deployment(document)
    text = read_text(document)
    return str(document), all_virtual(text) if virtual else text


def _nothing_to_do(client: AnyClient, report: Report, what: str, *, now: bool, json: bool) -> None:
    if now:
        client.ask(ReachVersion(version=report.base))
    if json:
        print_json(report)
    else:
        out.print(plain(f"nothing: {what} means the same as version {report.base}. Nothing is applied"))
    raise typer.Exit(int(Exit.OK))


def apply_text(client: AnyClient, base: int, text: str, *, why: str) -> int:
    """Applies a document and returns its version; ends the command where it is not applied."""
    try:
        return client.ask(ApplyDocument(base=base, text=text, why=why)).version
    except QueryError as wrong:
        end_with_problems(wrong.problems)
        fail(f"nothing is applied: {wrong}", Exit(wrong.exit_code))

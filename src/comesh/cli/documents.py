"""Reads a deployment document for a command; problems are printed, and end the command."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from comesh.cli.terminal import Exit, err, fail
from comesh.deployment.checks.unbuilt import undo_notes
from comesh.deployment.load import Outcome, load, load_bytes
from comesh.deployment.model import Deployment
from comesh.deployment.tree import MAX_BYTES

MAX_SHOWN = 100
STANDARD_INPUT = "-"

DocumentFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The deployment document.", show_default=False)
]
"""Argument of every command that reads a document."""


def read_deployment(file: Path) -> Deployment:
    """Returns the deployment in a file. Prints every problem; ends the command where there are mistakes."""
    outcome = read_outcome(file)
    show_problems(outcome)
    if outcome.deployment is None:
        raise typer.Exit(int(exit_code(outcome)))
    return outcome.deployment


def read_text(file: Path) -> str:
    """Returns the text of a document that was just read, for commands that hand it on."""
    if str(file) == STANDARD_INPUT:
        fail("this command needs the document as a file, not from standard input")
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as wrong:
        fail(f"{file} cannot be read ({wrong.strerror or wrong})")


def read_outcome(file: Path) -> Outcome:
    """Reads the document in a file, or on standard input for `-`, with all its problems."""
    if str(file) == STANDARD_INPUT:
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
        return _with_notes(load_bytes(data, "<standard input>"), data)
    outcome = load(file)
    return outcome if outcome.deployment is None else _with_notes(outcome, file.read_bytes())


def _with_notes(outcome: Outcome, data: bytes) -> Outcome:
    if outcome.deployment is None:
        return outcome
    more = undo_notes(outcome.deployment, data, outcome.file)
    return msgspec.structs.replace(outcome, notes=(*outcome.notes, *more))


def show_problems(outcome: Outcome) -> None:
    """Prints problems on standard error, one line each; of many the first, but mistakes never give way to
    warnings."""
    shown = {*outcome.errors[:MAX_SHOWN], *outcome.warnings[:MAX_SHOWN]}
    for problem in outcome.problems:
        if problem in shown:
            err.print(str(problem))
    if len(outcome.problems) > len(shown):
        err.print(f"... and {len(outcome.problems) - len(shown)} more")
    if outcome.more:
        err.print("more were not looked for")
    if outcome.stopped_early:
        err.print("the rest of the document was not checked")


def exit_code(outcome: Outcome) -> Exit:
    if outcome.could_not_read:
        return Exit.USAGE
    return Exit.OK if outcome.deployment is not None else Exit.NO

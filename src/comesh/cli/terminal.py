"""Shared by all commands: output, failure, and exit codes.

Exit codes: 0 it worked; 1 it ran, and the answer is no (a document with mistakes, a promise broken); 2 it was
called wrongly or could not run (a missing file, an unknown option); 130 stopped by Ctrl-C.
"""

import os
import sys
from enum import IntEnum
from typing import NoReturn

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from comesh.deployment.problems import printable


class _Terminal(Console):
    def on_broken_pipe(self) -> None:
        """Tells the entry point that the reader has gone (`| head -1`), where rich would end with 1."""
        raise BrokenPipeError


out = _Terminal(highlight=False, soft_wrap=True, markup=False, emoji=False)
err = _Terminal(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
"""Colour only on terminals, and NO_COLOR is honoured: rich sees to both. Texts are printed as they are,
brackets and colons too, because documents have them; what is coloured is a rich Text or has a style."""


class Exit(IntEnum):
    OK = 0
    NO = 1
    USAGE = 2
    INTERRUPTED = 130


def fail(what: str, code: Exit = Exit.USAGE) -> NoReturn:
    """Ends the command with one plain line on standard error: what happened, where, what to do."""
    err.print(f"comesh: {what}", markup=False)
    raise typer.Exit(int(code))


def confirm(question: str, *, yes: bool) -> None:
    """Asks a question, and ends the command unless the answer is yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail("cannot ask for confirmation, because standard input is not a terminal: give --yes")
    if not typer.confirm(question, err=True):
        fail("nothing was done", Exit.NO)


def number(count: int, what: str) -> str:
    """Formats a count: `1 node`, `2 nodes`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def plain(text: str, style: str = "") -> Text:
    """Makes a text of a document harmless to the terminal, for tables, panels and live screens."""
    return Text(printable(text), style=style)


def drop_output() -> None:
    """Discards all further output, also at the very end, since nobody reads it any more."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # a standard output that is no file, as in tests
        pass


def print_json(answer: object) -> None:
    """Prints one JSON document on standard output, for programs."""
    text = msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()
    typer.echo(text)

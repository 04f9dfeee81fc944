"""Files that commands write: never one that they read, and nothing of somebody else, unless forced."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from comesh.cli.terminal import fail

_LOOKED_AT_BYTES = 65_536

FAULTS_HEADER = "# Faults of a run, written by comesh sim --write-faults; replay them with --faults.\n"
"""Marks a schedule that a command wrote, and may overwrite, unlike one that a person wrote."""

Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file, whatever it is.")]


def check_output(
    target: Path, *, reads: Iterable[Path], ours: Callable[[bytes], bool], kind: str, force: bool
) -> None:
    """Ends the command unless this file may be written: it is new, or of our kind, or `--force` was given.

    What the command itself reads is refused also with `--force`.
    """
    try:
        if not target.is_file():
            return
        for source in reads:
            if source.exists() and target.samefile(source):
                fail(f"{target} is a file that this command reads; choose another name for the {kind}")
        with target.open("rb") as file:
            begin = file.read(_LOOKED_AT_BYTES)
    except OSError as wrong:
        fail(f"cannot write {target}: {wrong.strerror}")
    if begin and not force and not ours(begin):
        fail(f"{target} exists and is not a {kind}; choose another name, or overwrite it with --force")


def is_svg(begin: bytes) -> bool:
    text = begin.lstrip()
    return text.startswith(b"<svg") or (text.startswith(b"<?xml") and b"<svg" in text)


def is_written_faults(begin: bytes) -> bool:
    return begin.startswith(FAULTS_HEADER.encode())


def is_trace(begin: bytes) -> bool:
    """Recognises a trace by its first line, such as `[12.5,"n03","TimerFired",{...}]`."""
    try:
        msgspec.json.decode(begin.split(b"\n", 1)[0], type=tuple[float, str, str, msgspec.Raw])
    except msgspec.DecodeError:
        return False
    return True

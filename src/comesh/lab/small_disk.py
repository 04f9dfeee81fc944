"""A disk of a few megabytes for one node, which can be filled to the last byte. Needs root: it is a tmpfs."""

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

DISK_KB: Final = 4096
FILLER: Final = "filler"
COMMAND_S: Final = 30.0


def why_no_small_disk() -> str:
    """Empty: there can be one."""
    if os.geteuid() != 0:
        return "a disk of its own for one node needs root"
    return "" if shutil.which("mount") else "not installed: mount (apt-get install mount)"


@contextlib.contextmanager
def small_disk(directory: Path) -> Iterator[None]:
    """Mounted there, and unmounted at the end, whoever still uses it."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    what = ["mount", "-t", "tmpfs", "-o", f"size={DISK_KB}k,mode=700", "comesh-lab", str(directory)]
    subprocess.run(what, check=True, timeout=COMMAND_S)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True, timeout=COMMAND_S)


def fill(directory: Path) -> int:
    """Fills a disk until not one byte more fits. Returns how many bytes that took."""
    file = os.open(directory / FILLER, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    written = 0
    try:
        for piece_bytes in (65_536, 4096, 1):
            with contextlib.suppress(_FullError):
                while True:
                    written += _write(file, bytes(piece_bytes))
    finally:
        os.close(file)
    return written


def make_room(directory: Path) -> None:
    (directory / FILLER).unlink()


class _FullError(Exception):
    pass


def _write(file: int, data: bytes) -> int:
    try:
        return os.write(file, data)
    except OSError as wrong:
        if wrong.errno == errno.ENOSPC:
            raise _FullError from wrong
        raise

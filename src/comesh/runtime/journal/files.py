"""The files of a data directory, and how each is written so that a crash leaves a good one.

journal             the records (see `format`); replaced as a whole by renaming a flushed new one over it
journal.new         the next one, being written; whatever is found there at a start is thrown away
journal.flushed     how far the journal is known to be on the disk: written in place after each flush
journal.damaged-N   journals that could not be read, kept for a person to look at; the last few
journal.reserve     room that is given up when the disk is full, so that a node can still note its start
lock                held by the process that uses the directory, with its number in it
"""

import contextlib
import errno
import fcntl
import os
import struct
from pathlib import Path
from typing import Final
from zlib import crc32

from comesh.runtime.journal.format import JournalError

JOURNAL: Final = "journal"
NEXT: Final = "journal.new"
FLUSHED: Final = "journal.flushed"
DAMAGED: Final = "journal.damaged-"
RESERVE: Final = "journal.reserve"
LOCK: Final = "lock"

MAX_DAMAGED_KEPT: Final = 3
"""Journals that were set aside; older ones are deleted."""
RESERVE_BYTES: Final = 128 * 1024
_FLUSHED: Final = struct.Struct(">Qq")
_CHECK: Final = struct.Struct(">I")


def trouble(directory: Path, wrong: OSError, doing: str) -> JournalError:
    """An error of the system in words that help."""
    advice = {
        errno.ENOSPC: "the disk is full. Make room there",
        errno.EDQUOT: "the quota is used up. Make room there",
        errno.EFBIG: "the file may not grow further. Raise the limit of file sizes",
        errno.EROFS: "the disk is read-only. Mount it for writing; if it just became so, it may be failing",
        errno.EIO: "the disk reports an error. Look at the system's log; it may be failing",
        errno.EACCES: "this user may not write there. Give the directory to the user that runs the node",
        errno.EPERM: "this user may not write there. Give the directory to the user that runs the node",
        errno.ENOTDIR: "it is not a directory. Name another one",
        errno.ENOENT: "it is gone. Create it, or name another one",
    }
    said = advice.get(wrong.errno or 0, f"{wrong.strerror or wrong}. Look at the system's log")
    return JournalError(f"{directory}: cannot {doing}: {said}")


def write_all(file: int, data: bytes) -> None:
    """A disk that fills up takes a part first, and says why with the next write."""
    written = os.write(file, data)
    while written < len(data):
        written += os.write(file, memoryview(data)[written:])


def sync_directory(directory: Path) -> None:
    """Flushes a directory, so that a name that was given or taken is on the disk."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def open_next(directory: Path) -> int:
    """A new, empty file that is not the journal yet."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
    return os.open(directory / NEXT, flags, 0o600)


def drop_next(directory: Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(directory / NEXT)


def set_aside(directory: Path) -> Path:
    """Rename a journal that cannot be used, and delete the oldest such one."""
    numbers = damaged(directory)
    name = directory / f"{DAMAGED}{max(numbers, default=0) + 1}"
    os.rename(directory / JOURNAL, name)
    for number in sorted(numbers)[: max(0, len(numbers) + 1 - MAX_DAMAGED_KEPT)]:
        with contextlib.suppress(OSError):
            os.unlink(directory / f"{DAMAGED}{number}")
    sync_directory(directory)
    return name


def damaged(directory: Path) -> list[int]:
    """The numbers of journals that were set aside."""
    suffixes = (name.removeprefix(DAMAGED) for name in os.listdir(directory) if name.startswith(DAMAGED))
    return [int(suffix) for suffix in suffixes if suffix.isascii() and suffix.isdigit()]


def keep_reserve(directory: Path) -> None:
    """Fill the reserve if it is not there. A disk without room for it is no error yet."""
    path = directory / RESERVE
    if path.exists():
        return
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            write_all(file, bytes(RESERVE_BYTES))
        finally:
            os.close(file)
    except OSError:
        give_up_reserve(directory)


def give_up_reserve(directory: Path) -> bool:
    """False: there was none."""
    try:
        os.unlink(directory / RESERVE)
    except OSError:
        return False
    return True


class FlushedMark:
    """Keeps how far a file is known to be flushed, in a file of its own: damage at the end of the journal
    does not reach it.

    It is written after each flush, and flushed itself only when a process starts and ends. So after the end
    of a process it is exact, and after a loss of power it says at most what is true.
    """

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / FLUSHED, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def read(self, generation: int) -> int:
        """Bytes of frames of that file; 0: nothing is known of it."""
        data = os.pread(self._file, _FLUSHED.size + _CHECK.size, 0)
        if len(data) < _FLUSHED.size + _CHECK.size:
            return 0
        found, flushed_bytes = _FLUSHED.unpack_from(data)
        (checksum,) = _CHECK.unpack_from(data, _FLUSHED.size)
        if crc32(data[: _FLUSHED.size]) != checksum or found != generation:
            return 0
        return int(flushed_bytes)

    def write(self, generation: int, flushed_bytes: int) -> None:
        """A disk that does not take it keeps the older one, which is true too; the next record will not be
        taken either, and that is reported."""
        data = _FLUSHED.pack(generation, flushed_bytes)
        with contextlib.suppress(OSError):
            os.pwrite(self._file, data + _CHECK.pack(crc32(data)), 0)

    def flush(self) -> None:
        os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)


class DirectoryLock:
    """Allows one process at a time in one directory. The system releases the lock when the process ends,
    however."""

    def __init__(self, directory: Path) -> None:
        path = directory / LOCK
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as wrong:
            holder = os.pread(self._file, 32, 0).decode("ascii", "replace").strip()
            os.close(self._file)
            if wrong.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            who = f"process {holder}" if holder.isdigit() else "another process"
            raise JournalError(
                f"{directory}: {who} uses this directory. Stop it first, or give this node another directory"
            ) from None
        with contextlib.suppress(OSError):  # a full disk is reported by the journal itself
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._file)

"""Judges a journal that was found: it goes on, it is a stranger's, or it is damaged.

The question is always whether something may be missing that this node's word was built on.

- In the boot of the kernel in which it was written, a file is as the last write left it: only a write that
  was cut short may be missing, and nothing was said on its account. Anything else is damage.
- After a loss of power the tail that was not flushed may be gone, or be anything.
- What was flushed must be there. How far that was, `FlushedMark` remembers outside of the journal.

So less than was flushed, or records after what is none, is damage; the rest of a bad end is cut off. A cut
tail counts as a loss of power, unless the process that wrote it was strict: then nobody relied on it.
"""

import os
from pathlib import Path
from typing import NamedTuple

from comesh.runtime.journal.files import JOURNAL, FlushedMark, trouble
from comesh.runtime.journal.format import Reading, State, UnknownFormatError, read_journal
from comesh.runtime.machine import Machine


class Found(NamedTuple):
    """A journal, and what to do with it."""

    reading: Reading
    damage: str
    """Why it must be set aside; empty: it need not."""
    stranger: str
    """Why it is another machine's; empty: it is ours."""
    power_lost: bool
    cut: str
    """Why its end is cut off; empty: it is not."""


def find(directory: Path, mark: FlushedMark, machine: Machine) -> Found | None:
    """None: there is no journal. JournalError: there is one that cannot be read here."""
    path = directory / JOURNAL
    try:
        inode = os.stat(path).st_ino
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as wrong:
        raise trouble(directory, wrong, "read the journal") from wrong
    try:
        reading = read_journal(data)
    except UnknownFormatError as wrong:
        raise UnknownFormatError(f"{path} is not for this program: {wrong}") from wrong
    flushed_bytes = mark.read(reading.header.generation) if reading.header is not None else 0
    return judge(reading, flushed_bytes, machine, inode)


def judge(reading: Reading, flushed_bytes: int, machine: Machine, inode: int) -> Found:
    """flushed_bytes: of frames, as far as is known."""
    header, began = reading.header, reading.began
    same_boot = began is not None and began.kernel_boot == machine.kernel_boot
    relied_on_unflushed = began is not None and not began.strict
    damage = reading.why if reading.state is State.DAMAGED else ""
    if header is not None and not damage:
        missing = max(flushed_bytes, header.snapshot_bytes) - reading.body_bytes
        if missing > 0:
            damage = f"{missing} bytes that were on the disk are missing or changed"
        elif reading.state is State.SPOILED and same_boot:
            damage = reading.why
    if header is None or damage:
        return Found(reading, damage, "", power_lost=False, cut="")
    stranger = header.machine.why_other(machine)
    if not stranger and header.inode != inode:
        stranger = "it is a copy that was put in the place of the journal"
    if stranger:
        return Found(reading, "", stranger, power_lost=False, cut="")
    tail_in_doubt = bool(reading.why) or not (same_boot or reading.clean)
    return Found(reading, "", "", power_lost=relied_on_unflushed and tail_in_doubt, cut=reading.why)


def lose_unflushed(directory: Path, keep_bytes: int = 0) -> int:
    """What a loss of power does to the journal of a process that is gone: of what was not flushed only the
    first keep_bytes are kept. How many bytes are lost. For tests of real nodes."""
    lost_bytes = max(0, unflushed_bytes(directory) - keep_bytes)
    path = directory / JOURNAL
    os.truncate(path, path.stat().st_size - lost_bytes)
    return lost_bytes


def unflushed_bytes(directory: Path) -> int:
    """Returns how many bytes a loss of power would take now. For tests of real nodes."""
    data = (directory / JOURNAL).read_bytes()
    reading = read_journal(data)
    mark = FlushedMark(directory)
    try:
        flushed = mark.read(reading.header.generation) if reading.header is not None else 0
    finally:
        mark.close()
    snapshot = reading.header.snapshot_bytes if reading.header is not None else 0
    return max(0, len(data) - reading.body_at - max(flushed, snapshot))

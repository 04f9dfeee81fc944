"""The journal of a running node: appends, flushes, replaces its file by a snapshot, and survives a bad disk.

Rules:
- one thread appends, retries and closes; flush may be called from any, one at a time;
- so may compact_if_due and declare_strict, while nobody appends: they wait for the disk. A snapshot in place
  of 4 MB took 6 ms on a disk at rest, and up to 60 ms after others wrote 64 MB: too long for an event loop;
- what append was given is in the file whole or not at all: a write that fails is taken back;
- after a failed write nothing is taken until `retry` says so. After a failed flush nobody knows what the disk
  has (the system may have dropped it and will not say so again), so that `retry` writes the whole image to a
  new file;
- a new file is flushed before it gets the journal's name, and so is the name before anything relies on it.
"""

import contextlib
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal

from comesh.core.journal import BootRaised, Image, JournalRecord, PowerLost
from comesh.runtime.journal.files import (
    JOURNAL,
    NEXT,
    DirectoryLock,
    FlushedMark,
    damaged,
    drop_next,
    give_up_reserve,
    keep_reserve,
    open_next,
    set_aside,
    sync_directory,
    trouble,
    write_all,
)
from comesh.runtime.journal.format import (
    EndedClean,
    Filler,
    Frame,
    Header,
    JournalError,
    ProcessBegan,
    frames_bytes,
    header_bytes,
    records_of,
)
from comesh.runtime.journal.opening import Found, find
from comesh.runtime.machine import Machine, kernel_boot_id, this_machine

COMPACT_MIN_BYTES: Final = 4 * 1024 * 1024
"""A smaller file is not worth a snapshot."""
COMPACT_TIMES: Final = 4
"""Nor is one that is not this many times as large as its snapshot was."""
FAST_FLUSH_MS: Final = 0.2
"""A flush that usually takes less may be waited for in the loop: a thread would cost as much."""
FLUSHES_REMEMBERED: Final = 15
MAX_NOTES: Final = 20
"""Maximum notes for people; older ones are dropped."""
_PROBE_BYTES: Final = 64 * 1024
"""Bytes that a disk must take to count as mended."""

Create = Literal["initialise", "replace"]


class Journal:
    def __init__(self, directory: Path, machine: Machine, *, strict: bool) -> None:
        """Use `open`. Takes the directory's lock."""
        self.directory = directory
        self.image = Image()
        """All written records, folded. Copy it to give it away."""
        self.power_lost = False
        self.notes: deque[str] = deque(maxlen=MAX_NOTES)
        """Notes for people about how the journal was found, in plain words."""
        self.strict = strict
        self._machine = machine
        self._lock = DirectoryLock(directory)
        self._mark = FlushedMark(directory)
        self._file = -1
        self._header = Header(0, 0, False, machine, 0, 0, 0)
        self._body_at = 0
        self._body_bytes = 0
        self._flushed_bytes = 0
        self._compact_at = 0
        self._failed = ""
        """Why nothing is taken; empty: it is."""
        self._flush_failed = False
        self._compacting = False
        self._flushing = threading.Lock()
        self._took_ms: deque[float] = deque(maxlen=FLUSHES_REMEMBERED)
        self.flush_takes_ms = 0.0
        """At least so long, for the lab: a disk that is slow, so that much is not flushed yet at any time."""

    @classmethod
    def open(
        cls, directory: Path, *, create: Create = "replace", strict: bool = False, boot_id: str | None = None
    ) -> "Journal":
        """The journal of this directory, with this process's boot number in it, flushed.

        create: what one is that has to be created. `initialise`: the deployment begins here, and it holds the
        genesis rights; say so only at a first start (see `first_start`). `replace`: it stands
        for one that was lost. boot_id: of the kernel; given in tests only.
        """
        kernel_boot = kernel_boot_id() if boot_id is None else boot_id
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            journal = cls(directory, this_machine(directory, kernel_boot), strict=strict)
        except OSError as wrong:
            raise trouble(directory, wrong, "open the journal") from wrong
        try:
            journal._begin(create)
        except OSError as wrong:
            journal._let_go()
            raise trouble(directory, wrong, "open the journal") from wrong
        except BaseException:
            journal._let_go()
            raise
        return journal

    # -- what it is --------------------------------------------------------------------------------------

    @property
    def store(self) -> int:
        return self._header.store

    @property
    def initialised(self) -> bool:
        return self._header.initialised

    @property
    def boot(self) -> int:
        return self.image.boot

    @property
    def appended_bytes(self) -> int:
        """Since the journal was created; snapshots count for what they replaced."""
        return self._header.base + self._body_bytes

    @property
    def flushed_bytes(self) -> int:
        """Number of bytes that are on the disk for certain."""
        return self._header.base + self._flushed_bytes

    @property
    def flush_is_fast(self) -> bool:
        """Says if the middle of the last flushes was fast: one that was held up changes nothing."""
        took_ms = sorted(self._took_ms)
        return bool(took_ms) and took_ms[len(took_ms) // 2] < FAST_FLUSH_MS

    # -- writing -----------------------------------------------------------------------------------------

    def append(self, records: Sequence[JournalRecord]) -> None:
        """Appends all records in one write, or raises JournalError and appends none."""
        if self._compacting:
            raise JournalError(
                f"{self.directory}: the journal is being replaced, and the disk takes too long"
            )
        self._write(records)
        for record in records:
            self.image.apply(record)

    def flush(self) -> None:
        """Returns when all that was appended before the call is on the disk."""
        with self._flushing:
            self._flush()

    def _flush(self) -> None:
        if self._flush_failed:
            raise JournalError(self._failed)
        appended_bytes = self._body_bytes
        if appended_bytes > self._flushed_bytes:
            self._sync(appended_bytes)

    def declare_strict(self, strict: bool) -> None:
        """From now on this process flushes all that it relies on, or (False) not any more. Not while anybody
        appends."""
        if strict != self.strict:
            self._write([ProcessBegan(self._machine.kernel_boot, strict)])
            self.flush()
            self.strict = strict

    @property
    def compaction_is_due(self) -> bool:
        return self._body_bytes >= self._compact_at and not self._failed

    def compact_if_due(self) -> None:
        """Put a snapshot in the place of a file that has grown. Not while a flush is under way, and nothing
        is taken meanwhile. Without room for it the file goes on growing, with a note; JournalError: the
        journal can no longer be relied on."""
        if not self.compaction_is_due or not self._flushing.acquire(blocking=False):
            return
        self._compacting = True
        try:
            if self._file < 0:  # closed meanwhile
                return
            self._replace(self._header.store, initialised=self.initialised, positions_end=self.appended_bytes)
        except OSError as wrong:
            self._compact_at = self._body_bytes + COMPACT_MIN_BYTES
            self.notes.append(str(trouble(self.directory, wrong, "shorten the journal")))
        finally:
            self._compacting = False
            self._flushing.release()

    def retry(self) -> bool:
        """After JournalError: whether it can be written again."""
        if not self._failed:
            return True
        if not self._flushing.acquire(blocking=False):
            return False
        try:
            if self._flush_failed:
                self._replace(
                    self._header.store, initialised=self.initialised, positions_end=self.appended_bytes
                )
            else:
                self._probe()
        except OSError as wrong:
            self._failed = str(trouble(self.directory, wrong, "write the journal"))
            return False
        except JournalError:
            return False
        finally:
            self._flushing.release()
        self._failed, self._flush_failed = "", False
        keep_reserve(self.directory)
        return True

    def close(self, *, clean: bool = True) -> None:
        """clean: flush, and say that nothing is missing. A journal that cannot be written ends as after a
        crash."""
        if self._file < 0:
            return
        with self._flushing:
            if clean and not self._failed:
                with contextlib.suppress(JournalError):
                    self._flush()
                    self._write([EndedClean()])
                    self._flush()
                with contextlib.suppress(OSError):
                    self._mark.flush()
            self._let_go()

    def _write(self, frames: Iterable[Frame]) -> None:
        if self._failed:
            raise JournalError(self._failed)
        data = frames_bytes(frames, self._header.generation, self._body_bytes)
        try:
            write_all(self._file, data)
        except OSError as wrong:
            with contextlib.suppress(OSError):  # tried again by `retry`, and nothing is written before that
                self._take_back()
            error = trouble(self.directory, wrong, "write the journal")
            self._failed = str(error)
            raise error from wrong
        self._body_bytes += len(data)

    def _take_back(self) -> None:
        """Whatever a failed write left."""
        os.ftruncate(self._file, self._body_at + self._body_bytes)

    def _sync(self, appended_bytes: int) -> None:
        began = time.perf_counter()
        if self.flush_takes_ms:
            time.sleep(self.flush_takes_ms / 1000.0)
        try:
            os.fdatasync(self._file)
        except OSError as wrong:
            raise self._fail_flush(wrong) from wrong
        self._took_ms.append((time.perf_counter() - began) * 1000.0)
        self._flushed_bytes = appended_bytes
        self._mark.write(self._header.generation, appended_bytes)

    def _fail_flush(self, wrong: OSError) -> JournalError:
        error = trouble(self.directory, wrong, "flush the journal")
        self._failed, self._flush_failed = str(error), True
        return error

    def _probe(self) -> None:
        """Write something for the disk to refuse, and take it back."""
        self._take_back()
        filler = frames_bytes([Filler(bytes(_PROBE_BYTES))], self._header.generation, self._body_bytes)
        try:
            write_all(self._file, filler)
            self._sync(self._body_bytes)
        finally:
            self._take_back()

    def _replace(self, store: int, *, initialised: bool, positions_end: int) -> None:
        """Put a file with the image, and this process's beginning, in the place of the journal. OSError: it
        did not happen, and the old one is as it was."""
        frames: list[Frame] = [*records_of(self.image), ProcessBegan(self._machine.kernel_boot, self.strict)]
        generation = secrets.randbits(63)
        body = frames_bytes(frames, generation, 0)
        file = open_next(self.directory)
        try:
            inode = os.fstat(file).st_ino
            base = positions_end - len(body)
            header = Header(generation, store, initialised, self._machine, inode, base, len(body))
            head = header_bytes(header)
            write_all(file, head + body)
            began = time.perf_counter()
            os.fsync(file)
            self._took_ms.append((time.perf_counter() - began) * 1000.0)
            os.rename(self.directory / NEXT, self.directory / JOURNAL)
        except OSError:
            os.close(file)
            drop_next(self.directory)
            raise
        if self._file >= 0:
            os.close(self._file)
        self._file, self._header = file, header
        self._body_at, self._body_bytes, self._flushed_bytes = len(head), len(body), len(body)
        self._compact_at = max(COMPACT_MIN_BYTES, COMPACT_TIMES * len(body))
        try:
            sync_directory(self.directory)
        except OSError as wrong:
            raise self._fail_flush(wrong) from wrong
        self._mark.write(generation, len(body))

    # -- opening -----------------------------------------------------------------------------------------

    def _begin(self, create: Create) -> None:
        drop_next(self.directory)
        found = find(self.directory, self._mark, self._machine)
        try:
            self._begin_from(found, create)
        except (OSError, JournalError):
            if not give_up_reserve(self.directory):
                raise
            self._failed = ""
            self._begin_from(find(self.directory, self._mark, self._machine), create)
        self._mark.flush()
        keep_reserve(self.directory)

    def _begin_from(self, found: Found | None, create: Create) -> None:
        path = self.directory / JOURNAL
        if found is None:
            self._begin_new(create)
        elif found.damage:
            self._keep_harmless(found)
            aside = set_aside(self.directory)
            self.notes.append(
                f"{path} is damaged: {found.damage}. It was set aside as {aside.name}, and this node begins "
                "anew from what its peers hold. If it happens again, replace the disk"
            )
            self._begin_anew()
        elif found.stranger:
            self._keep_harmless(found)
            self.notes.append(
                f"{path} is not this node's own: {found.stranger}. This node begins anew from what its peers "
                "hold, and is seated again as groups change. If the original runs too, stop one of them"
            )
            self._begin_anew()
        else:
            self._go_on(found)

    def _begin_new(self, create: Create) -> None:
        self.image = Image()
        initialise = create == "initialise" and not damaged(self.directory)
        if not initialise:
            self.notes.append(
                f"{self.directory} has no journal: this node takes the place of one that lost its disk, and "
                "gets what the others hold. If the deployment never ran, stop it, remove this directory, and "
                "start every node with --init, once"
            )
        self._begin_anew(initialised=initialise)

    def _keep_harmless(self, found: Found) -> None:
        """Keeps all but the seats, as with a disk that was copied (docs/decisions/0009-moved-journals.md)."""
        self.image = found.reading.image
        self.image.configs.clear()

    def _begin_anew(self, *, initialised: bool = False) -> None:
        self.image.apply(BootRaised(self.image.boot + 1))
        self._replace(1 + secrets.randbelow((1 << 32) - 1), initialised=initialised, positions_end=0)

    def _go_on(self, found: Found) -> None:
        reading = found.reading
        assert reading.header is not None, "a journal without a header is damaged"
        self.image, self._header, self._body_at = reading.image, reading.header, reading.body_at
        if self._file < 0:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(self.directory / JOURNAL, flags)
        self._body_bytes = reading.body_bytes
        self._flushed_bytes = 0
        self._take_back()
        if found.cut:
            self.notes.append(
                f"{self.directory / JOURNAL}: {found.cut}; they were cut off, as after a loss of power"
            )
        self._compact_at = max(COMPACT_MIN_BYTES, COMPACT_TIMES * self._header.snapshot_bytes)
        self.power_lost = found.power_lost
        records: list[JournalRecord] = [PowerLost()] if found.power_lost else []
        records.append(BootRaised(self.image.boot + 1))
        # The mark comes last: if the machine fails before it is on the disk, power counts as lost again.
        self._write([*records, ProcessBegan(self._machine.kernel_boot, self.strict)])
        for record in records:
            self.image.apply(record)
        self.flush()

    def _let_go(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._mark.close()
        self._lock.release()

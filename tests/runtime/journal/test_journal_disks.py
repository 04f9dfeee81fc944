"""Snapshots, flushes, and disks that are full, read-only or failing."""

import errno
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from journal_records import CONFIGS, FIRST, HISTORY, SECOND, begin, folded, shape, written

from comesh.core.journal import BootRaised, DocumentKept, PowerLost, Promised
from comesh.core.stamps import Ballot
from comesh.runtime.journal import Journal, JournalError
from comesh.runtime.journal import journal as writing
from comesh.runtime.journal.files import JOURNAL, RESERVE


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


# -- snapshots ---------------------------------------------------------------------------------------------


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "COMPACT_MIN_BYTES", 2000)


@pytest.mark.usefixtures("often")
def test_the_file_is_bounded_by_snapshots(data: Path) -> None:
    journal = written(data)
    mark, store = CONFIGS[0].mark, journal.store
    for number in range(500):
        journal.append([Promised(mark, Ballot(number, 0))])
        before = journal.appended_bytes
        journal.compact_if_due()
        assert journal.appended_bytes == before
        assert (data / JOURNAL).stat().st_size < 5000
    held = shape(journal.image)
    assert (data / JOURNAL).stat().st_size - 500 < journal.appended_bytes
    journal.close(clean=False)
    again = Journal.open(data, boot_id=FIRST)
    assert (again.store, again.initialised, again.power_lost, again.boot) == (store, True, False, 2)
    assert shape(again.image, boot=False)[1:] == held[1:]
    again.close()


def test_nothing_is_taken_while_a_snapshot_is_made_elsewhere_and_the_end_waits_for_it(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = written(data)
    held = shape(journal.image)
    entered, go_on = threading.Event(), threading.Event()
    flush = os.fsync

    def slow(file: int) -> None:
        entered.set()
        assert go_on.wait(20)
        flush(file)

    journal._compact_at = 0
    monkeypatch.setattr(writing.os, "fsync", slow)
    elsewhere = threading.Thread(target=journal.compact_if_due)
    elsewhere.start()
    assert entered.wait(20)
    with pytest.raises(JournalError, match="is being replaced"):
        journal.append([DocumentKept(4, "meanwhile")])
    ending = threading.Thread(target=journal.close)
    ending.start()
    go_on.set()
    for thread in (elsewhere, ending):
        thread.join()
    again = Journal.open(data, boot_id=SECOND)
    assert shape(again.image)[1:] == held[1:]
    assert not again.power_lost, "it ended clean, in the new file"
    again.close()


class Crashed(BaseException):
    """The machine ends here."""


def crash_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Ends before or after the one with this number of all calls that reach the disk."""
    count = iter(range(1000))

    def wrap(owner: object, name: str) -> None:
        original = getattr(owner, name)

        def call(*arguments: object) -> object:
            if next(count) == step:
                raise Crashed
            if name == "write_all":
                file, content = arguments
                assert isinstance(content, bytes)
                original(file, content[: len(content) // 2])
                arguments = (file, content[len(content) // 2 :])
                if next(count) == step:
                    raise Crashed
            result = original(*arguments)
            if next(count) == step:
                raise Crashed
            return result

        monkeypatch.setattr(owner, name, call)

    for name in ("open_next", "write_all", "sync_directory"):
        wrap(writing, name)
    wrap(writing.os, "rename")
    wrap(writing.os, "fsync")
    wrap(writing.FlushedMark, "write")


def compaction_ends_at(data: Path, step: int) -> bool:
    """Whether it was interrupted there; the journal is good in any case."""
    journal = written(data)
    journal.flush()
    held, store = shape(journal.image), journal.store
    journal._compact_at = 0
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, step)
        try:
            journal.compact_if_due()
            crashed = False
        except Crashed:
            crashed = True
    journal.close(clean=False)
    again = Journal.open(data, strict=True, boot_id=FIRST)
    assert (again.store, again.initialised, again.power_lost) == (store, True, False)
    assert shape(again.image)[1:] == held[1:]
    assert not again.notes
    again.append([DocumentKept(4, "goes on")])
    again.close()
    third = Journal.open(data, boot_id=FIRST)
    assert third.image.documents[4] == "goes on"
    third.close()
    return crashed


def test_a_crash_anywhere_in_a_snapshot_leaves_a_good_journal(tmp_path: Path) -> None:
    step = 0
    while compaction_ends_at(tmp_path / str(step), step):
        step += 1
    assert step >= 12


@pytest.mark.usefixtures("often")
def test_a_snapshot_without_room_is_put_off(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = begin(data)
    journal.append([DocumentKept(1, "x" * 3000)])
    tries: list[int] = []

    def full(directory: Path) -> int:
        tries.append(1)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(writing, "open_next", full)
    journal.compact_if_due()
    journal.compact_if_due()
    assert len(tries) == 1, "not again until the file has grown"
    assert "cannot shorten the journal: the disk is full" in journal.notes[0]
    journal.append([DocumentKept(2, "still written")])
    journal.close()


# -- bad disks ---------------------------------------------------------------------------------------------


class BadDisk:
    """Takes a few bytes of each write, then none, as long as it is bad."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: int | None = None
        self.flush_error: int | None = None
        original, flush = writing.write_all, os.fdatasync

        def write_all(file: int, data: bytes) -> None:
            if self.error is not None:
                os.write(file, data[: len(data) // 2])
                raise OSError(self.error, os.strerror(self.error))
            original(file, data)

        def fdatasync(file: int) -> None:
            if self.flush_error is not None:
                raise OSError(self.flush_error, os.strerror(self.flush_error))
            flush(file)

        monkeypatch.setattr(writing, "write_all", write_all)
        monkeypatch.setattr(writing.os, "fdatasync", fdatasync)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[BadDisk]:
    yield BadDisk(monkeypatch)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errno.ENOSPC, "the disk is full. Make room there"),
        (errno.EROFS, "the disk is read-only"),
        (errno.EIO, "the disk reports an error"),
        (errno.ENODEV, "No such device"),
    ],
)
def test_a_write_that_fails_leaves_nothing(data: Path, disk: BadDisk, error: int, said: str) -> None:
    journal = written(data)
    size, held = (data / JOURNAL).stat().st_size, shape(journal.image)
    disk.error = error
    with pytest.raises(JournalError, match=said) as wrong:
        journal.append([DocumentKept(2, "x" * 100)])
    assert str(data) in str(wrong.value)
    assert (data / JOURNAL).stat().st_size == size
    assert shape(journal.image) == held
    assert not journal.retry()
    with pytest.raises(JournalError, match=said):
        journal.append([DocumentKept(3, "not yet")])
    disk.error = None
    assert journal.retry()
    assert (data / JOURNAL).stat().st_size == size
    journal.append([DocumentKept(4, "again")])
    journal.close()
    again = Journal.open(data, boot_id=FIRST)
    assert set(again.image.documents) == {1, 4}
    assert not again.notes
    again.close()


def test_after_a_flush_that_fails_everything_is_written_anew(data: Path, disk: BadDisk) -> None:
    """The system may have dropped what it could not write, and says so only once."""
    journal = written(data)
    inode = (data / JOURNAL).stat().st_ino
    disk.flush_error = errno.EIO
    with pytest.raises(JournalError, match="cannot flush"):
        journal.flush()
    disk.flush_error = None
    with pytest.raises(JournalError, match="cannot flush"):
        journal.flush()
    with pytest.raises(JournalError, match="cannot flush"):
        journal.append([DocumentKept(2, "not yet")])
    assert journal.retry()
    assert (data / JOURNAL).stat().st_ino != inode
    assert journal.flushed_bytes == journal.appended_bytes
    assert shape(journal.image) == shape(folded([BootRaised(1), *HISTORY]))
    journal.close()
    again = Journal.open(data, boot_id=SECOND)
    assert shape(again.image)[1:] == shape(folded(HISTORY))[1:]
    again.close()


def test_a_journal_that_failed_does_not_end_clean(data: Path, disk: BadDisk) -> None:
    journal = written(data)
    disk.flush_error = errno.EIO
    with pytest.raises(JournalError):
        journal.flush()
    journal.close()
    disk.flush_error = None
    again = Journal.open(data, boot_id=SECOND)
    assert again.power_lost
    again.close()


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"not a directory"):
        Journal.open(tmp_path / "file" / "data")


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A disk with little room."""
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("only root can mount a tiny disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_disk_that_is_really_full(tiny: Path) -> None:
    data = tiny / "data"
    journal = begin(data)
    with pytest.raises(JournalError, match="the disk is full"):
        for version in range(1000):
            journal.append([DocumentKept(version, "x" * 10_000)])
    kept = len(journal.image.documents)
    assert kept > 10
    (tiny / "crumbs").write_bytes(b"x" * 4096 * (os.statvfs(tiny).f_bavail))
    assert not journal.retry()
    journal.close()
    starts = 0
    while (data / RESERVE).exists():
        assert starts < 200, "a start takes some room"
        again = begin(data)
        starts += 1
        assert (len(again.image.documents), again.boot) == (kept, 1 + starts)
        again.close(clean=False)
    again = begin(data)
    assert again.boot == 2 + starts, "there is room left of what was reserved"
    (tiny / "crumbs").unlink()
    again.close()
    begin(data).close()
    assert (data / RESERVE).exists(), "it is reserved again"


# -- flushing ----------------------------------------------------------------------------------------------


def test_a_flush_in_a_thread_covers_what_came_before_it(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = written(data)
    before = journal.appended_bytes
    entered, go_on = threading.Event(), threading.Event()
    flush = os.fdatasync

    def slow(file: int) -> None:
        entered.set()
        assert go_on.wait(20)
        flush(file)

    monkeypatch.setattr(writing.os, "fdatasync", slow)
    thread = threading.Thread(target=journal.flush)
    thread.start()
    assert entered.wait(20)
    journal.append([DocumentKept(2, "meanwhile")])
    journal._compact_at = 0
    journal.compact_if_due()
    go_on.set()
    thread.join()
    assert journal.flushed_bytes == before < journal.appended_bytes
    journal.flush()
    assert journal.flushed_bytes == journal.appended_bytes
    journal.close()


def test_fast_flushes_are_reported_from_slow_ones(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = begin(data)
    now_s, takes_s = 0.0, 0.0

    def fdatasync(file: int) -> None:
        nonlocal now_s
        now_s += takes_s

    monkeypatch.setattr(writing.os, "fdatasync", fdatasync)
    monkeypatch.setattr(writing.time, "perf_counter", lambda: now_s)

    def flush(takes_ms: float, times: int) -> bool:
        nonlocal takes_s
        takes_s = takes_ms / 1000
        for _ in range(times):
            journal.append([PowerLost()])
            journal.flush()
        return journal.flush_is_fast

    assert flush(0.01, 20)
    assert flush(50.0, 3), "a few that are held up change nothing"
    assert not flush(5.0, 20)
    assert flush(0.01, 20)
    journal.close(clean=False)

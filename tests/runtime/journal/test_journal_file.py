"""A journal in its directory: what a process, its end, and the end of the machine leave of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from journal_records import (
    CONFIGS,
    FIRST,
    HISTORY,
    SECOND,
    begin,
    folded,
    histories,
    shape,
    written,
)

from comesh.core.journal import BootRaised, DocumentKept, JournalRecord, PowerLost
from comesh.runtime.journal import Journal, JournalError, UnknownFormatError
from comesh.runtime.journal.files import FLUSHED, JOURNAL, MAX_DAMAGED_KEPT, damaged
from comesh.runtime.journal.first_start import mark_of, note_first_start
from comesh.runtime.journal.format import header_bytes, read_journal
from comesh.runtime.journal.opening import lose_unflushed


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def flip(path: Path, at: int) -> None:
    spoiled = bytearray(path.read_bytes())
    spoiled[at] ^= 0x10
    path.write_bytes(bytes(spoiled))


# -- beginnings and ends -----------------------------------------------------------------------------------


def test_a_first_start(data: Path) -> None:
    journal = begin(data)
    assert (journal.boot, journal.initialised, journal.power_lost) == (1, True, False)
    assert 0 < journal.store < 1 << 63
    assert journal.appended_bytes == journal.flushed_bytes == 0
    assert not journal.notes
    journal.close()


def test_a_journal_is_created_with_rights_only_on_demand(data: Path) -> None:
    journal = Journal.open(data, boot_id=FIRST)
    assert not journal.initialised
    assert "--init" in journal.notes[0]
    journal.close()
    again = begin(data)
    assert not again.initialised, "it is not a first start any more"
    again.close()


def test_only_one_start_is_the_first(tmp_path: Path) -> None:
    mark = mark_of(tmp_path, "n1")
    assert note_first_start(mark)
    assert not note_first_start(mark)
    assert note_first_start(mark_of(tmp_path, "n2"))
    with pytest.raises(JournalError, match=r"note the first start \(--init\)"):
        note_first_start(mark_of(tmp_path / "none", "n1"))


@pytest.mark.parametrize("boot_id", [FIRST, SECOND])
def test_a_clean_end_loses_nothing(data: Path, boot_id: str) -> None:
    journal = written(data)
    store = journal.store
    journal.close()
    again = Journal.open(data, boot_id=boot_id)
    assert (again.store, again.boot, again.initialised, again.power_lost) == (store, 2, True, False)
    assert shape(again.image) == shape(folded([*HISTORY, BootRaised(2)]))
    again.close()


def test_a_killed_process_loses_nothing(data: Path) -> None:
    written(data).close(clean=False)
    again = Journal.open(data, boot_id=FIRST)
    assert (again.boot, again.power_lost) == (2, False)
    assert shape(again.image) == shape(folded([*HISTORY, BootRaised(2)]))
    again.close()


def test_lost_power_is_remembered_by_the_journal(data: Path) -> None:
    written(data).close(clean=False)
    assert lose_unflushed(data) > 0
    expected = folded([*HISTORY[:-1], PowerLost(), BootRaised(2)])
    again = Journal.open(data, boot_id=SECOND)
    assert again.power_lost
    assert shape(again.image) == shape(expected)
    again.close(clean=False)
    third = Journal.open(data, boot_id=SECOND)
    assert not third.power_lost, "power was lost once"
    assert not third.image.configs[CONFIGS[0].mark].whole
    third.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(histories, st.data())
def test_what_was_flushed_survives_lost_power(
    tmp_path: Path, history: list[JournalRecord], draw: st.DataObject
) -> None:
    data = tmp_path / "drawn"
    shutil.rmtree(data, ignore_errors=True)
    flushed = draw.draw(st.integers(0, len(history)))
    journal = begin(data)
    journal.append(history[:flushed])
    journal.flush()
    for record in history[flushed:]:
        journal.append([record])
    unflushed_bytes = journal.appended_bytes - journal.flushed_bytes
    journal.close(clean=False)
    lose_unflushed(data, draw.draw(st.integers(0, unflushed_bytes)))
    again = Journal.open(data, boot_id=SECOND)
    assert again.power_lost
    boot = BootRaised(max(folded([BootRaised(1), *history]).boot, 1) + 1)
    allowed = [
        shape(folded([*history[:count], PowerLost(), boot]), boot=False)
        for count in range(flushed, len(history) + 1)
    ]
    assert shape(again.image, boot=False) in allowed
    again.close()


def test_strict_loses_nothing_that_counts(data: Path) -> None:
    written(data, strict=True).close(clean=False)
    lose_unflushed(data)
    again = Journal.open(data, strict=True, boot_id=SECOND)
    assert not again.power_lost
    assert shape(again.image) == shape(folded([*HISTORY[:-1], BootRaised(2)]))
    again.close()


@pytest.mark.parametrize("strict", [False, True])
def test_it_counts_how_the_process_before_worked(data: Path, strict: bool) -> None:
    written(data, strict=strict).close(clean=False)
    again = Journal.open(data, strict=not strict, boot_id=SECOND)
    assert again.power_lost is not strict
    again.close()


@pytest.mark.parametrize("strict", [False, True])
def test_durability_may_change_while_a_process_runs(data: Path, strict: bool) -> None:
    journal = begin(data, strict=not strict)
    journal.declare_strict(strict)
    journal.close(clean=False)
    again = Journal.open(data, strict=strict, boot_id=SECOND)
    assert again.power_lost is not strict
    again.close()


def test_positions_count_on(data: Path) -> None:
    journal = written(data)
    appended, flushed = journal.appended_bytes, journal.flushed_bytes
    assert 0 < flushed < appended
    journal.close(clean=False)
    again = Journal.open(data, boot_id=FIRST)
    assert again.flushed_bytes == again.appended_bytes > appended
    again.close()


# -- damage ------------------------------------------------------------------------------------------------


def recovers(data: Path, store: int, *, boot_id: str = FIRST, strict: bool = False) -> Journal:
    """It was set aside, and another begun in its place."""
    with_rights = Journal.open(data, create="initialise", boot_id=boot_id, strict=strict)
    assert with_rights.store != store
    assert not with_rights.initialised
    assert not with_rights.image.configs
    assert "is damaged" in with_rights.notes[0]
    assert "set aside as journal.damaged-1" in with_rights.notes[0]
    assert damaged(data) == [1]
    return with_rights


@pytest.mark.parametrize("boot_id", [FIRST, SECOND])
@pytest.mark.parametrize("strict", [False, True])
def test_a_flipped_bit_in_the_middle(data: Path, boot_id: str, strict: bool) -> None:
    journal = written(data, strict=strict)
    store = journal.store
    journal.close(clean=False)
    reading = read_journal((data / JOURNAL).read_bytes())
    assert reading.header is not None
    flip(data / JOURNAL, reading.body_at + reading.header.snapshot_bytes + 20)
    again = recovers(data, store, boot_id=boot_id, strict=strict)
    assert again.boot == 2, "what can do no harm is kept"
    again.close()


@pytest.mark.parametrize("at", [0, 9, 30])
def test_a_flipped_bit_in_the_header(data: Path, at: int) -> None:
    journal = written(data)
    store = journal.store
    journal.close()
    flip(data / JOURNAL, at)
    recovers(data, store).close()


@pytest.mark.parametrize("boot_id", [FIRST, SECOND])
def test_a_flipped_bit_in_the_last_record_that_was_flushed(data: Path, boot_id: str) -> None:
    journal = written(data)
    journal.flush()
    store = journal.store
    journal.close(clean=False)
    flip(data / JOURNAL, -1)
    recovers(data, store, boot_id=boot_id).close()


def test_a_flipped_bit_in_the_last_record_of_this_boot(data: Path) -> None:
    """It was not flushed, but written: others may rely on it."""
    journal = written(data)
    store = journal.store
    journal.close(clean=False)
    flip(data / JOURNAL, -1)
    recovers(data, store).close()


def test_a_spoiled_tail_after_lost_power_is_cut_off(data: Path) -> None:
    journal = written(data)
    store = journal.store
    journal.close(clean=False)
    flip(data / JOURNAL, -1)
    again = Journal.open(data, boot_id=SECOND)
    assert (again.store, again.power_lost) == (store, True)
    assert "cut off" in again.notes[0]
    assert shape(again.image) == shape(folded([*HISTORY[:-1], PowerLost(), BootRaised(2)]))
    again.append(HISTORY[-1:])
    again.close()
    third = Journal.open(data, boot_id=SECOND)
    assert shape(third.image) == shape(folded([*HISTORY[:-1], PowerLost(), HISTORY[-1], BootRaised(3)]))
    third.close()


@pytest.mark.parametrize("strict", [False, True])
def test_a_torn_write_is_cut_off(data: Path, strict: bool) -> None:
    written(data, strict=strict).close(clean=False)
    os.truncate(data / JOURNAL, (data / JOURNAL).stat().st_size - 3)
    again = Journal.open(data, strict=strict, boot_id=FIRST)
    assert again.power_lost is not strict, "nobody can tell whether it was whole once"
    assert "beginning of a record" in again.notes[0]
    again.close()


def test_a_tail_that_was_flushed_and_is_missing_is_damage(data: Path) -> None:
    journal = written(data, strict=True)
    journal.flush()
    store = journal.store
    journal.close(clean=False)
    os.truncate(data / JOURNAL, (data / JOURNAL).stat().st_size - 3)
    recovers(data, store, strict=True).close()


def test_a_snapshot_that_is_cut_is_damage_without_other_marks(data: Path) -> None:
    journal = begin(data)
    store = journal.store
    journal.close(clean=False)
    (data / FLUSHED).write_bytes(b"")
    reading = read_journal((data / JOURNAL).read_bytes())
    os.truncate(data / JOURNAL, reading.body_at + 5)
    recovers(data, store).close()


def test_few_damaged_journals_are_kept(data: Path) -> None:
    for _ in range(MAX_DAMAGED_KEPT + 2):
        begin(data).close()
        flip(data / JOURNAL, 5)
    begin(data).close()
    assert sorted(damaged(data)) == [3, 4, 5]


def test_no_rights_where_a_journal_was_set_aside(data: Path) -> None:
    """The machine failed right after it: an explicit first start is still none."""
    begin(data).close()
    os.rename(data / JOURNAL, data / "journal.damaged-1")
    again = begin(data)
    assert not again.initialised
    again.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.data())
def test_any_damage_leaves_a_node_that_starts(tmp_path: Path, draw: st.DataObject) -> None:
    data = tmp_path / "drawn"
    shutil.rmtree(data, ignore_errors=True)
    written(data).close(clean=draw.draw(st.booleans()))
    path = data / JOURNAL
    content = path.read_bytes()
    at = draw.draw(st.integers(0, len(content)))
    junk = draw.draw(st.binary(max_size=30))
    path.write_bytes(content[:at] + junk + content[at + draw.draw(st.integers(0, 40)) :])
    again = Journal.open(data, boot_id=draw.draw(st.sampled_from([FIRST, SECOND])))
    if again.initialised:
        assert len(again.image.configs) == 2, "all that was flushed is there"
    again.append([DocumentKept(9, "goes on")])
    again.close()


def test_an_unknown_version_is_left_as_it_is(data: Path) -> None:
    begin(data).close()
    header = read_journal((data / JOURNAL).read_bytes()).header
    assert header is not None
    later = header_bytes(header, version=7)
    (data / JOURNAL).write_bytes(later)
    with pytest.raises(UnknownFormatError, match=r"journal is not for this program: it has format version 7"):
        begin(data)
    assert (data / JOURNAL).read_bytes() == later
    with pytest.raises(UnknownFormatError):
        begin(data)


# -- whose it is -------------------------------------------------------------------------------------------


def is_a_strangers(journal: Journal, store: int) -> None:
    assert journal.store != store
    assert not journal.initialised
    assert journal.boot == 2
    assert not journal.image.configs
    assert journal.image.documents == {1: "site: office"}
    assert set(journal.image.tombstones.values()) == {CONFIGS[2]}
    assert "is not this node's own" in journal.notes[0]


def test_a_copied_directory_is_a_strangers(data: Path, tmp_path: Path) -> None:
    journal = written(data)
    journal.flush()
    shutil.copytree(data, tmp_path / "copy")
    twin = Journal.open(tmp_path / "copy", boot_id=FIRST)
    is_a_strangers(twin, journal.store)
    twin.close()
    journal.close()


def test_a_copy_in_the_place_of_the_journal_is_a_strangers(data: Path) -> None:
    journal = written(data)
    store = journal.store
    shutil.copy(data / JOURNAL, data / "backup")
    journal.close()
    os.rename(data / "backup", data / JOURNAL)
    (data / FLUSHED).unlink()
    again = Journal.open(data, boot_id=FIRST)
    is_a_strangers(again, store)
    again.close()


def test_two_processes_cannot_share_a_directory(data: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from comesh.runtime.journal import Journal\n"
        "journal = Journal.open(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(JournalError, match=f"process {other.pid} uses this directory"):
            Journal.open(data)
        other.kill()
    again = Journal.open(data)
    assert again.boot == 2
    again.close()


def test_records_that_a_killed_process_flushed_are_there(data: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from comesh.runtime.journal import Journal\n"
        "from comesh.core.journal import DocumentKept\n"
        "journal = Journal.open(Path(sys.argv[1]))\n"
        "for version in range(1_000_000):\n"
        "    journal.append([DocumentKept(version, 'x' * (version % 5000))]); journal.flush()\n"
        "    print(version, flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(data)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        for _ in range(100):
            writer.stdout.readline()
        writer.kill()
        said = [100 - 1, *(int(line) for line in writer.stdout if line.endswith("\n"))]
    again = Journal.open(data)
    assert not again.power_lost
    assert [*again.image.documents] == [*range(len(again.image.documents))]
    assert len(again.image.documents) > said[-1]
    again.close()

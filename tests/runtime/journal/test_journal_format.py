"""The bytes of a journal: any history comes back, and nothing else does, whatever happens to the file."""

import struct
from zlib import crc32

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from journal_records import HISTORY, folded, histories, shape

from comesh.core.journal import DocumentKept, JournalRecord, PowerLost
from comesh.runtime.journal.format import (
    FORMAT_VERSION,
    FRAME_BYTES,
    EndedClean,
    Frame,
    Header,
    JournalError,
    ProcessBegan,
    State,
    UnknownFormatError,
    frame_bytes,
    frames_bytes,
    header_bytes,
    read_journal,
    records_of,
)
from comesh.runtime.journal.opening import judge
from comesh.runtime.machine import Machine

HEADER = Header(0x1234_5678_9ABC, 99, True, Machine(directory=7), 8, 0, 0)


def file_of(frames: list[Frame], header: Header = HEADER) -> bytes:
    return header_bytes(header) + frames_bytes(frames, header.generation, 0)


def prefixes(history: list[JournalRecord]) -> list[object]:
    return [shape(folded(history[:count])) for count in range(len(history) + 1)]


@given(histories)
def test_every_history_comes_back(history: list[JournalRecord]) -> None:
    reading = read_journal(file_of([*history]))
    assert (reading.state, reading.why) == (State.WHOLE, "")
    assert reading.header == HEADER
    assert shape(reading.image) == shape(folded(history))


@given(histories)
def test_an_image_is_the_same_as_its_records(history: list[JournalRecord]) -> None:
    image = folded(history)
    again = folded([*records_of(image)])
    assert shape(again) == shape(image)
    assert [*records_of(again)] == [*records_of(image)]


@given(histories, st.data())
def test_a_file_that_ends_early_holds_a_prefix(history: list[JournalRecord], data: st.DataObject) -> None:
    whole = file_of([*history])
    body_at = len(header_bytes(HEADER))
    end = data.draw(st.integers(0, len(whole)))
    reading = read_journal(whole[:end])
    if end < body_at:
        assert reading.state is State.DAMAGED
        assert reading.header is None
    else:
        assert reading.state in (State.WHOLE, State.TORN)
        assert shape(reading.image) in prefixes(history)
        assert reading.body_at + reading.body_bytes <= end


def test_every_flipped_bit_is_found() -> None:
    whole = file_of([*HISTORY])
    allowed = prefixes(HISTORY)
    for at in range(len(whole)):
        for bit in range(8):
            spoiled = bytearray(whole)
            spoiled[at] ^= 1 << bit
            reading = read_journal(bytes(spoiled))
            assert reading.state in (State.DAMAGED, State.SPOILED)
            assert shape(reading.image) in allowed


@given(histories, st.data())
def test_what_is_written_over_is_found(history: list[JournalRecord], data: st.DataObject) -> None:
    """Any stretch of the file replaced by anything: at most a prefix is believed."""
    whole = file_of([*history])
    at = data.draw(st.integers(0, len(whole) - 1))
    junk = data.draw(st.binary(min_size=1, max_size=50))
    spoiled = whole[:at] + junk + whole[at + len(junk) :]
    reading = read_journal(spoiled)
    assert shape(reading.image) in prefixes(history)


@settings(max_examples=300)
@given(st.binary(max_size=200), st.booleans())
@example(b"\xff\xc1", True)
@example(b"", False)
def test_any_bytes_can_be_read(junk: bytes, after_header: bool) -> None:
    reading = read_journal(header_bytes(HEADER) + junk if after_header else junk)
    assert shape(reading.image) == shape(folded([]))


@given(st.binary(max_size=40))
def test_records_with_a_good_checksum_and_unknown_content_are_refused_politely(body: bytes) -> None:
    head = struct.pack(">2sII", b"\xff\xc1", len(body), crc32(body, HEADER.generation & 0xFFFFFFFF))
    data = header_bytes(HEADER) + head + struct.pack(">H", crc32(head) & 0xFFFF) + body
    try:
        reading = read_journal(data)
    except UnknownFormatError as wrong:
        assert "this program does not know" in str(wrong)
    else:
        assert reading.header == HEADER


def test_a_flipped_bit_before_other_records_is_damage() -> None:
    head = len(header_bytes(HEADER))
    spoiled = bytearray(file_of([*HISTORY]))
    spoiled[head + FRAME_BYTES + 3] ^= 1
    reading = read_journal(bytes(spoiled))
    assert reading.state is State.DAMAGED
    assert f"bytes {head} to" in reading.why
    assert reading.body_bytes == 0


def test_a_record_in_another_place_or_file_is_none() -> None:
    first, second = (DocumentKept(number, "same length") for number in (1, 2))
    length = len(frame_bytes(first, HEADER.generation, 0))
    swapped = frame_bytes(second, HEADER.generation, length) + frame_bytes(first, HEADER.generation, 0)
    assert shape(read_journal(header_bytes(HEADER) + swapped).image) == shape(folded([]))
    foreign = frame_bytes(first, HEADER.generation + 1, 0)
    assert read_journal(header_bytes(HEADER) + foreign).state is State.SPOILED


def test_an_unknown_version_is_named() -> None:
    later = header_bytes(HEADER, FORMAT_VERSION + 1) + b"whatever it has there"
    with pytest.raises(UnknownFormatError, match=r"version 2, and this program knows 1\. Start the program"):
        read_journal(later)


def test_a_damaged_version_is_damage() -> None:
    spoiled = bytearray(file_of([]))
    spoiled[9] ^= 2
    assert read_journal(bytes(spoiled)).state is State.DAMAGED


def test_marks_of_processes() -> None:
    began = ProcessBegan("boot 1", strict=True)
    assert read_journal(file_of([began, PowerLost()])).began == began
    assert read_journal(file_of([began, EndedClean()])).clean
    assert not read_journal(file_of([began, EndedClean(), began])).clean


def test_a_record_of_a_config_that_is_not_there_is_damage() -> None:
    orphan = HISTORY[3]
    reading = read_journal(file_of([HISTORY[0], orphan]))
    assert reading.state is State.DAMAGED
    assert shape(reading.image) == shape(folded(HISTORY[:1]))


def test_a_record_that_is_too_long_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comesh.runtime.journal.format.MAX_RECORD_BYTES", 100)
    with pytest.raises(JournalError, match="at most 100"):
        frame_bytes(DocumentKept(1, "x" * 101), 1, 0)


def test_the_tags_of_marks_are_not_the_cores() -> None:
    tags = {msgspec.msgpack.decode(msgspec.msgpack.encode(one))[0] for one in HISTORY}
    assert max(tags) < 100


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kernel_boot", ["boot 1", "boot 2"])
def test_nothing_that_was_flushed_is_lost_without_a_word(strict: bool, kernel_boot: str) -> None:
    """Each bit flipped, and each end cut off: it is damage, or only what was not flushed is gone."""
    began = ProcessBegan("boot 1", strict)
    flushed: list[Frame] = [began, *HISTORY[:-2]]
    flushed_bytes = len(file_of(flushed)) - len(header_bytes(HEADER))
    whole = file_of([*flushed, *HISTORY[-2:]])
    here = Machine(kernel_boot=kernel_boot, directory=7)
    allowed = [shape(folded(HISTORY[:count])) for count in range(len(HISTORY) - 2, len(HISTORY))]
    spoiled = [whole[:end] for end in range(len(whole))]
    for at in range(len(whole)):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << at % 8
        spoiled.append(bytes(flipped))
    outcomes: set[bool] = set()
    for data in spoiled:
        found = judge(read_journal(data), flushed_bytes, here, HEADER.inode)
        outcomes.add(bool(found.damage))
        if not found.damage:
            assert shape(found.reading.image) in allowed
            assert found.power_lost is (not strict and (bool(found.cut) or kernel_boot == "boot 2"))
            assert not found.stranger
    assert outcomes == {False, True}

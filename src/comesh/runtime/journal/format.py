"""The bytes of a journal file: a header, then frames, each one record.

    file    "CoMeshJ\\n", version (2 bytes), length (4), CRC-32 of these and the header (4), header
    frame   sync (2 bytes), length (4), CRC-32 of the record (4), half a CRC-32 of these ten (2), record

Numbers are big-endian; header and records are MessagePack. What comes before the header's own bytes stays as
it is in every version, so that a version that is not known here can be named, and told from damage.

The checksum of a record begins from the file's generation and the frame's place: a frame that stands
elsewhere, or in another file, is no frame. CRC-32 finds every flipped bit, every burst up to 32 bits, and all
but one of four thousand million other changes, which is enough against torn writes and worn disks. It is no
protection against somebody who writes to the disk on purpose.

`read_journal` takes any bytes. It raises nothing but UnknownFormatError.
"""

import struct
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from comesh.core.journal import (
    BootRaised,
    ConfigKept,
    DocumentKept,
    Image,
    JournalRecord,
    KeptConfig,
    PowerLost,
    Promised,
    StateTaken,
    Tombstone,
)
from comesh.core.stamps import NO_BALLOT
from comesh.runtime.machine import Machine

FORMAT_VERSION: Final = 1
MAX_RECORD_BYTES: Final = 64 * 1024 * 1024
"""Maximum bytes of one record. A longer one is not written, and a length above this is damage."""
MAX_HEADER_BYTES: Final = 1024 * 1024

_MAGIC: Final = b"CoMeshJ\n"
_SYNC: Final = b"\xff\xc1"
"""Neither byte occurs in text, so that the search for frames after damage has few places to look at."""
_PREFIX: Final = struct.Struct(">8sHI")
_HEAD: Final = struct.Struct(">2sII")
_CHECK: Final = struct.Struct(">H")
_FRAME: Final = struct.Struct(">2sIIH")
_WORD: Final = struct.Struct(">I")
FRAME_BYTES: Final = _FRAME.size
"""Bytes that a frame adds to its record."""


class JournalError(Exception):
    """The journal cannot be opened or written; str() says what is wrong and what to do."""


class UnknownFormatError(JournalError):
    """The file is whole, but of a version that this program does not know."""


class Header(msgspec.Struct, frozen=True, array_like=True):
    """The header of a file; it never changes."""

    generation: int
    """Drawn for each file."""
    store: int
    """Drawn when the journal was created; files that replace each other share it."""
    initialised: bool
    machine: Machine
    """The machine on which the file was written."""
    inode: int
    """Number of the file itself: a copy that is put in its place has another."""
    base: int
    """Bytes of the journal before this file's first frame: positions count on when a file replaces another.
    Negative where the replaced ones were fewer."""
    snapshot_bytes: int
    """Frames that were flushed before the file got its name."""


class _Mark(msgspec.Struct, frozen=True, array_like=True):
    """A record of the runtime itself among the core's, under tags that the core does not use."""


class ProcessBegan(_Mark, frozen=True, tag=101):
    """From here on a process writes that runs in this boot of the kernel. strict: all that it relies on, it
    flushes first, so that a loss of power costs nothing."""

    kernel_boot: str
    strict: bool


class EndedClean(_Mark, frozen=True, tag=102):
    """All before this was flushed, and the process ended. Any record after it revokes it."""


class Filler(_Mark, frozen=True, tag=103):
    """Tries whether the disk takes anything; taken back at once."""

    filler: bytes


Frame = JournalRecord | ProcessBegan | EndedClean | Filler

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Frame).decode
_decode_header = msgspec.msgpack.Decoder(Header).decode


class State(Enum):
    WHOLE = "whole"
    TORN = "torn"
    """A frame was begun and not ended, and that is all: what a write leaves that was cut short."""
    SPOILED = "spoiled"
    """The end is not frames, but no frame follows: the tail that was not flushed when power went, or a
    flipped bit in the last one. Who knows what was flushed can tell."""
    DAMAGED = "damaged"
    """Frames follow what is no frame, or there is no header."""


class Reading(NamedTuple):
    """The contents of a file, up to the first byte that is no frame."""

    state: State
    why: str
    """The reason why the rest is not read; empty: there is none."""
    header: Header | None
    image: Image
    began: ProcessBegan | None
    """The last process that wrote."""
    clean: bool
    """It ended in good order, and nothing came after."""
    body_at: int
    """Position at which the frames begin."""
    body_bytes: int
    """Number of bytes of good frames."""


def header_bytes(header: Header, version: int = FORMAT_VERSION) -> bytes:
    body = _encode(header)
    prefix = _PREFIX.pack(_MAGIC, version, len(body))
    return prefix + _WORD.pack(crc32(body, crc32(prefix))) + body


def frame_bytes(record: Frame, generation: int, at: int) -> bytes:
    """Returns one frame, for this place among the frames of a file."""
    body = _encode(record)
    if len(body) > MAX_RECORD_BYTES:
        raise JournalError(f"a record of {len(body)} bytes: the journal takes at most {MAX_RECORD_BYTES}")
    head = _HEAD.pack(_SYNC, len(body), crc32(body, _seed(generation, at)))
    return head + _CHECK.pack(crc32(head) & 0xFFFF) + body


def frames_bytes(records: Iterable[Frame], generation: int, at: int) -> bytes:
    """Frames in a row, of which the first stands at this place."""
    parts: list[bytes] = []
    for record in records:
        part = frame_bytes(record, generation, at)
        at += len(part)
        parts.append(part)
    return b"".join(parts)


def records_of(image: Image) -> Iterator[JournalRecord]:
    """The fewest records that fold to this image.

    Configs that are not whole come first, then the mark of lost power that makes them so. Configs that are
    not installed are whole in every image, and come after it.
    """
    yield BootRaised(image.boot)
    for version, text in image.documents.items():
        yield DocumentKept(version, text)
    for newest in image.tombstones.values():
        yield Tombstone(newest)
    not_whole = [mark for mark, kept in image.configs.items() if not kept.whole]
    for mark in not_whole:
        yield from _records_of_config(mark, image.configs[mark])
    if not_whole:
        yield PowerLost()
    for mark, kept in image.configs.items():
        if kept.whole:
            yield from _records_of_config(mark, kept)


def _records_of_config(mark: int, kept: KeptConfig) -> Iterator[JournalRecord]:
    yield ConfigKept(kept.config, kept.store, kept.number, tuple(kept.records.values()), kept.installed)
    if kept.accepted != NO_BALLOT:
        yield StateTaken(mark, kept.accepted, kept.number, None)
    if kept.promised != NO_BALLOT:
        yield Promised(mark, kept.promised)


def read_journal(data: bytes) -> Reading:
    """Reads a file as far as possible. UnknownFormatError: it is of another version."""
    header, body_at, why = _read_header(data)
    if header is None:
        return Reading(State.DAMAGED, why, None, Image(), None, clean=False, body_at=0, body_bytes=0)
    image, began, clean = Image(), None, False
    at = body_at
    state, why = State.WHOLE, ""
    while at < len(data):
        body = _frame_at(data, at, body_at, header.generation)
        if body is None:
            state, why = _judge_rest(data, at, body_at, header.generation)
            break
        record = _record(body)
        clean = False
        match record:
            case ProcessBegan():
                began = record
            case EndedClean():
                clean = True
            case Filler():
                pass
            case _:
                try:
                    image.apply(record)
                except KeyError:
                    state, why = State.DAMAGED, f"byte {at}: a record of a config that is not there"
                    break
        at += FRAME_BYTES + len(body)
    return Reading(state, why, header, image, began, clean, body_at, at - body_at)


def _record(body: bytes) -> Frame:
    try:
        record: Frame = _decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as wrong:
        raise UnknownFormatError(
            f"it holds a record that this program does not know ({wrong}). Start the newer one that wrote it"
        ) from wrong
    return record


def _read_header(data: bytes) -> tuple[Header | None, int, str]:
    """The header, where frames begin, and why there is none."""
    start = _PREFIX.size + _WORD.size
    if len(data) < start:
        return None, 0, "it ends before its header does"
    magic, version, length = _PREFIX.unpack_from(data)
    (checksum,) = _WORD.unpack_from(data, _PREFIX.size)
    body = data[start : start + length] if length <= MAX_HEADER_BYTES else b""
    if magic != _MAGIC or len(body) < length or crc32(body, crc32(data[: _PREFIX.size])) != checksum:
        return None, 0, "its header is damaged"
    if version != FORMAT_VERSION:
        raise UnknownFormatError(
            f"it has format version {version}, and this program knows {FORMAT_VERSION}. Start the program "
            "that wrote it, or move the file away to have this node begin anew from what its peers hold"
        )
    try:
        return _decode_header(body), start + length, ""
    except (msgspec.MsgspecError, ValueError) as wrong:
        return None, 0, f"its header cannot be read: {wrong}"


def _seed(generation: int, at: int) -> int:
    return (generation ^ (at * 0x9E3779B1)) & 0xFFFFFFFF


def _head_at(data: bytes, at: int) -> tuple[int, int] | None:
    """The length and the checksum of the record of the frame that begins here; None: none does."""
    if at + FRAME_BYTES > len(data):
        return None
    sync, length, checksum, check = _FRAME.unpack_from(data, at)
    if sync != _SYNC or length > MAX_RECORD_BYTES or crc32(data[at : at + _HEAD.size]) & 0xFFFF != check:
        return None
    return length, checksum


def _frame_at(data: bytes, at: int, body_at: int, generation: int) -> bytes | None:
    """The record that a whole frame at this place holds."""
    head = _head_at(data, at)
    if head is None:
        return None
    length, checksum = head
    body = data[at + FRAME_BYTES : at + FRAME_BYTES + length]
    if len(body) < length or crc32(body, _seed(generation, at - body_at)) != checksum:
        return None
    return body


def _judge_rest(data: bytes, at: int, body_at: int, generation: int) -> tuple[State, str]:
    """Says what the bytes are from the first bad frame on."""
    after = data.find(_SYNC, at + 1)
    while after >= 0:
        if _frame_at(data, after, body_at, generation) is not None:
            return State.DAMAGED, f"bytes {at} to {after} are damaged"
        after = data.find(_SYNC, after + 1)
    rest = len(data) - at
    head = _head_at(data, at)
    begun = _SYNC.startswith(data[at : at + 2]) or data.startswith(_SYNC, at)
    if begun and rest < FRAME_BYTES + (0 if head is None else head[0]):
        return State.TORN, f"the last {rest} bytes are the beginning of a record"
    return State.SPOILED, f"the last {rest} bytes are no records"

"""What a process saw and did, as a file that checkers read later (`comesh.lab`): one node or device process
each, with all its lives one after the other.

A recording is a stream of MessagePack values `[at_us, who, what]`, each after its length: at_us by this
machine's CLOCK_BOOTTIME, which all processes on one machine share, so that the recordings of a mesh on one
machine merge into one history by time. Written unbuffered: what was recorded survives the process.

Rules for whoever records, so that in the merged history a cause comes before what it causes:
- a line is stamped when what it tells is done, and written before any later effect of the same step is;
- Wrote comes after the record is in the journal, and before anything is sent that rests on it;
- Committed and LeaderChanged come before the commands and messages that follow from them, and a command's
  `sent_ms` is read from this clock when it is sent, not when its step began;
- a device stamps `Acted.at_ms`, `began_ms` and `sent_ms` by the same clock, in milliseconds.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from comesh.core.effects import (
    Answered,
    CommitKnown,
    Committed,
    DeviceChanged,
    LeaderChanged,
    MemberChanged,
    RunTraced,
)
from comesh.core.journal import JournalRecord
from comesh.drivers.virtual.devices import Acted, Pressed


class Began(msgspec.Struct, frozen=True, tag="began"):
    """A process of a node started, from a journal with this store."""

    boot: int
    store: int
    initialised: bool
    power_lost: bool
    pid: int
    at_byte: int | None = None
    """How long the journal was when it was found: records after that are gone. None: not known, so that all
    of it is there, or, after a power loss, what was flushed."""


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The process ends by itself."""

    why: str


class Wrote(msgspec.Struct, frozen=True, tag="wrote"):
    """To the journal, of which nothing after `at_byte` exists yet. Bytes count from when the journal was
    created, whatever snapshots shorten."""

    record: bytes
    """A JournalRecord, as MessagePack."""
    at_byte: int


class Flushed(msgspec.Struct, frozen=True, tag="flushed"):
    """The journal is on the disk up to there."""

    to_byte: int


class Told(msgspec.Struct, frozen=True, tag="told"):
    """An observation of the core, as MessagePack, and which."""

    kind: str
    observation: bytes


class DeviceActed(msgspec.Struct, frozen=True, tag="acted"):
    acted: Acted


class DevicePressed(msgspec.Struct, frozen=True, tag="pressed"):
    pressed: Pressed


class Disturbed(msgspec.Struct, frozen=True, tag="disturbed"):
    """Whoever runs the mesh did this to it, just now; `ends`: these nodes' processes are no more."""

    what: str
    nodes: tuple[str, ...] = ()
    ends: bool = False
    kept_bytes: dict[str, int] = {}
    """Of journals that were cut: how much was left, by node."""


What = Began | Ended | Wrote | Flushed | Told | DeviceActed | DevicePressed | Disturbed
Observed = MemberChanged | LeaderChanged | Committed | CommitKnown | DeviceChanged | RunTraced | Answered
OBSERVED: dict[str, type] = {
    one.__name__: one
    for one in (MemberChanged, LeaderChanged, Committed, CommitKnown, DeviceChanged, RunTraced, Answered)
}


class Line(msgspec.Struct, frozen=True, array_like=True):
    at_us: int
    who: str
    """A node, or the device process."""
    what: What


_encode = msgspec.msgpack.Encoder().encode
_decode_line = msgspec.msgpack.Decoder(Line).decode
_decoders: dict[str, msgspec.msgpack.Decoder[Observed]] = {
    name: msgspec.msgpack.Decoder(kind) for name, kind in OBSERVED.items()
}
_record_decoder = msgspec.msgpack.Decoder(JournalRecord)


def told(observation: Observed) -> Told:
    return Told(type(observation).__name__, _encode(observation))


def observation_of(line: Told) -> Observed:
    found: Observed = _decoders[line.kind].decode(line.observation)
    return found


def encode_record(record: JournalRecord) -> bytes:
    return _encode(record)


def record_of(line: Wrote) -> JournalRecord:
    found: JournalRecord = _record_decoder.decode(line.record)
    return found


class RecordingError(Exception):
    """A recording cannot be written or read; str() says which, where and what to do."""


class Recorder:
    """Appends to a file."""

    def __init__(self, path: Path, who: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._path = path
        self._who = who

    def write(self, at_us: int, what: What) -> None:
        line = _encode(Line(at_us, self._who, what))
        framed = len(line).to_bytes(4, "big") + line
        written = os.write(self._file, framed)
        if written != len(framed):
            self._take_back(written)

    def _take_back(self, written: int) -> None:
        """Half a line would hide what comes after it."""
        os.ftruncate(self._file, os.fstat(self._file).st_size - written)
        raise RecordingError(f"{self._path}: no room for another line; give it a disk with more room")

    def close(self) -> None:
        os.close(self._file)


def read(path: Path) -> Iterator[Line]:
    """A process that was killed may have left half a line at the end: it is left out."""
    with path.open("rb") as file:
        yield from (line for line, _ in _lines(file, path, 0))


def read_from(path: Path, at_byte: int) -> tuple[list[Line], int]:
    """The whole lines from there on, and where the next one will begin: of a recording that grows."""
    with path.open("rb") as file:
        file.seek(at_byte)
        found = list(_lines(file, path, at_byte))
    return [line for line, _ in found], found[-1][1] if found else at_byte


def _lines(file: BinaryIO, path: Path, at_byte: int) -> Iterator[tuple[Line, int]]:
    """Each with where it ends."""
    while len(header := file.read(4)) == 4:
        length = int.from_bytes(header, "big")
        body = file.read(length)
        if len(body) < length:
            return
        try:
            line = _decode_line(body)
        except (msgspec.DecodeError, msgspec.ValidationError) as wrong:
            what = f"{path}: the line at byte {at_byte} cannot be read ({wrong})"
            raise RecordingError(f"{what}; record again with this version of comesh") from wrong
        at_byte += 4 + length
        yield line, at_byte

"""What a process saw and did, as a file that checkers read later (`comesh.lab`): one node or device process
each.

A recording is a stream of MessagePack values `[at_us, who, what]`, each after its length: at_us by this
machine's CLOCK_BOOTTIME, which all processes on one machine share, so that the recordings of a mesh on one
machine merge into one history by time. Written unbuffered: what was recorded survives the process.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from comesh.core.effects import (
    Answered,
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


class Wrote(msgspec.Struct, frozen=True, tag="wrote"):
    """To the journal, of which nothing after `at_byte` exists yet."""

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


What = Began | Wrote | Flushed | Told | DeviceActed | DevicePressed
Observed = MemberChanged | LeaderChanged | Committed | DeviceChanged | RunTraced | Answered
OBSERVED: dict[str, type] = {
    one.__name__: one for one in (MemberChanged, LeaderChanged, Committed, DeviceChanged, RunTraced, Answered)
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


def record_of(line: Wrote) -> JournalRecord:
    found: JournalRecord = _record_decoder.decode(line.record)
    return found


class Recorder:
    """Appends to a file."""

    def __init__(self, path: Path, who: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._who = who

    def write(self, at_us: int, what: What) -> None:
        line = _encode(Line(at_us, self._who, what))
        os.write(self._file, len(line).to_bytes(4, "big") + line)

    def close(self) -> None:
        os.close(self._file)


def read(path: Path) -> Iterator[Line]:
    """A process that was killed may have left half a line at the end: it is left out."""
    with path.open("rb") as file:
        yield from _lines(file)


def _lines(file: BinaryIO) -> Iterator[Line]:
    while len(header := file.read(4)) == 4:
        body = file.read(int.from_bytes(header, "big"))
        if len(body) < int.from_bytes(header, "big"):
            return
        yield _decode_line(body)

"""Journal files that are damaged, and such as are whole by their checksums and still say nonsense."""

import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import msgspec
from drawing import draw, kind_of
from mutating import any_bytes, changed_bytes, changed_tree

from comesh.core.group.config import Config, Seat
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.journal import (
    Appended,
    BootRaised,
    ConfigDropped,
    ConfigKept,
    DocumentKept,
    PowerLost,
    Promised,
    StateTaken,
    Tombstone,
)
from comesh.core.records import DeviceRecord, Gone, GroupRecord, Status
from comesh.core.stamps import Ballot
from comesh.runtime.journal import Journal
from comesh.runtime.journal.files import JOURNAL
from comesh.runtime.journal.format import (
    EndedClean,
    Frame,
    Header,
    JournalError,
    ProcessBegan,
    Reading,
    State,
    UnknownFormatError,
    frames_bytes,
    header_bytes,
    read_journal,
    records_of,
)
from comesh.runtime.journal.opening import judge
from comesh.runtime.machine import Machine, this_machine

HERE: Final = Machine(directory=7, kernel_boot="boot 1")
GENERATION: Final = 9
HEADER: Final = Header(GENERATION, 5, True, HERE, 3, 0, 0)
_CONFIG: Final = Config(GroupId("c1"), 1, 0, (Seat(NodeId("n1"), 0), Seat(NodeId("n2"), 17)), 1000, 1)
_BALLOT: Final = Ballot(1, 0)
_LAMP: Final = DeviceRecord(DeviceId("lamp"), Status.UP)
HISTORY: Final[tuple[Frame, ...]] = (
    BootRaised(1),
    ProcessBegan("boot 1", False),
    DocumentKept(1, "site: office"),
    ConfigKept(_CONFIG, 5, 0, (GroupRecord(),), True),
    Promised(_CONFIG.mark, _BALLOT),
    Appended(_CONFIG.mark, _BALLOT, 1, (_LAMP,)),
    StateTaken(_CONFIG.mark, _BALLOT, 2, (_LAMP, GroupRecord())),
    Appended(_CONFIG.mark, _BALLOT, 3, (Gone("device/lamp"),)),
    PowerLost(),
    Tombstone(_CONFIG),
    ConfigDropped(_CONFIG.mark),
    EndedClean(),
)
FILE: Final = header_bytes(HEADER) + frames_bytes(HISTORY, GENERATION, 0)
OPEN_EVERY: Final = 0x3F
"""Of the files one in so many (by its checksum) is also opened on a disk as a node opens it."""
_encode = msgspec.msgpack.Encoder().encode


def make_journal(chance: random.Random) -> bytes:
    way = chance.random()
    if way < 0.05:
        return any_bytes(chance, FILE[: chance.choice((0, 8, 18, 60))])
    if way < 0.4:
        return changed_bytes(FILE, chance, FILE)
    if way < 0.45:
        return _header(changed_tree(msgspec.to_builtins(HEADER), chance)) + frames_bytes(
            HISTORY, GENERATION, 0
        )
    records: list[Any] = [
        msgspec.msgpack.decode(_encode(one)) if chance.random() < 0.7 else draw(kind_of(Frame), chance)
        for one in chance.choices(HISTORY, k=chance.randrange(1, 5))
    ]
    if chance.random() < 0.7:
        records.insert(0, msgspec.msgpack.decode(_encode(HISTORY[3])))
    if chance.random() < 0.8:
        at = chance.randrange(len(records))
        records[at] = changed_tree(records[at], chance)
    return header_bytes(HEADER) + frames_bytes(records, GENERATION, 0)


def _header(tree: Any) -> bytes:
    """With a checksum that is right."""
    body = _encode(tree)
    prefix = header_bytes(HEADER)[:10] + len(body).to_bytes(4, "big")
    return prefix + crc32(body, crc32(prefix)).to_bytes(4, "big") + body


def take_journal(data: bytes) -> str:
    if crc32(data) & OPEN_EVERY == 0:
        _open(data)
    try:
        reading = read_journal(data)
    except UnknownFormatError as refused:
        assert str(refused)
        return "refused: unknown format"
    assert (reading.state is State.WHOLE) == (not reading.why)
    assert reading.body_at + reading.body_bytes <= len(data)
    if reading.header is not None:
        _reads_again(reading, data)
        for flushed_bytes in (0, reading.body_bytes, len(data)):
            found = judge(reading, flushed_bytes, HERE, 3)
            assert not (found.damage and found.stranger)
            assert reading.state is not State.DAMAGED or found.damage
    return f"read: {reading.state.value}"


def _reads_again(reading: Reading, data: bytes) -> None:
    """What was good is good by itself, and what it says can be written as a snapshot."""
    assert reading.header is not None
    good = read_journal(data[: reading.body_at + reading.body_bytes])
    assert good.state is State.WHOLE
    snapshot = header_bytes(reading.header) + frames_bytes(
        records_of(reading.image), reading.header.generation, 0
    )
    again = read_journal(snapshot)
    assert again.state is State.WHOLE, again.why
    assert again.image.documents == reading.image.documents
    assert again.image.configs.keys() == reading.image.configs.keys()


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="comesh-garbled-", dir=memory if memory.is_dir() else None)


def _open(data: bytes) -> None:
    """As a node does: the journal goes on, or is set aside, or is refused by name and left alone."""
    directory = Path(_scratch().name)
    for path in directory.iterdir():
        path.unlink()
    path = directory / JOURNAL
    path.touch()
    usual = header_bytes(HEADER)
    if data.startswith(usual):  # as if it had been written here: else it is a stranger's, whatever it says
        here = this_machine(directory, "boot 1")
        own = msgspec.structs.replace(HEADER, machine=here, inode=path.stat().st_ino)
        data = header_bytes(own) + data[len(usual) :]
    path.write_bytes(data)
    try:
        journal = Journal.open(directory, boot_id="boot 1")
    except JournalError as refused:
        assert str(refused)
        assert path.read_bytes() == data
        return
    journal.append([BootRaised(journal.boot)])
    journal.close()
    again = Journal.open(directory, boot_id="boot 1")
    assert again.boot == journal.boot + 1
    again.close()

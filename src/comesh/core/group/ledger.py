"""The replicated state of one config at one member: records, the number of the last entry, and a digest.

The digest is the sum over all records of a hash of each, so that it follows changes at the cost of what
changed, and only when somebody asks for it. Two members with one number and one digest hold one state.

The ring keeps the last entries, so that who missed a few can be sent those instead of everything; and what
each of them replaced, so that a message need only say what changed: most changes of a record leave most of it
as it was. Such a patch is the new record, deflated with the old one as its dictionary, after a check sum of
the new one. A member that accepts entries in order holds the same old record as the leader that sends the
patch. Should it ever not, the sum says so, and it asks for the whole state.
"""

import zlib
from collections import deque
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

import msgspec

from comesh.core.records import Changed, Entry, Gone, Record, SaidEntry

RING_ENTRIES: Final = 256
MAX_BYTES: Final = 262_144
"""A member that is behind by more is sent the whole state."""
FEW_ENTRIES: Final = 8
"""So many are sent without looking at their size: the size of a record is bounded."""
MAX_PATCHED_BYTES: Final = 4096
"""Maximum size of a record that is patched, which is what deflate can look back to; others are said whole."""
SUM_BYTES: Final = 4
_WINDOW_BITS: Final = -12
_LEVEL: Final = 9
_MEMORY: Final = 5

DIGEST_MASK = (1 << 63) - 1

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


def record_hash(record: Record) -> int:
    return int.from_bytes(blake2b(_encode(record), digest_size=8).digest(), "little") & DIGEST_MASK


class _Kept:
    """An entry, and the records that it took the place of."""

    __slots__ = ("_said", "before", "entry")

    def __init__(self, entry: Entry, before: tuple[Record | None, ...]) -> None:
        self.entry = entry
        self.before = before
        self._said: SaidEntry | None = None

    @property
    def said(self) -> SaidEntry:
        """As it is sent."""
        if self._said is None:
            self._said = said(self.entry, self.before)
        return self._said


class Ledger:
    __slots__ = ("_changed", "_digest", "_hashes", "_ring", "number", "records")

    def __init__(self, records: Mapping[str, Record], number: int) -> None:
        self.records: dict[str, Record] = dict(records)
        self.number = number
        self._ring: deque[_Kept] = deque(maxlen=RING_ENTRIES)
        self._hashes: dict[str, int] = {}
        self._digest = 0
        self._changed: dict[str, None] = dict.fromkeys(self.records)

    @property
    def digest(self) -> int:
        for key in self._changed:
            record = self.records.get(key)
            new = 0 if record is None else record_hash(record)
            self._digest = (self._digest - self._hashes.pop(key, 0) + new) & DIGEST_MASK
            if record is not None:
                self._hashes[key] = new
        self._changed.clear()
        return self._digest

    def append(self, entry: Entry) -> None:
        """Put the records of the next entry in."""
        records, before = self.records, []
        for record in entry:
            key = record.key
            before.append(records.get(key))
            if isinstance(record, Gone):
                records.pop(key, None)
            else:
                records[key] = record
            self._changed[key] = None
        self.number += 1
        self._ring.append(_Kept(entry, tuple(before)))

    def follow(self, entry: SaidEntry) -> Entry | None:
        """Put in what the next entry says, and return it whole; None: it does not follow from this state."""
        found = whole(entry, self.records)
        if found is not None:
            self.append(found)
        return found

    def replace(self, records: Iterable[Record], number: int) -> None:
        """Another state takes the place of this one; entries before it are not known."""
        self.records = {record.key: record for record in records}
        self.number = number
        self._ring.clear()
        self._hashes.clear()
        self._digest = 0
        self._changed = dict.fromkeys(self.records)

    def since(self, number: int) -> tuple[Entry, ...] | None:
        """The entries after that number, or None where the ring does not reach back."""
        missing = self._missing(number)
        return None if missing is None else tuple([self._ring[at].entry for at in missing])

    def said_since(self, number: int) -> tuple[SaidEntry, ...] | None:
        """The same for a message; None also where they are too much for one."""
        missing = self._missing(number)
        if missing is None:
            return None
        entries = tuple([self._ring[at].said for at in missing])
        return None if len(missing) > FEW_ENTRIES and len(_encode(entries)) > MAX_BYTES else entries

    def _missing(self, number: int) -> range | None:
        """Where in the ring the entries after that number are; None: it does not reach back."""
        count = self.number - number
        return range(-count, 0) if 0 <= count <= len(self._ring) else None

    def snapshot(self) -> tuple[Record, ...]:
        return tuple(self.records.values())


# -- patches -----------------------------------------------------------------------------------------------


def said(entry: Entry, before: tuple[Record | None, ...]) -> SaidEntry:
    """An entry as it is sent; before: the records that its own take the place of, None for new ones."""
    return tuple([_patched(old, new) for old, new in zip(before, entry, strict=True)])


def _patched(old: Record | None, new: Record) -> Record | Changed:
    if old is None or isinstance(new, Gone):
        return new
    base, data = _encode(old), _encode(new)
    if len(base) > MAX_PATCHED_BYTES or len(data) > MAX_PATCHED_BYTES:
        return new
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY, zlib.Z_FIXED, base)
    changed = Changed(new.key, _sum(data) + deflate.compress(data) + deflate.flush())
    return changed if len(changed.key) + len(changed.patch) < len(data) else new


def whole(entry: SaidEntry, records: Mapping[str, Record]) -> Entry | None:
    """The entry that was said, for who holds these records; None: it does not follow from them."""
    found: list[Record] = []
    for one in entry:
        record = _mended(records.get(one.key), one) if isinstance(one, Changed) else one
        if record is None:
            return None
        found.append(record)
    return tuple(found)


def _mended(old: Record | None, changed: Changed) -> Record | None:
    if old is None:
        return None
    inflate = zlib.decompressobj(_WINDOW_BITS, _encode(old))
    try:
        data = inflate.decompress(changed.patch[SUM_BYTES:], MAX_PATCHED_BYTES)
        if not inflate.eof or _sum(data) != changed.patch[:SUM_BYTES]:
            return None
        record = _decoder.decode(data)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return record if record.key == changed.key else None


def _sum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(SUM_BYTES, "big")

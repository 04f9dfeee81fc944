"""The replicated state of one config at one member: records, the number of the last entry, and a digest.

The digest is the sum over all records of a hash of each, so that it follows changes at the cost of what
changed, and only when somebody asks for it. Two members with one number and one digest hold one state.

The ring keeps the last entries, so that who missed a few can be sent those instead of everything.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from hashlib import blake2b

import msgspec

from comesh.core.records import Entry, Gone, Record

RING_ENTRIES = 256
MOST_BYTES = 262_144
"""Who is behind by more is sent the whole state."""
FEW_ENTRIES = 8
"""So many are sent without looking at their size: the size of a record is bounded."""

DIGEST_MASK = (1 << 63) - 1

_encode = msgspec.msgpack.Encoder().encode


def record_hash(record: Record) -> int:
    return int.from_bytes(blake2b(_encode(record), digest_size=8).digest(), "little") & DIGEST_MASK


class Ledger:
    __slots__ = ("_changed", "_digest", "_hashes", "_ring", "number", "records")

    def __init__(self, records: Mapping[str, Record], number: int) -> None:
        self.records: dict[str, Record] = dict(records)
        self.number = number
        self._ring: deque[Entry] = deque(maxlen=RING_ENTRIES)
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
        for record in entry:
            if isinstance(record, Gone):
                self.records.pop(record.gone, None)
            else:
                self.records[record.key] = record
            self._changed[record.key] = None
        self.number += 1
        self._ring.append(entry)

    def replace(self, records: Iterable[Record], number: int) -> None:
        """Another state takes the place of this one; entries before it are not known."""
        self.records = {record.key: record for record in records}
        self.number = number
        self._ring.clear()
        self._hashes.clear()
        self._digest = 0
        self._changed = dict.fromkeys(self.records)

    def since(self, number: int) -> tuple[Entry, ...] | None:
        """The entries after that number, or None where the ring does not reach back, or they are too much for
        one message."""
        missing = self.number - number
        if not 0 <= missing <= len(self._ring):
            return None
        ring = self._ring
        entries = tuple([ring[at] for at in range(-missing, 0)])
        return None if missing > FEW_ENTRIES and len(_encode(entries)) > MOST_BYTES else entries

    def snapshot(self) -> tuple[Record, ...]:
        return tuple(self.records.values())

"""A record as what differs from the one before it: most changes of a record leave most of it as it was.

A patch is the new record, deflated with the old one as its dictionary, after a check sum of the new one. Who
accepts entries in order holds the same old record as the leader that sends it. Should it ever not, the sum
says so, and it asks for the whole state.
"""

import zlib
from collections.abc import Mapping
from typing import Final

import msgspec

from comesh.core.records import Changed, Entry, Gone, Record, SaidEntry

MAX_BYTES: Final = 4096
"""Of the old record and the new one: longer ones are said whole. What deflate can look back to."""
SUM_BYTES: Final = 4
_WINDOW_BITS: Final = -12
_LEVEL: Final = 9
_MEMORY: Final = 5

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


def said(entry: Entry, before: tuple[Record | None, ...]) -> SaidEntry:
    """An entry as it is sent; before: the records that its own take the place of, None for new ones."""
    return tuple([_patched(old, new) for old, new in zip(before, entry, strict=True)])


def _patched(old: Record | None, new: Record) -> Record | Changed:
    if old is None or isinstance(new, Gone):
        return new
    base, data = _encode(old), _encode(new)
    if len(base) > MAX_BYTES or len(data) > MAX_BYTES:
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
        data = inflate.decompress(changed.patch[SUM_BYTES:], MAX_BYTES)
        if not inflate.eof or _sum(data) != changed.patch[:SUM_BYTES]:
            return None
        record = _decoder.decode(data)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return record if record.key == changed.key else None


def _sum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(SUM_BYTES, "big")

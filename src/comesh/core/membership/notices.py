"""Opaque payloads that reach every node: device status, installed configs, deployment versions.

A notice has a key, a version and bytes; the higher version of a key stays, of equal ones the greater
bytes. What the bytes mean is their owner's affair. The board's digest joins that of the table, so that an
exchange brings what was missed.
"""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b

from comesh.core.draws import mix64
from comesh.core.messages import Notice
from comesh.core.selection.hashing import id_hash

QUIET = "~"
"""A key that begins so can wait: its notice rides on messages that are sent anyway, and is never gossiped by
itself. What can be asked for, such as who leads a group, is like that."""
MAX_NOTICES = 65_536
MAX_VERSION = (1 << 63) - 1
MAX_VALUE_BYTES = 1024
MAX_KEY_CHARACTERS = 128

_WORD = (1 << 64) - 1


def is_quiet(key: str) -> bool:
    return key.startswith(QUIET)


class Board:
    __slots__ = ("_notices", "digest")

    def __init__(self) -> None:
        self._notices: dict[str, Notice] = {}
        self.digest = 0

    def __iter__(self) -> Iterator[Notice]:
        return iter(self._notices.values())

    def get(self, key: str) -> Notice | None:
        return self._notices.get(key)

    def is_news(self, notice: Notice) -> bool:
        known = self._notices.get(notice.key)
        if known is None:
            return True
        if known is notice or known.version > notice.version:
            return False
        return (notice.version, notice.value) > (known.version, known.value)

    def why_not(self, notice: Notice) -> str | None:
        """What is wrong with a notice, or None."""
        if not 0 <= notice.version <= MAX_VERSION:
            return f"notice {notice.key!r} has version {notice.version}, not one from 0 to {MAX_VERSION}"
        if len(notice.key) > MAX_KEY_CHARACTERS:
            return f"a notice's key has {len(notice.key)} characters, more than {MAX_KEY_CHARACTERS}"
        if len(notice.value) > MAX_VALUE_BYTES:
            return f"notice {notice.key!r} has {len(notice.value)} bytes, more than {MAX_VALUE_BYTES}"
        if notice.key not in self._notices and len(self._notices) >= MAX_NOTICES:
            return f"there are {MAX_NOTICES} notices already"
        return None

    def put(self, notice: Notice) -> None:
        known = self._notices.get(notice.key)
        if known is not None:
            self.digest = (self.digest - _summand(known)) & _WORD
        self._notices[notice.key] = notice
        self.digest = (self.digest + _summand(notice)) & _WORD


@lru_cache(maxsize=4096)
def _summand(notice: Notice) -> int:
    value = int.from_bytes(blake2b(notice.value, digest_size=8).digest(), "little")
    return mix64(id_hash("notice", notice.key) ^ mix64(notice.version ^ mix64(value)))

"""Opaque payloads that reach every node: device status, installed configs, deployment versions.

An announcement has a key, a version and bytes; the higher version of a key stays, of equal ones the greater
bytes. What the bytes mean is their owner's affair. The board's digest joins that of the table, so that an
exchange brings what was missed.
"""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b

from comesh.core.draws import mix64
from comesh.core.messages import Announcement
from comesh.core.selection.hashing import id_hash

QUIET = "~"
"""Prefix of keys whose announcements can wait: they ride on messages that are sent anyway and cause none of
their own. What can be asked for, such as who leads a group, is announced so."""
MAX_ANNOUNCEMENTS = 65_536
MAX_VERSION = (1 << 63) - 1
MAX_VALUE_BYTES = 1024
MAX_KEY_CHARACTERS = 128

_WORD = (1 << 64) - 1


def is_quiet(key: str) -> bool:
    return key.startswith(QUIET)


class Board:
    __slots__ = ("_announcements", "digest")

    def __init__(self) -> None:
        self._announcements: dict[str, Announcement] = {}
        self.digest = 0

    def __iter__(self) -> Iterator[Announcement]:
        return iter(self._announcements.values())

    def get(self, key: str) -> Announcement | None:
        return self._announcements.get(key)

    def is_news(self, announcement: Announcement) -> bool:
        known = self._announcements.get(announcement.key)
        if known is None:
            return True
        if known is announcement or known.version > announcement.version:
            return False
        return (announcement.version, announcement.value) > (known.version, known.value)

    def why_not(self, new: Announcement) -> str | None:
        """Says what is wrong with an announcement, or None."""
        if not 0 <= new.version <= MAX_VERSION:
            return f"announcement {new.key!r} has version {new.version}, not one from 0 to {MAX_VERSION}"
        if len(new.key) > MAX_KEY_CHARACTERS:
            return f"an announcement's key has {len(new.key)} characters, more than {MAX_KEY_CHARACTERS}"
        if len(new.value) > MAX_VALUE_BYTES:
            return f"announcement {new.key!r} has {len(new.value)} bytes, more than {MAX_VALUE_BYTES}"
        if new.key not in self._announcements and len(self._announcements) >= MAX_ANNOUNCEMENTS:
            return f"there are {MAX_ANNOUNCEMENTS} announcements already"
        return None

    def put(self, announcement: Announcement) -> None:
        known = self._announcements.get(announcement.key)
        if known is not None:
            self.digest = (self.digest - _summand(known)) & _WORD
        self._announcements[announcement.key] = announcement
        self.digest = (self.digest + _summand(announcement)) & _WORD


@lru_cache(maxsize=4096)
def _summand(announcement: Announcement) -> int:
    value = int.from_bytes(blake2b(announcement.value, digest_size=8).digest(), "little")
    return mix64(id_hash("announcement", announcement.key) ^ mix64(announcement.version ^ mix64(value)))

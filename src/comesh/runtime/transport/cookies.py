"""Proof that a stranger receives at the address it sends from, without keeping anything about it.

A cookie is a keyed hash of the address and what the stranger chose. The key changes every minute; the key
before is still good, so a cookie lives one to two minutes.
"""

import hmac
import secrets
from typing import Any, Final

from comesh.runtime.transport.packets import COOKIE_BYTES

ROTATE_MS: Final = 60_000.0


class Cookies:
    def __init__(self) -> None:
        self._number = 0
        self._keys = (secrets.token_bytes(32), secrets.token_bytes(32))
        self._rotated_ms = float("-inf")

    def bake(self, address: tuple[Any, ...], nonce: bytes, session: bytes, now_ms: float) -> bytes:
        self._rotate(now_ms)
        return self._cookie(self._number, address, nonce, session)

    def is_ours(
        self, cookie: bytes, address: tuple[Any, ...], nonce: bytes, session: bytes, now_ms: float
    ) -> bool:
        self._rotate(now_ms)
        if len(cookie) != COOKIE_BYTES or cookie[0] not in (self._number, (self._number - 1) & 0xFF):
            return False
        return hmac.compare_digest(cookie, self._cookie(cookie[0], address, nonce, session))

    def _rotate(self, now_ms: float) -> None:
        if now_ms - self._rotated_ms < ROTATE_MS:
            return
        self._rotated_ms = now_ms
        self._number = (self._number + 1) & 0xFF
        self._keys = (secrets.token_bytes(32), self._keys[0])

    def _cookie(self, number: int, address: tuple[Any, ...], nonce: bytes, session: bytes) -> bytes:
        key = self._keys[(self._number - number) & 0xFF]
        where = f"{address[0]} {address[1]}".encode()
        return bytes((number,)) + hmac.digest(key, nonce + session + where, "sha256")[: COOKIE_BYTES - 1]

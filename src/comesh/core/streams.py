"""Randomness by concern: one stream of draws each, all from one seed.

A stream depends on the seed and its own name only. So a new concern, or one that draws more often,
leaves every other stream as it was: switching loss on does not change where devices stand.
"""

from hashlib import blake2b

from comesh.core.draws import Draws


def stream(seed: int, concern: str) -> Draws:
    """The draws of one concern."""
    salt = int.from_bytes(blake2b(concern.encode(), digest_size=8).digest(), "big")
    return Draws(seed).fork(salt)

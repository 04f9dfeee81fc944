"""Hash(epoch, S, D): who comes first, without a message (paper, sections 3.1 and 3.4).

Rules:
- an id is hashed once: the 64 bits of BLAKE2b-64 over `kind:id` in UTF-8, read little-endian, where kind
  is `node`, `device`, `routine`, `group` or `draw`, so that a node and a device of one name differ;
- words are chained: the state begins at 0, and each word w makes it mix64(state XOR w);
- Hash(epoch, S, D) is the chain of (seed, epoch, id of D, id of S): all but the last word are the same
  for one group in one epoch, so that 4,000 nodes cost one pass over an array;
- lower comes first; of equal hashes the lower id comes first (arrays are sorted by id, sorts are stable).
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from comesh.core.draws import mix64

Words: TypeAlias = npt.NDArray[np.uint64]

WORD_MASK = (1 << 64) - 1
_FEW = 64
"""How many of the lowest hashes are sorted at first; a group hardly ever needs more."""


def id_hash(kind: str, name: str) -> int:
    """The word that stands for an id."""
    return int.from_bytes(blake2b(f"{kind}:{name}".encode(), digest_size=8).digest(), "little")


def id_hashes(kind: str, names: list[str]) -> Words:
    return np.array([id_hash(kind, name) for name in names], dtype=np.uint64)


def chain(*words: int) -> int:
    """Words mixed one after the other into one."""
    return chain_on(0, *words)


def chain_on(key: int, *words: int) -> int:
    """The same, where key is the chain of the words before."""
    for word in words:
        key = mix64(key ^ (word & WORD_MASK))
    return key


def chain_each(key: int, words: Words) -> Words:
    """For each word w what chain(..., w) would be, where key is the chain of those before it."""
    mixed = words ^ np.uint64(key)
    mixed += np.uint64(0x9E3779B97F4A7C15)
    shifted = mixed >> np.uint64(30)
    mixed ^= shifted
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    np.right_shift(mixed, np.uint64(27), out=shifted)
    mixed ^= shifted
    mixed *= np.uint64(0x94D049BB133111EB)
    np.right_shift(mixed, np.uint64(31), out=shifted)
    mixed ^= shifted
    return mixed


def lowest_first(hashes: Words) -> Iterator[int]:
    """Positions from the lowest hash to the highest; sorts no more than what is asked for."""
    count = len(hashes)
    if count <= 2 * _FEW:
        yield from np.argsort(hashes, kind="stable").tolist()
        return
    below = hashes < np.uint64(((1 << 64) // count) * _FEW)
    few = np.flatnonzero(below)
    yield from few[np.argsort(hashes[few], kind="stable")].tolist()
    rest = np.flatnonzero(~below)
    yield from rest[np.argsort(hashes[rest], kind="stable")].tolist()


def lowest(hashes: Words) -> int:
    """The position of the lowest hash."""
    return int(np.argmin(hashes))

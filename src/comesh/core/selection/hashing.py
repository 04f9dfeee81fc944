"""Hash(epoch, S, D): who comes first, without a message (paper, sections 3.1 and 3.4).

Rules:
- an id is hashed once: the 64 bits of BLAKE2b-64 over `kind:id` in UTF-8, read little-endian, where kind
  is `node`, `device`, `routine`, `group` or `draw`, so that a node and a device of one name differ;
- words are chained: the state begins at 0, and each word w makes it mix64(state XOR w);
- Hash(epoch, S, D) is the chain of (seed, epoch, id of D, id of S): all but the last word are the same
  for one group in one epoch, so that many nodes cost one pass (`Arithmetic.chain_each`);
- lower comes first; of equal hashes the lower id comes first (rows are sorted by id, sorts are stable).
"""

from hashlib import blake2b

from comesh.core.draws import mix64

WORD_MASK = (1 << 64) - 1


def id_hash(kind: str, name: str) -> int:
    """The word that stands for an id."""
    return int.from_bytes(blake2b(f"{kind}:{name}".encode(), digest_size=8).digest(), "little")


def chain(*words: int) -> int:
    """Words mixed one after the other into one."""
    return chain_on(0, *words)


def chain_on(key: int, *words: int) -> int:
    """The same, where key is the chain of the words before."""
    for word in words:
        key = mix64(key ^ (word & WORD_MASK))
    return key

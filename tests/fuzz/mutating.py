"""How good input is made bad: in its structure, and in its bytes. Everything is drawn from the given chance,
so that a case is a function of its number."""

import random
from typing import Any

ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    255,
    1 << 31,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
    -(1 << 63),
    0.5,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
    "",
    "n1",
    "x" * 300,
    "\0",
    "\u202e",
    b"",
    b"\xff" * 40,
    [],
    [[]],
    {},
    {"": None},
    {"on": [1]},
)
BYTES = (0x00, 0x01, 0x7F, 0x80, 0x90, 0x9F, 0xC0, 0xC1, 0xC6, 0xCB, 0xCF, 0xD9, 0xDC, 0xDD, 0xDF, 0xFE, 0xFF)
"""Those that mean something to a decoder: ends of ranges, and heads of long things in MessagePack."""
LENGTHS = (b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff", b"\x00\x10\x00\x00")


def changed_tree(tree: Any, chance: random.Random) -> Any:
    """One place of it is something else, or is missing, or is there twice."""
    if not isinstance(tree, list | dict) or not tree or chance.random() < 0.15:
        return _odd(chance)
    if isinstance(tree, dict):
        key = chance.choice(list(tree))
        if chance.random() < 0.2:
            return {
                **{k: v for k, v in tree.items() if k != key},
                chance.choice(("", "x", key)): _odd(chance),
            }
        return {**tree, key: changed_tree(tree[key], chance)}
    at = chance.randrange(len(tree))
    what = chance.random()
    if what < 0.1:
        return tree[:at] + tree[at + 1 :]
    if what < 0.2:
        return tree[: at + 1] + tree[at:]
    if what < 0.25:
        return [*tree, _odd(chance)]
    return [*tree[:at], changed_tree(tree[at], chance), *tree[at + 1 :]]


def _odd(chance: random.Random) -> Any:
    if chance.random() < 0.02:
        return nested(chance.choice((10, 100, 900)))
    return chance.choice(ODD)


def nested(depth: int) -> Any:
    tree: Any = []
    for _ in range(depth):
        tree = [tree]
    return tree


def changed_bytes(data: bytes, chance: random.Random, other: bytes = b"") -> bytes:
    """A few places are changed, cut, put in, repeated, or taken from something else."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(found) + 1)
        match chance.randrange(9):
            case 0:
                del found[at:]
            case 1:
                del found[at : at + chance.randrange(1, 9)]
            case 2:
                found[at:at] = chance.randbytes(chance.randrange(1, 9))
            case 3:
                found[at : at + 4] = chance.choice(LENGTHS)
            case 4:
                found[at:at] = found[at : at + chance.randrange(1, 33)]
            case 5 if other:
                begin = chance.randrange(len(other))
                found[at:] = other[begin:]
            case 6 if at < len(found):
                found[at] ^= 1 << chance.randrange(8)
            case _ if at < len(found):
                found[at] = chance.choice(BYTES) if chance.random() < 0.5 else chance.randrange(256)
            case _:
                pass
    return bytes(found)


def any_bytes(chance: random.Random, first: bytes = b"") -> bytes:
    return first + chance.randbytes(chance.choice((0, 1, 2, 3, 9, 40, 200)))

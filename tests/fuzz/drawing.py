"""Valid content of any type that msgspec decodes, drawn from the type itself: every kind of message is there,
also those that are added later.

What is drawn are the plain values that stand in the bytes (lists for structs that are arrays, with their tag
in front), so that they can be changed before they are encoded.
"""

import random
from functools import cache
from typing import Any

from msgspec import inspect

from comesh.queries.node_reads import AnyRead

WORDS = ("n1", "n2", "lamp", "door", "c1", "night", "on", "set", "")
MAX_ITEMS = 3
DEEPEST = 6
"""Below that, what can be short is."""


@cache
def kind_of(of: Any) -> inspect.Type:
    return inspect.type_info(of)


def draw(of: inspect.Type, chance: random.Random, depth: int = 0) -> Any:
    match of:
        case inspect.UnionType():
            return draw(chance.choice(of.types), chance, depth)
        case inspect.StructType():
            return _struct(of, chance, depth)
        case inspect.VarTupleType() | inspect.ListType():
            return [draw(of.item_type, chance, depth + 1) for _ in range(_count(chance, depth))]
        case inspect.TupleType():
            return [draw(one, chance, depth + 1) for one in of.item_types]
        case inspect.DictType():
            return {
                draw(of.key_type, chance, depth + 1): draw(of.value_type, chance, depth + 1)
                for _ in range(_count(chance, depth))
            }
        case inspect.RawType():
            return draw(kind_of(AnyRead), chance, depth + 1)
        case inspect.EnumType():
            return chance.choice([one.value for one in of.cls])
        case _:
            return _plain(of, chance)


def _count(chance: random.Random, depth: int) -> int:
    return 0 if depth > DEEPEST else chance.randrange(MAX_ITEMS)


def _struct(of: inspect.StructType, chance: random.Random, depth: int) -> Any:
    values = [draw(field.type, chance, depth + 1) for field in of.fields]
    if not of.array_like:
        named = dict(zip((field.encode_name for field in of.fields), values, strict=True))
        return named if of.tag is None else {str(of.tag_field): of.tag} | named
    return values if of.tag is None else [of.tag, *values]


def _plain(of: inspect.Type, chance: random.Random) -> Any:
    match of:
        case inspect.IntType():
            low = -5 if of.ge is None else of.ge
            return low + (chance.randrange(9) if chance.random() < 0.8 else chance.getrandbits(40))
        case inspect.FloatType():
            return float(chance.choice((0, 1, 1.5, 2_000)))
        case inspect.BoolType():
            return chance.random() < 0.5
        case inspect.StrType():
            return chance.choice(WORDS)
        case inspect.BytesType():
            return chance.randbytes(chance.randrange(8))
        case inspect.NoneType():
            return None
        case _:
            raise TypeError(f"{of} is not among the types of messages yet: add it to {__file__}")

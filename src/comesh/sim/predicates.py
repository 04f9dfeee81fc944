"""Trigger clauses built in code, for workloads without a document: comparisons joined by and, or.

Unknown (None) is as in the document's clauses: false and unknown is false, true or unknown is true.
"""

import operator
from collections.abc import Callable, Mapping

import msgspec

from comesh.core.program import Predicate, ReadingName
from comesh.core.values import Value

RELATIONS: dict[str, Callable[[Value, Value], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
}


class Comparison(msgspec.Struct, frozen=True):
    name: ReadingName
    sign: str
    value: Value

    @property
    def reads(self) -> frozenset[ReadingName]:
        return frozenset((self.name,))

    def evaluate(self, values: Mapping[ReadingName, Value | None]) -> bool | None:
        value = values.get(self.name)
        return None if value is None else RELATIONS[self.sign](value, self.value)


class Joined(msgspec.Struct, frozen=True):
    """Two clauses joined by and, or by or."""

    both: bool
    left: Predicate
    right: Predicate

    @property
    def reads(self) -> frozenset[ReadingName]:
        return self.left.reads | self.right.reads

    def evaluate(self, values: Mapping[ReadingName, Value | None]) -> bool | None:
        truths = (self.left.evaluate(values), self.right.evaluate(values))
        if (not self.both) in truths:
            return not self.both
        return None if None in truths else self.both

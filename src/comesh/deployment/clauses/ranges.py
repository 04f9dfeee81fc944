"""Conditions that can never be true, or are always: what a clause leaves of the values of each reading.

Looks at comparisons of a reading with a constant, one by one against the reading's own type, and then
all that are joined by && together. Everything else is taken to be possible. It finds the slips that pass
every other check: a night that is written with && (`now.time >= "18:00" && now.time < "07:00"`), a limit
that the sensor cannot reach.
"""

import math
from collections.abc import Iterator

import msgspec

from comesh.deployment.clauses.parser import (
    Binary,
    Call,
    Conditional,
    Expression,
    Literal,
    OneOf,
    Reading,
    Unary,
)
from comesh.deployment.clauses.vocabulary import CLOCK, CLOCK_TIME, ReadingName, Readings
from comesh.deployment.values import Kind, ValueType

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_LAST_MINUTE = 24 * 60 - 1


class Doubt(msgspec.Struct, frozen=True):
    """A part of a clause whose truth does not depend on anything."""

    offset: int
    what: str
    fix: str = ""


class _Span(msgspec.Struct, frozen=True):
    """The numbers from low to high; of whole numbers, both are possible themselves."""

    low: float
    high: float
    whole: bool
    low_open: bool = False
    high_open: bool = False

    @property
    def empty(self) -> bool:
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))

    def above(self, limit: float, itself: bool) -> "_Span":
        if self.whole:
            limit = math.ceil(limit) if itself else math.floor(limit) + 1
            return msgspec.structs.replace(self, low=max(self.low, limit))
        if limit > self.low or (limit == self.low and not itself):
            return msgspec.structs.replace(self, low=limit, low_open=not itself)
        return self

    def below(self, limit: float, itself: bool) -> "_Span":
        if self.whole:
            limit = math.floor(limit) if itself else math.ceil(limit) - 1
            return msgspec.structs.replace(self, high=min(self.high, limit))
        if limit < self.high or (limit == self.high and not itself):
            return msgspec.structs.replace(self, high=limit, high_open=not itself)
        return self

    def compared(self, sign: str, limit: float) -> "_Span":
        match sign:
            case "<" | "<=":
                return self.below(limit, sign == "<=")
            case ">" | ">=":
                return self.above(limit, sign == ">=")
            case "==":
                return self.above(limit, True).below(limit, True)
            case _:
                return self


_Words = frozenset[str | bool]
_Left = _Span | _Words


class _Fact(msgspec.Struct, frozen=True):
    """A comparison of one reading with constants."""

    offset: int
    name: ReadingName
    comparisons: tuple[tuple[str, str | float | bool], ...]
    """Sign and constant; of several, one has to hold."""


def doubts(tree: Expression, readings: Readings) -> list[Doubt]:
    """Yields the parts of a checked clause that are never or always true."""
    return list(_doubts(tree, readings))


def _doubts(tree: Expression, readings: Readings) -> Iterator[Doubt]:
    parts = list(_joined(tree))
    left: dict[ReadingName, _Left] = {}
    impossible: set[ReadingName] = set()
    for part in parts:
        fact = _fact(part)
        if fact is None:
            for inner in _children(part):
                yield from _doubts(inner, readings)
            continue
        type_ = readings.get(fact.name[0], {}).get(fact.name[1])
        whole = _all_values(fact.name, type_)
        if whole is None or not _fits(fact, type_):
            continue
        kept = _narrowed(whole, fact)
        shown = f"{fact.name[0]}.{fact.name[1]}"
        if _is_empty(kept):
            impossible.add(fact.name)
            yield Doubt(fact.offset, f"this can never be true: {shown} is {_describe(fact.name, type_)}")
        elif _always(whole, kept, fact):
            yield Doubt(fact.offset, f"this is always true: {shown} is {_describe(fact.name, type_)}")
        before = left.get(fact.name, whole)
        left[fact.name] = _narrowed(before, fact)
        if fact.name not in impossible and not _is_empty(before) and _is_empty(left[fact.name]):
            yield Doubt(fact.offset, f"this can never be true together with what is before it about {shown}",
                        _advice(fact))  # fmt: skip


def _joined(tree: Expression) -> Iterator[Expression]:
    """The parts of a chain of &&."""
    if isinstance(tree, Binary) and tree.sign == "&&":
        yield from _joined(tree.left)
        yield from _joined(tree.right)
    else:
        yield tree


def _children(tree: Expression) -> tuple[Expression, ...]:
    match tree:
        case Unary():
            return (tree.operand,)
        case Binary():
            return tree.left, tree.right
        case Conditional():
            return tree.condition, tree.then, tree.otherwise
        case OneOf():
            return tree.item, *tree.items
        case Call():
            return tree.arguments
        case _:
            return ()


def _fact(tree: Expression) -> _Fact | None:
    signs: tuple[str, ...]
    match tree:
        case Reading():
            return _Fact(tree.at, (tree.device, tree.reading), (("==", True),))
        case Unary(sign="!", operand=Reading() as reading):
            return _Fact(tree.at, (reading.device, reading.reading), (("==", False),))
        case Binary(sign=sign, left=Reading() as reading, right=other) if sign in _MIRRORED:
            constants, signs = _constants((other,)), (sign,)
        case Binary(sign=sign, left=other, right=Reading() as reading) if sign in _MIRRORED:
            constants, signs = _constants((other,)), (_MIRRORED[sign],)
        case OneOf(item=Reading() as reading, items=others):
            constants, signs = _constants(others), ("==",) * len(others)
        case _:
            return None
    if constants is None:
        return None
    return _Fact(tree.at, (reading.device, reading.reading), tuple(zip(signs, constants, strict=True)))


def _constants(trees: tuple[Expression, ...]) -> list[str | float | bool] | None:
    found: list[str | float | bool] = []
    for tree in trees:
        match tree:
            case Literal():
                found.append(tree.value)
            case Unary(sign="-", operand=Literal(value=int() | float() as value)):
                found.append(-value)
            case _:
                return None
    return found


def _all_values(name: ReadingName, type_: ValueType | None) -> _Left | None:
    """Returns all values that a reading can have; None: any."""
    if name == CLOCK:
        return _Span(0, _LAST_MINUTE, True)
    match type_.kind if type_ is not None else None:
        case Kind.BOOL:
            return frozenset({True, False})
        case Kind.CHOICE if type_ is not None:
            return frozenset(type_.values or ())
        case Kind.INT | Kind.FLOAT as kind if type_ is not None:
            low, high = type_.range or (-math.inf, math.inf)
            if kind is Kind.INT and type_.range is not None:
                low, high = math.ceil(low), math.floor(high)
            return _Span(low, high, kind is Kind.INT)
        case _:
            return None


def _fits(fact: _Fact, type_: ValueType | None) -> bool:
    """The constants are of the reading's kind: a bare reading of any kind was taken as `== true`."""
    if fact.name == CLOCK:
        return all(CLOCK_TIME.fullmatch(str(constant)) for _, constant in fact.comparisons)
    truths = [isinstance(constant, bool) for _, constant in fact.comparisons]
    return type_ is not None and all(truth == (type_.kind is Kind.BOOL) for truth in truths)


def _narrowed(values: _Left, fact: _Fact) -> _Left:
    if isinstance(values, _Span):
        spans = [
            values.compared(sign, _minutes(constant) if fact.name == CLOCK else float(constant))
            for sign, constant in fact.comparisons
        ]
        possible = [span for span in spans if not span.empty]
        if not possible:
            return spans[0]
        low = min(possible, key=lambda span: (span.low, span.low_open))
        high = max(possible, key=lambda span: (span.high, not span.high_open))
        return msgspec.structs.replace(low, high=high.high, high_open=high.high_open)
    return frozenset(
        value
        for value in values
        if any((value == constant) == (sign == "==") for sign, constant in fact.comparisons)
    )


def _minutes(constant: str | float | bool) -> float:
    text = str(constant)
    return int(text[:2]) * 60 + int(text[3:])


def _is_empty(values: _Left) -> bool:
    return values.empty if isinstance(values, _Span) else not values


def _always(whole: _Left, kept: _Left, fact: _Fact) -> bool:
    if whole != kept:
        return False
    if not isinstance(whole, _Span):
        return True
    [sign, constant] = fact.comparisons[0]
    if len(fact.comparisons) > 1 or sign == "==":
        return False
    limit = _minutes(constant) if fact.name == CLOCK else float(constant)
    return sign != "!=" or whole.compared("==", limit).empty


def _describe(name: ReadingName, type_: ValueType | None) -> str:
    return "a time from 00:00 to 23:59" if name == CLOCK or type_ is None else type_.describe()


def _advice(fact: _Fact) -> str:
    if fact.name == CLOCK:
        return 'a time over midnight is written with ||: now.time >= "18:00" || now.time < "07:00"'
    return "write || where one of them is enough"

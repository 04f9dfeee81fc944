"""The operators and functions of clauses: what each takes, gives and computes, in one row.

A row computes known values only, and never raises: None says that the result is unknown. Whole numbers have
64 bits; floats are those of IEEE 754. `lifted` makes a row work on values that may be unknown.
"""

import math
import operator
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from comesh.core.values import Value
from comesh.deployment.clauses.vocabulary import ReadingName
from comesh.deployment.values import INT_MAX, INT_MIN, Kind

Values = Mapping[ReadingName, Value | None]
Evaluate = Callable[[Values], Any]
"""A part of a clause, ready to be evaluated. The type checker has seen to what goes in and out."""
Compute = Callable[..., Value | None]


class Family(StrEnum):
    """Kinds that can be compared with each other."""

    TRUTH = "true or false"
    NUMBER = "numbers"
    TEXT = "texts"

    @classmethod
    def of(cls, kind: Kind) -> "Family":
        match kind:
            case Kind.BOOL:
                return cls.TRUTH
            case Kind.INT | Kind.FLOAT:
                return cls.NUMBER
            case Kind.TEXT | Kind.CHOICE:
                return cls.TEXT


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """An operator or a function. Of its numbers either all are whole or all are floats."""

    takes: tuple[Family, ...]
    gives: Kind | None = None
    """None: a number of the kind that it is given."""
    compute: Compute
    floats: Compute | None = None
    """The function that computes floats, where that differs."""
    whole_only: bool = False


def _whole(compute: Callable[[int, int], int]) -> Compute:
    def within_64_bits(one: int, other: int) -> int | None:
        number = compute(one, other)
        return number if INT_MIN <= number <= INT_MAX else None

    return within_64_bits


def _quotient(one: int, other: int) -> int | None:
    """Rounded towards zero."""
    if other == 0:
        return None
    quotient = one // other if (one < 0) == (other < 0) else -(-one // other)
    return quotient if quotient <= INT_MAX else None


def _remainder(one: int, other: int) -> int | None:
    """Returns the remainder of the quotient, with the sign of `one`."""
    quotient = _quotient(one, other)
    return None if quotient is None else one - quotient * other


def _float_quotient(one: float, other: float) -> float:
    if other:
        return one / other
    if one == 0 or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1.0, other)


def _negative(number: int) -> int | None:
    return None if number == INT_MIN else -number


def _absolute(number: int) -> int:
    """The lowest whole number has no positive twin and becomes the highest."""
    return min(abs(number), INT_MAX)


def _less(one: Any, other: Any) -> bool | None:
    """Compares two numbers. A result that is not a number (0.0 / 0.0) is neither less nor not less."""
    return True if one < other else False if one >= other else None


def _not_more(one: Any, other: Any) -> bool | None:
    return True if one <= other else False if one > other else None


def _more(one: Any, other: Any) -> bool | None:
    return True if one > other else False if one <= other else None


def _not_less(one: Any, other: Any) -> bool | None:
    return True if one >= other else False if one < other else None


_TWO_NUMBERS = (Family.NUMBER, Family.NUMBER)
_TWO_TEXTS = (Family.TEXT, Family.TEXT)

SIGNS: dict[str, Operation] = {
    "+": Operation(takes=_TWO_NUMBERS, compute=_whole(operator.add), floats=operator.add),
    "-": Operation(takes=_TWO_NUMBERS, compute=_whole(operator.sub), floats=operator.sub),
    "*": Operation(takes=_TWO_NUMBERS, compute=_whole(operator.mul), floats=operator.mul),
    "/": Operation(takes=_TWO_NUMBERS, compute=_quotient, floats=_float_quotient),
    "%": Operation(takes=_TWO_NUMBERS, compute=_remainder, whole_only=True),
}
PREFIXES: dict[str, Operation] = {
    "!": Operation(takes=(Family.TRUTH,), gives=Kind.BOOL, compute=operator.not_),
    "-": Operation(takes=(Family.NUMBER,), compute=_negative, floats=operator.neg),
}
RELATIONS: dict[str, Compute] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": _less,
    "<=": _not_more,
    ">": _more,
    ">=": _not_less,
}
"""They compare like with like of any family."""
FUNCTIONS: dict[str, Operation] = {
    "abs": Operation(takes=(Family.NUMBER,), compute=_absolute, floats=abs),
    "min": Operation(takes=_TWO_NUMBERS, compute=min),
    "max": Operation(takes=_TWO_NUMBERS, compute=max),
}
METHODS: dict[str, Operation] = {
    "contains": Operation(takes=_TWO_TEXTS, gives=Kind.BOOL, compute=operator.contains),
    "startsWith": Operation(takes=_TWO_TEXTS, gives=Kind.BOOL, compute=str.startswith),
    "endsWith": Operation(takes=_TWO_TEXTS, gives=Kind.BOOL, compute=str.endswith),
}
"""Functions that are written behind their first argument, which is a text: `lamp.mode.contains("x")`."""


def lifted(compute: Compute, arguments: tuple[Evaluate, ...]) -> Evaluate:
    """Computes where all arguments are known; unknown otherwise."""
    match arguments:
        case (only,):

            def one(values: Values) -> Value | None:
                return None if (value := only(values)) is None else compute(value)

            return one
        case (left, right):

            def two(values: Values) -> Value | None:
                if (first := left(values)) is None or (second := right(values)) is None:
                    return None
                return compute(first, second)

            return two
        case _:

            def several(values: Values) -> Value | None:
                known = [argument(values) for argument in arguments]
                return None if None in known else compute(*known)

            return several


def with_constant(compute: Compute, part: Evaluate, constant: Value) -> Evaluate:
    """Like lifted, for a part and a constant: what most comparisons are."""

    def run(values: Values) -> Value | None:
        return None if (value := part(values)) is None else compute(value, constant)

    return run


def joined(decisive: bool, left: Evaluate, right: Evaluate) -> Evaluate:
    """`||` where true is decisive, `&&` where false is: on either side it makes the other one not matter."""

    def run(values: Values) -> bool | None:
        first: bool | None = left(values)
        if first is decisive:
            return decisive
        second: bool | None = right(values)
        if second is decisive:
            return decisive
        return None if first is None or second is None else not decisive

    return run


def conditional(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    """`condition ? then : otherwise`; what is not chosen may be unknown."""

    def run(values: Values) -> Value | None:
        chosen = condition(values)
        if chosen is None:
            return None
        return then(values) if chosen else otherwise(values)  # type: ignore[no-any-return]

    return run


def one_of(item: Evaluate, listed: tuple[Evaluate, ...]) -> Evaluate:
    """`item in [listed]`; unknown if anything is, as the list is made before it is searched."""

    def run(values: Values) -> bool | None:
        wanted = item(values)
        known = [part(values) for part in listed]
        if wanted is None or None in known:
            return None
        return any(wanted == value for value in known)

    return run


def one_of_constants(item: Evaluate, listed: frozenset[Value]) -> Evaluate:
    """Tests membership in a list that never changes."""

    def run(values: Values) -> bool | None:
        return None if (wanted := item(values)) is None else wanted in listed

    return run

"""Trigger clauses: compiled once, checked against the readings they name, evaluated to true, false, unknown.

Unknown (None) follows CEL: `false && unknown` is false, `true || unknown` is true, everything else that
needs an unknown is unknown. A reading that is missing, stale, not finite or not of its type is unknown,
and so is what divides a whole number by zero, leaves 64 bits, or puts 0.0 / 0.0 in order.
"""

import math
from collections.abc import Callable, Mapping

import msgspec

from comesh.core.values import Value
from comesh.deployment.cel_engine import Compiled, Context, compile_cel
from comesh.deployment.clause_parser import ClauseError, Reading, parse
from comesh.deployment.clause_types import (
    NOW,
    SUN,
    UP,
    Checker,
    ReadingName,
    Readings,
)
from comesh.deployment.id_names import BUILT_IN
from comesh.deployment.values import INT_MAX, INT_MIN, Kind, ValueType


class WrongClauseError(ValueError):
    """A clause that cannot be used; mistakes has all of them."""

    def __init__(self, mistakes: list[ClauseError]) -> None:
        super().__init__("; ".join(mistake.what for mistake in mistakes))
        self.mistakes = mistakes


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled clause: a deterministic predicate over the readings in reads."""

    source: str
    reads: frozenset[ReadingName]
    _program: Compiled
    _variables: tuple[tuple[ReadingName, str, ValueType], ...]
    _functions: bool

    @property
    def devices(self) -> frozenset[str]:
        """The devices that it reads."""
        return frozenset(device for device, _ in self.reads if device not in BUILT_IN)

    @property
    def needs_time(self) -> bool:
        """It can change with no reading changing."""
        return any(device in BUILT_IN for device, _ in self.reads)

    def evaluate(self, values: Mapping[ReadingName, Value | None]) -> bool | None:
        """Its truth for these readings; None is unknown."""
        known: dict[str, Value] = {}
        for name, variable, type_ in self._variables:
            value = _usable(type_, values.get(name))
            if value is not None:
                known[variable] = value
        context = Context(variables=known, functions=_FUNCTIONS) if self._functions else known
        try:
            return bool(self._program.execute(context))
        except (ArithmeticError, LookupError, RuntimeError, ValueError, TypeError):
            # TypeError: the types were checked, but CEL also answers so when NaN (0.0 / 0.0) is put in order.
            return None


def vocabulary(devices: Readings, *, sun: bool) -> Readings:
    """What clauses can name: the readings of all devices, whether each is up, the time, the sun."""
    known: dict[str, Mapping[str, ValueType | None]] = {
        device: {**readings, "up": UP} for device, readings in devices.items()
    }
    known["now"] = NOW
    if sun:
        known["sun"] = SUN
    return known


def compile_clause(source: str, readings: Readings) -> Clause:
    """Check and compile a clause that is true or false. Raises WrongClauseError with all mistakes."""
    return _compile(source, readings, bare=False)


def compile_event_clause(source: str, readings: Readings) -> Clause:
    """Like compile_clause, but a bare reading of any kind will do: it is true for every event."""
    return _compile(source, readings, bare=True)


def _compile(source: str, readings: Readings, *, bare: bool) -> Clause:
    try:
        tree = parse(source)
    except ClauseError as wrong:
        raise WrongClauseError([wrong]) from None
    checker = Checker(readings)
    checked = checker.check(tree)
    text = checked.text
    if not checker.mistakes and checked.kind not in (Kind.BOOL, None):
        if bare and isinstance(tree, Reading):
            text = f"{text} == {text}"
        else:
            what = f"the clause is {checked.describe()}, not true or false"
            checker.mistakes.append(ClauseError(0, what, "compare it with something"))
    if checker.mistakes:
        raise WrongClauseError(checker.mistakes)
    variables = [
        ((device, reading), variable, type_)
        for (device, reading), variable in checker.variables.items()
        if (type_ := readings[device][reading]) is not None
    ]
    return Clause(
        source=source,
        reads=frozenset(checker.variables),
        _program=compile_cel(text),
        _variables=tuple(variables),
        _functions=any(f"{name}(" in text for name in _FUNCTIONS),
    )


def _usable(type_: ValueType, value: Value | None) -> Value | None:
    """The value as CEL is to see it, or None where it is not of its type. Ranges are not enforced here."""
    match type_.kind, value:
        case Kind.BOOL, bool():
            return value
        case ((Kind.INT | Kind.FLOAT), bool()):
            return None
        case Kind.INT, int() if INT_MIN <= value <= INT_MAX:
            return value
        case Kind.FLOAT, int() if INT_MIN <= value <= INT_MAX:
            return float(value)
        case Kind.FLOAT, float() if math.isfinite(value):
            return value
        case Kind.TEXT, str():
            return value
        case Kind.CHOICE, str() if type_.values is not None and value in type_.values:
            return value
        case _:
            return None


def _absolute(number: float) -> float:
    """Within 64 bits: the lowest whole number has no positive twin and becomes the highest."""
    return min(abs(number), INT_MAX) if isinstance(number, int) else abs(number)


_FUNCTIONS: dict[str, Callable[..., float]] = {"abs": _absolute, "min": min, "max": max}

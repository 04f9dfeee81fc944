"""Compiles clauses: checks that each part fits the next, and makes the functions that evaluate them.

Whole numbers and floats are never mixed, as in the Common Expression Language; people do it all the time
(`temp > 26`), so a whole number that meets a float becomes one. A part whose operands never change is
computed once.
"""

import math
import re
from collections.abc import Mapping

import msgspec

from comesh.core.values import Value
from comesh.deployment.clauses.operations import (
    FUNCTIONS,
    METHODS,
    PREFIXES,
    RELATIONS,
    SIGNS,
    Compute,
    Evaluate,
    Family,
    Operation,
    Values,
    conditional,
    joined,
    lifted,
    one_of,
    one_of_constants,
    with_constant,
)
from comesh.deployment.clauses.parser import (
    Binary,
    Call,
    ClauseError,
    Conditional,
    Expression,
    Literal,
    OneOf,
    Reading,
    Unary,
    parse,
)
from comesh.deployment.clauses.vocabulary import CLOCK, CLOCK_TIME, ReadingName, Readings
from comesh.deployment.id_names import BUILT_IN, is_id, legal_names
from comesh.deployment.problems import did_you_mean, quote, shorten
from comesh.deployment.values import INT_MAX, INT_MIN, Kind, ValueType

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_TRUTH = {
    **dict.fromkeys(("true", "on", "yes"), "true"),
    **dict.fromkeys(("false", "off", "no"), "false"),
}


class WrongClauseError(ValueError):
    """A clause that cannot be used; mistakes has all of them."""

    def __init__(self, mistakes: list[ClauseError]) -> None:
        super().__init__("; ".join(mistake.what for mistake in mistakes))
        self.mistakes = mistakes


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled clause: a deterministic predicate over the readings in reads."""

    source: str
    reads: frozenset[ReadingName]
    _run: Evaluate

    @property
    def devices(self) -> frozenset[str]:
        """The devices that it reads."""
        return frozenset(device for device, _ in self.reads if device not in BUILT_IN)

    def evaluate(self, values: Mapping[ReadingName, Value | None]) -> bool | None:
        """Its truth for these readings; None is unknown."""
        return self._run(values)  # type: ignore[no-any-return]


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
    compiler = _Compiler(readings)
    part = compiler.part(tree)
    run = part.run
    if not compiler.mistakes and part.kind not in (Kind.BOOL, None):
        if bare and isinstance(tree, Reading):
            run = lifted(_is_there, (run,))
        else:
            what = f"the clause is {part.describe()}, not true or false"
            compiler.mistakes.append(ClauseError(0, what, "compare it with something"))
    if compiler.mistakes:
        raise WrongClauseError(compiler.mistakes)
    return Clause(source=source, reads=frozenset(compiler.reads), _run=run)


def _is_there(_: Value) -> bool:
    return True


def _unknown(_: Values) -> None:
    return None


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled part: kind None is a part that is wrong already, which is not complained about again."""

    kind: Kind | None
    run: Evaluate = _unknown
    constant: bool = False
    """It reads nothing."""
    values: tuple[str, ...] | None = None
    clock: bool = False
    literal: str | None = None
    """The word, where it is a text literal."""
    number: int | float | None = None
    """The number, where it is a literal."""

    @property
    def family(self) -> Family | None:
        return None if self.kind is None else Family.of(self.kind)

    def describe(self) -> str:
        match self.family:
            case Family.TRUTH:
                return "a bool"
            case Family.NUMBER:
                return "a number"
            case _:
                return "text"


_WRONG = _Part(kind=None)


class _Compiler:
    """Compiles one clause; mistakes collects everything that is wrong with it."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self.mistakes: list[ClauseError] = []
        self.reads: set[ReadingName] = set()

    def part(self, tree: Expression) -> _Part:
        match tree:
            case Literal():
                return _literal(tree.value)
            case Reading():
                return self._reading(tree)
            case Unary():
                return self._unary(tree)
            case Binary():
                return self._binary(tree)
            case Conditional():
                return self._conditional(tree)
            case OneOf():
                return self._one_of(tree)
            case Call():
                return self._call(tree)
            case _:
                raise AssertionError(f"a clause has no part of type {type(tree).__name__}")

    def _wrong(self, at: int, what: str, fix: str = "") -> _Part:
        self.mistakes.append(ClauseError(at, what, fix))
        return _WRONG

    def _reading(self, tree: Reading) -> _Part:
        known = self._readings.get(tree.device)
        if known is None:
            return self._wrong(tree.at, f"unknown device {quote(tree.device)}", self._likely(tree.device))
        if not tree.reading:
            first = next(iter(known), "up")
            return self._wrong(
                tree.at,
                f"{quote(tree.device)} alone is not a value",
                f"say which reading: {tree.device}.{first}",
            )
        if tree.reading not in known:
            what = f"{quote(tree.device)} has no reading {quote(tree.reading)}"
            return self._wrong(tree.reading_at, what, did_you_mean(tree.reading, filter(is_id, known)))
        type_ = known[tree.reading]
        name = (tree.device, tree.reading)
        self.reads.add(name)
        if type_ is None:
            return _WRONG
        return _Part(kind=type_.kind, run=_reading(name, type_), values=type_.values, clock=name == CLOCK)

    def _likely(self, device: str) -> str:
        """now and sun may be misspelled too, but are no devices."""
        names = legal_names(list(self._readings))
        likely = did_you_mean(device, names)
        devices = [name for name in names if name not in BUILT_IN]
        return likely if likely.endswith("?") else did_you_mean(device, devices)

    def _pair(self, left: Expression, right: Expression) -> tuple[_Part, _Part]:
        """Both sides of a comparison; a bare word beside a text was meant as a text."""
        if self._bare(left) and not self._bare(right):
            second = self.part(right)
            return self._word(left, second), second
        first = self.part(left)
        return first, self._word(right, first)

    def _bare(self, tree: Expression) -> bool:
        return isinstance(tree, Reading) and not tree.reading

    def _word(self, tree: Expression, other: _Part) -> _Part:
        if not isinstance(tree, Reading) or tree.reading:
            return self.part(tree)
        word = tree.device
        if other.family is Family.TEXT and (word not in self._readings or word in (other.values or ())):
            near = other.values is not None and word not in other.values
            fix = did_you_mean(word, other.values or ()) if near else f'write "{shorten(word)}"'
            return self._wrong(tree.at, f"the text {quote(word)} needs quotes", fix)
        if other.kind is Kind.BOOL and word.lower() in _TRUTH:
            return self._wrong(
                tree.at, f"{quote(word)} is not true or false", f"write {_TRUTH[word.lower()]}"
            )
        return self.part(tree)

    def _unary(self, tree: Unary) -> _Part:
        operand = self.part(tree.operand)
        return self._operation(tree.at, f"'{tree.sign}'", PREFIXES[tree.sign], operand)

    def _operation(self, at: int, who: str, operation: Operation, *parts: _Part) -> _Part:
        fine = [self._is(part, at, who, family) for part, family in zip(parts, operation.takes, strict=True)]
        if not all(fine):
            return _WRONG
        if Family.NUMBER not in operation.takes:
            return _made(operation.gives, operation.compute, *parts)
        parts = _alike(parts)
        kind = operation.gives or parts[0].kind
        if parts[0].kind is Kind.INT:
            return _made(kind, operation.compute, *parts)
        if operation.whole_only:
            return self._wrong(at, f"{who} is for whole numbers")
        return _made(kind, operation.floats or operation.compute, *parts)

    def _is(self, part: _Part, at: int, who: str, family: Family) -> bool:
        if part.kind is None:
            return False
        if part.family is not family:
            self._wrong(at, f"{who} is for {family}, not for {part.describe()}")
            return False
        return True

    def _binary(self, tree: Binary) -> _Part:
        if tree.sign in RELATIONS:
            return self._comparison(tree, *self._pair(tree.left, tree.right))
        left, right = self.part(tree.left), self.part(tree.right)
        if tree.sign in SIGNS:
            return self._operation(tree.at, f"'{tree.sign}'", SIGNS[tree.sign], left, right)
        fine = [self._is(part, tree.at, f"'{tree.sign}'", Family.TRUTH) for part in (left, right)]
        if not all(fine):
            return _WRONG
        return _Part(
            kind=Kind.BOOL,
            run=joined(tree.sign == "||", left.run, right.run),
            constant=left.constant and right.constant,
        )

    def _comparison(self, tree: Binary, left: _Part, right: _Part) -> _Part:
        if not self._comparable(tree.at, left, right):
            return _WRONG
        if tree.sign not in ("==", "!=") and (
            left.family is Family.TRUTH or Kind.CHOICE in (left.kind, right.kind)
        ):
            return self._wrong(tree.at, f"'{tree.sign}' is for numbers and times", "compare with == or !=")
        left, right = _alike((left, right))
        return _made(Kind.BOOL, RELATIONS[tree.sign], left, right)

    def _comparable(self, at: int, left: _Part, right: _Part) -> bool:
        if left.kind is None or right.kind is None:
            return False
        if left.family is not right.family:
            fix = _like_with_like(left, right) or _like_with_like(right, left)
            self._wrong(at, f"{left.describe()} is compared with {right.describe()}", fix)
            return False
        for one, other in ((left, right), (right, left)):
            if one.literal is None:
                continue
            if other.values is not None and one.literal not in other.values:
                self._wrong(
                    at,
                    f"{quote(one.literal)} is not one of its values",
                    did_you_mean(one.literal, other.values),
                )
                return False
            if other.clock and CLOCK_TIME.fullmatch(one.literal) is None:
                self._wrong(at, f"{quote(one.literal)} is not a time of day", "write it like '07:30'")
                return False
        return True

    def _conditional(self, tree: Conditional) -> _Part:
        condition = self.part(tree.condition)
        then, otherwise = self.part(tree.then), self.part(tree.otherwise)
        fine = self._is(condition, tree.at, "'?'", Family.TRUTH)
        if not fine or then.kind is None or otherwise.kind is None:
            return _WRONG
        if then.family is not otherwise.family:
            return self._wrong(
                tree.at, f"gives {then.describe()} or {otherwise.describe()}", "both must be of one kind"
            )
        then, otherwise = _alike((then, otherwise))
        return _Part(
            kind=Kind.TEXT if then.family is Family.TEXT else then.kind,
            run=conditional(condition.run, then.run, otherwise.run),
            constant=condition.constant and then.constant and otherwise.constant,
        )

    def _one_of(self, tree: OneOf) -> _Part:
        item = self.part(tree.item)
        items = [self._word(one, item) for one in tree.items]
        if not items:
            return self._wrong(tree.at, "the list after 'in' is empty")
        fine = [self._comparable(one.at, item, part) for one, part in zip(tree.items, items, strict=True)]
        if not all(fine):
            return _WRONG
        item, *items = _alike((item, *items))
        if all(part.constant for part in items):
            listed = frozenset(part.run({}) for part in items)
            if None not in listed and all(value == value for value in listed):  # noqa: PLR0124 (NaN)
                return _Part(kind=Kind.BOOL, run=one_of_constants(item.run, listed))
        return _Part(kind=Kind.BOOL, run=one_of(item.run, tuple(part.run for part in items)))

    def _call(self, tree: Call) -> _Part:
        arguments = [self.part(argument) for argument in tree.arguments]
        known = METHODS if tree.method else FUNCTIONS
        called = known.get(tree.function)
        if called is None:
            return self._wrong(
                tree.at, f"unknown function {quote(tree.function)}", did_you_mean(tree.function, known)
            )
        if len(arguments) != len(called.takes):
            wanted = len(called.takes) - tree.method
            return self._wrong(
                tree.at, f"{quote(tree.function)} takes {wanted} value" + ("s" if wanted > 1 else "")
            )
        return self._operation(tree.at, quote(tree.function), called, *arguments)


def _like_with_like(one: _Part, literal: _Part) -> str:
    """Says what to write in place of a literal of the wrong kind."""
    number, word = literal.number, (literal.literal or "").strip()
    if one.family is Family.NUMBER and _NUMBER.fullmatch(word):
        return f"remove the quotes: write {word}"
    if one.clock and isinstance(number, int) and 0 <= number <= 24:
        return f'write "{number % 24:02d}:00"'
    if one.kind is Kind.BOOL and number in (0, 1):
        return "compare with true, or with nothing" if number else "compare with false, or write ! before it"
    if one.kind is Kind.BOOL and literal.literal is not None and literal.literal.lower() in _TRUTH:
        return f"write {_TRUTH[literal.literal.lower()]}, without quotes"
    return ""


def _made(kind: Kind | None, compute: Compute, *parts: _Part) -> _Part:
    """Makes a part that computes from parts of the right kinds."""
    runs = tuple(part.run for part in parts)
    if all(part.constant for part in parts):
        return _constant(kind, lifted(compute, runs)({}))
    if len(parts) == 2 and parts[1].constant and (value := parts[1].run({})) is not None:
        return _Part(kind=kind, run=with_constant(compute, runs[0], value))
    return _Part(kind=kind, run=lifted(compute, runs))


def _constant(kind: Kind | None, value: Value | None) -> _Part:
    return _Part(kind=kind, run=lambda _: value, constant=True)


def _alike(parts: tuple[_Part, ...]) -> tuple[_Part, ...]:
    """Numbers as floats if one of them is."""
    if not any(part.kind is Kind.FLOAT for part in parts):
        return parts
    return tuple(_made(Kind.FLOAT, float, part) if part.kind is Kind.INT else part for part in parts)


def _literal(value: Value) -> _Part:
    run = _constant(None, value).run
    match value:
        case bool():
            return _Part(kind=Kind.BOOL, run=run, constant=True)
        case int():
            return _Part(kind=Kind.INT, run=run, constant=True, number=value)
        case float():
            return _Part(kind=Kind.FLOAT, run=run, constant=True, number=value)
        case str():
            return _Part(kind=Kind.TEXT, run=run, constant=True, literal=value)


def _reading(name: ReadingName, type_: ValueType) -> Evaluate:
    """A reading where it is of its type, unknown otherwise. Ranges are not enforced here."""

    def truth(values: Values) -> bool | None:
        value = values.get(name)
        return value if value is True or value is False else None

    def whole(values: Values) -> int | None:
        value = values.get(name)
        return value if isinstance(value, int) and _is_whole(value) else None

    def number(values: Values) -> float | None:
        value = values.get(name)
        if isinstance(value, float):
            return value if -math.inf < value < math.inf else None
        return float(value) if isinstance(value, int) and _is_whole(value) else None

    def text(values: Values) -> str | None:
        value = values.get(name)
        return value if isinstance(value, str) else None

    words = frozenset(type_.values or ())

    def word(values: Values) -> str | None:
        value = values.get(name)
        return value if isinstance(value, str) and value in words else None

    match type_.kind:
        case Kind.BOOL:
            return truth
        case Kind.INT:
            return whole
        case Kind.FLOAT:
            return number
        case Kind.TEXT:
            return text
        case Kind.CHOICE:
            return word


def _is_whole(value: int) -> bool:
    return not isinstance(value, bool) and INT_MIN <= value <= INT_MAX

"""Types of clauses: does each part fit the next, and what is the exact CEL text that computes it.

CEL itself never mixes whole numbers and floats, which people do all the time (`temp > 26`). So the check
also writes the clause anew: `double()` where a whole number meets a float, `0 - x` in place of `-x` so
that overflow is noticed, and one short variable per reading, which keeps CEL's own names out of the way.
"""

import re
from collections.abc import Mapping

import msgspec

from comesh.deployment.clause_parser import (
    Binary,
    Call,
    ClauseError,
    Conditional,
    Expression,
    Literal,
    OneOf,
    Reading,
    Unary,
)
from comesh.deployment.id_names import BUILT_IN, is_id, legal_names
from comesh.deployment.problems import did_you_mean, quote, shorten
from comesh.deployment.values import Kind, ValueType

ReadingName = tuple[str, str]
Readings = Mapping[str, Mapping[str, ValueType | None]]
"""Device, then reading. None: there is such a reading, but its type could not be read."""

CLOCK_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

NOW: dict[str, ValueType] = {
    "time": ValueType(type="text"),
    "hour": ValueType(type="int", range=(0, 23)),
    "minute": ValueType(type="int", range=(0, 59)),
    "weekday": ValueType(values=WEEKDAYS),
    "day": ValueType(type="int", range=(1, 31)),
    "month": ValueType(type="int", range=(1, 12)),
}
"""Local time, under the name `now`; `now.time` is a text such as 22:05, which sorts as times do."""
SUN: dict[str, ValueType] = {"up": ValueType(type="bool")}
"""Under the name `sun`, where the settings have a location."""
UP = ValueType(type="bool")
"""Every device has `device.up`."""

_NUMBERS = (Kind.INT, Kind.FLOAT)
_TEXTS = (Kind.TEXT, Kind.CHOICE)
_TEXT_METHODS = ("contains", "startsWith", "endsWith")
_FUNCTIONS = {"abs": 1, "min": 2, "max": 2}
_RELATIONS = ("==", "!=", "<", "<=", ">", ">=")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_TRUTH = {
    **dict.fromkeys(("true", "on", "yes"), "true"),
    **dict.fromkeys(("false", "off", "no"), "false"),
}
_LEVELS = {
    "?:": 0,
    "||": 1,
    "&&": 2,
    "relation": 3,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
    "unary": 6,
    "": 7,
}


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A checked part: kind None is a part that is wrong already, which is not complained about again."""

    kind: Kind | None
    text: str = "false"
    level: int = 7
    """How tightly its outermost sign binds."""
    values: tuple[str, ...] | None = None
    clock: bool = False
    literal: str | None = None
    """The word, where it is a text literal."""
    number: int | float | None = None
    """The number, where it is a literal."""

    def inside(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"

    def describe(self) -> str:
        match self.kind:
            case Kind.BOOL:
                return "true or false"
            case Kind.INT | Kind.FLOAT:
                return "a number"
            case _:
                return "a text"


_WRONG = Checked(kind=None)


class Checker:
    """Checks one clause; mistakes collects everything that is wrong with it."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self.mistakes: list[ClauseError] = []
        self.variables: dict[ReadingName, str] = {}

    def check(self, tree: Expression) -> Checked:
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

    def _wrong(self, at: int, what: str, fix: str = "") -> Checked:
        self.mistakes.append(ClauseError(at, what, fix))
        return _WRONG

    def _reading(self, tree: Reading) -> Checked:
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
        variable = self.variables.setdefault((tree.device, tree.reading), f"r{len(self.variables)}")
        if type_ is None:
            return _WRONG
        clock = (tree.device, tree.reading) == ("now", "time")
        return Checked(kind=type_.kind, text=variable, values=type_.values, clock=clock)

    def _likely(self, device: str) -> str:
        """now and sun may be misspelled too, but are no devices."""
        names = legal_names(list(self._readings))
        likely = did_you_mean(device, names)
        devices = [name for name in names if name not in BUILT_IN]
        return likely if likely.endswith("?") else did_you_mean(device, devices)

    def _pair(self, left: Expression, right: Expression) -> tuple[Checked, Checked]:
        """Both sides of a comparison; a bare word beside a text was meant as a text."""
        if self._bare(left) and not self._bare(right):
            second = self.check(right)
            return self._word(left, second), second
        first = self.check(left)
        return first, self._word(right, first)

    def _bare(self, tree: Expression) -> bool:
        return isinstance(tree, Reading) and not tree.reading

    def _word(self, tree: Expression, other: Checked) -> Checked:
        if not isinstance(tree, Reading) or tree.reading:
            return self.check(tree)
        word = tree.device
        if other.kind in _TEXTS and (word not in self._readings or word in (other.values or ())):
            near = other.values is not None and word not in other.values
            fix = did_you_mean(word, other.values or ()) if near else f'write "{shorten(word)}"'
            return self._wrong(tree.at, f"the text {quote(word)} needs quotes", fix)
        if other.kind is Kind.BOOL and word.lower() in _TRUTH:
            return self._wrong(
                tree.at, f"{quote(word)} is not true or false", f"write {_TRUTH[word.lower()]}"
            )
        return self.check(tree)

    def _unary(self, tree: Unary) -> Checked:
        operand = self.check(tree.operand)
        if tree.sign == "!":
            if not self._is(operand, tree.at, "'!'", Kind.BOOL):
                return _WRONG
            return Checked(kind=Kind.BOOL, text=f"!{operand.inside(6)}", level=6)
        if not self._is(operand, tree.at, "'-'", *_NUMBERS):
            return _WRONG
        zero = "0" if operand.kind is Kind.INT else "0.0"
        return Checked(kind=operand.kind, text=f"{zero} - {operand.inside(5)}", level=4)

    def _is(self, part: Checked, at: int, who: str, *kinds: Kind) -> bool:
        if part.kind is None:
            return False
        if part.kind not in kinds:
            wanted = "true or false" if Kind.BOOL in kinds else "numbers" if Kind.INT in kinds else "texts"
            self._wrong(at, f"{who} is for {wanted}, not for {part.describe()}")
            return False
        return True

    def _binary(self, tree: Binary) -> Checked:
        if tree.sign in _RELATIONS:
            return self._comparison(tree, *self._pair(tree.left, tree.right))
        left, right = self.check(tree.left), self.check(tree.right)
        match tree.sign:
            case "&&" | "||":
                fine = [self._is(part, tree.at, f"'{tree.sign}'", Kind.BOOL) for part in (left, right)]
                if not all(fine):
                    return _WRONG
                return _joined(Kind.BOOL, left, tree.sign, right, _LEVELS[tree.sign])
            case _:
                return self._arithmetic(tree, left, right)

    def _arithmetic(self, tree: Binary, left: Checked, right: Checked) -> Checked:
        fine = [self._is(part, tree.at, f"'{tree.sign}'", *_NUMBERS) for part in (left, right)]
        if not all(fine):
            return _WRONG
        if tree.sign == "%" and Kind.FLOAT in (left.kind, right.kind):
            return self._wrong(tree.at, "'%' is for whole numbers")
        left, right = _promoted(left, right)
        kind = left.kind or Kind.INT
        return _joined(kind, left, tree.sign, right, _LEVELS[tree.sign])

    def _comparison(self, tree: Binary, left: Checked, right: Checked) -> Checked:
        if not self._comparable(tree.at, left, right):
            return _WRONG
        if tree.sign not in ("==", "!=") and (
            left.kind not in (*_NUMBERS, Kind.TEXT) or Kind.CHOICE in (left.kind, right.kind)
        ):
            return self._wrong(tree.at, f"'{tree.sign}' is for numbers and times", "compare with == or !=")
        left, right = _promoted(left, right)
        return Checked(
            kind=Kind.BOOL, text=f"{left.inside(4)} {tree.sign} {right.inside(4)}", level=_LEVELS["relation"]
        )

    def _comparable(self, at: int, left: Checked, right: Checked) -> bool:
        if left.kind is None or right.kind is None:
            return False
        if _family(left.kind) != _family(right.kind):
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

    def _conditional(self, tree: Conditional) -> Checked:
        condition = self.check(tree.condition)
        then, otherwise = self.check(tree.then), self.check(tree.otherwise)
        if not self._is(condition, tree.at, "'?'", Kind.BOOL) or then.kind is None or otherwise.kind is None:
            return _WRONG
        if _family(then.kind) != _family(otherwise.kind):
            return self._wrong(
                tree.at, f"gives {then.describe()} or {otherwise.describe()}", "both must be of one kind"
            )
        then, otherwise = _promoted(then, otherwise)
        text = f"{condition.inside(1)} ? {then.inside(1)} : {otherwise.inside(0)}"
        kind = Kind.TEXT if then.kind in _TEXTS else then.kind
        return Checked(kind=kind, text=text, level=0)

    def _one_of(self, tree: OneOf) -> Checked:
        item = self.check(tree.item)
        items = [self._word(one, item) for one in tree.items]
        if not items:
            return self._wrong(tree.at, "the list after 'in' is empty")
        fine = [self._comparable(one.at, item, part) for one, part in zip(tree.items, items, strict=True)]
        if not all(fine):
            return _WRONG
        if any(part.kind is Kind.FLOAT for part in (item, *items)):
            item, items = _as_float(item), [_as_float(part) for part in items]
        listed = ", ".join(part.inside(0) for part in items)
        return Checked(kind=Kind.BOOL, text=f"{item.inside(4)} in [{listed}]", level=_LEVELS["relation"])

    def _call(self, tree: Call) -> Checked:
        arguments = [self.check(argument) for argument in tree.arguments]
        known = _TEXT_METHODS if tree.method else tuple(_FUNCTIONS)
        if tree.function not in known:
            return self._wrong(
                tree.at, f"unknown function {quote(tree.function)}", did_you_mean(tree.function, known)
            )
        count = 2 if tree.method else _FUNCTIONS[tree.function]
        if len(arguments) != count:
            wanted = count - 1 if tree.method else count
            return self._wrong(
                tree.at, f"{quote(tree.function)} takes {wanted} value" + ("s" if wanted > 1 else "")
            )
        kinds = _TEXTS if tree.method else _NUMBERS
        fine = [self._is(part, tree.at, quote(tree.function), *kinds) for part in arguments]
        if not all(fine):
            return _WRONG
        if tree.method:
            text = f"{arguments[0].inside(7)}.{tree.function}({arguments[1].text})"
            return Checked(kind=Kind.BOOL, text=text)
        if any(part.kind is Kind.FLOAT for part in arguments):
            arguments = [_as_float(part) for part in arguments]
        return Checked(
            kind=arguments[0].kind, text=f"{tree.function}({', '.join(part.text for part in arguments)})"
        )


def _like_with_like(one: Checked, literal: Checked) -> str:
    """What to write in place of a literal of the wrong kind."""
    number = literal.number
    if one.kind in _NUMBERS and literal.literal is not None and _NUMBER.fullmatch(literal.literal.strip()):
        return f"remove the quotes: write {literal.literal.strip()}"
    if one.clock and isinstance(number, int) and 0 <= number <= 24:
        return f'write "{number % 24:02d}:00"'
    if one.kind is Kind.BOOL and number in (0, 1):
        return "compare with true, or with nothing" if number else "compare with false, or write ! before it"
    if one.kind is Kind.BOOL and literal.literal is not None and literal.literal.lower() in _TRUTH:
        return f"write {_TRUTH[literal.literal.lower()]}, without quotes"
    return ""


def _family(kind: Kind) -> str:
    return "number" if kind in _NUMBERS else "text" if kind in _TEXTS else "bool"


def _joined(kind: Kind, left: Checked, sign: str, right: Checked, level: int) -> Checked:
    return Checked(kind=kind, text=f"{left.inside(level)} {sign} {right.inside(level + 1)}", level=level)


def _as_float(part: Checked) -> Checked:
    return Checked(kind=Kind.FLOAT, text=f"double({part.text})") if part.kind is Kind.INT else part


def _promoted(left: Checked, right: Checked) -> tuple[Checked, Checked]:
    if Kind.FLOAT in (left.kind, right.kind):
        return _as_float(left), _as_float(right)
    return left, right


def _literal(value: bool | int | float | str) -> Checked:
    match value:
        case bool():
            return Checked(kind=Kind.BOOL, text="true" if value else "false")
        case int():
            return Checked(kind=Kind.INT, text=str(value), number=value)
        case float():
            text = repr(value)
            exact = text if "." in text or "e" in text else f"{text}.0"
            return Checked(kind=Kind.FLOAT, text=exact, number=value)
        case str():
            return Checked(kind=Kind.TEXT, text=_quoted(value), literal=value)


def _quoted(value: str) -> str:
    """A CEL text literal in plain ASCII."""
    plain = (c if " " <= c <= "~" and c not in '"\\' else f"\\U{ord(c):08x}" for c in value)
    return '"' + "".join(plain) + '"'

"""Clauses evaluated by the package `common-expression-language`: what ours are held against.

Writes a clause as text of that language, with every conversion between whole numbers and floats spelled
out, and gives it the known readings. Two things differ there: `-x` of the lowest whole number wraps (so
`0 - x` is written), and putting NaN in order is a TypeError (unknown, with us). abs, min and max are not in
the language; they are written once more here.
"""

from collections.abc import Mapping

import cel

from comesh.deployment.clauses.parser import (
    Binary,
    Call,
    Conditional,
    Expression,
    Literal,
    OneOf,
    Reading,
    Unary,
    parse,
)
from comesh.deployment.clauses.vocabulary import Readings
from comesh.deployment.values import Kind

Value = bool | int | float | str
Values = Mapping[tuple[str, str], Value]
NUMBERS = (Kind.INT, Kind.FLOAT)


def oracle(source: str, readings: Readings, values: Values) -> bool | None:
    """The truth of a clause that compiles, for readings of the right types."""
    text, _ = write(parse(source), readings)
    known = {f"{device}_{reading}": convert(readings, (device, reading), value)
             for (device, reading), value in values.items()}  # fmt: skip
    functions = {"abs": absolute, "min": min, "max": max}
    try:
        truth = cel.evaluate(text, cel.Context(variables=known, functions=functions))
    except (ArithmeticError, LookupError, RuntimeError, ValueError, TypeError):
        return None
    assert isinstance(truth, bool)
    return truth


def convert(readings: Readings, name: tuple[str, str], value: Value) -> Value:
    type_ = readings[name[0]][name[1]]
    return float(value) if type_ is not None and type_.kind is Kind.FLOAT else value


def absolute(number: float) -> float:
    return min(abs(number), 2**63 - 1) if isinstance(number, int) else abs(number)


def write(tree: Expression, readings: Readings) -> tuple[str, Kind]:
    match tree:
        case Literal(value=bool() as value):
            return str(value).lower(), Kind.BOOL
        case Literal(value=str() as value):
            return '"' + "".join(f"\\U{ord(character):08x}" for character in value) + '"', Kind.TEXT
        case Literal(value=value):
            return repr(value), Kind.INT if isinstance(value, int) else Kind.FLOAT
        case Reading():
            type_ = readings[tree.device][tree.reading]
            assert type_ is not None
            return f"{tree.device}_{tree.reading}", type_.kind
        case Unary():
            operand, kind = write(tree.operand, readings)
            zero = "0 " if kind is Kind.INT else ""
            return f"({zero}{tree.sign}({operand}))", kind
        case Binary():
            return write_binary(tree, readings)
        case Conditional():
            condition, _ = write(tree.condition, readings)
            (then, otherwise), kind = alike([tree.then, tree.otherwise], readings)
            return f"(({condition}) ? {then} : {otherwise})", kind
        case OneOf():
            (item, *items), _ = alike([tree.item, *tree.items], readings)
            return f"({item} in [{', '.join(items)}])", Kind.BOOL
        case Call():
            arguments, kind = alike(list(tree.arguments), readings)
            if tree.method:
                return f"({arguments[0]}).{tree.function}({arguments[1]})", Kind.BOOL
            return f"{tree.function}({', '.join(arguments)})", kind
        case _:
            raise AssertionError(tree)


def write_binary(tree: Binary, readings: Readings) -> tuple[str, Kind]:
    (left, right), kind = alike([tree.left, tree.right], readings)
    if isinstance(tree.left, Binary) and tree.left.sign == tree.sign and left.startswith("("):
        left = left[1:-1]  # the other parser does not go as deep as a long chain would
    return f"({left} {tree.sign} {right})", kind if tree.sign in "+-*/%" else Kind.BOOL


def alike(trees: list[Expression], readings: Readings) -> tuple[list[str], Kind]:
    """Numbers as floats if one of them is."""
    written = [write(tree, readings) for tree in trees]
    kinds = {kind for _, kind in written}
    if Kind.FLOAT not in kinds:
        return [text for text, _ in written], written[0][1]
    return [text if kind is Kind.FLOAT else f"double({text})" for text, kind in written], Kind.FLOAT

"""A second, slow evaluation of clauses by walking the tree, to hold the compiled one against.

Unknown is None, as in the product. Written from the rules in clauses.py, not from its code.
"""

import operator
from collections.abc import Mapping

from comesh.deployment.clause_parser import (
    Binary,
    Call,
    Conditional,
    Expression,
    Literal,
    OneOf,
    Reading,
    Unary,
)

Value = bool | int | float | str | None
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def evaluate(tree: Expression, values: Mapping[tuple[str, str], Value]) -> Value:
    match tree:
        case Literal():
            return tree.value
        case Reading():
            return values.get((tree.device, tree.reading))
        case Unary():
            operand = evaluate(tree.operand, values)
            if operand is None:
                return None
            return not operand if tree.sign == "!" else within_64_bits(-operand)
        case Binary(sign="&&" | "||"):
            return logic(tree.sign, evaluate(tree.left, values), evaluate(tree.right, values))
        case Binary():
            return binary(tree.sign, evaluate(tree.left, values), evaluate(tree.right, values))
        case Conditional():
            condition = evaluate(tree.condition, values)
            if condition is None:
                return None
            return evaluate(tree.then if condition else tree.otherwise, values)
        case OneOf():
            found = [evaluate(part, values) for part in (tree.item, *tree.items)]
            if None in found:
                return None
            if float in map(type, found):  # numbers of one list are of one kind
                found = [float(value) for value in found]
            return any(value == found[0] for value in found[1:])
        case Call():
            arguments = [evaluate(part, values) for part in tree.arguments]
            return None if None in arguments else call(tree.function, arguments)
        case _:
            raise AssertionError(tree)


def logic(sign: str, left: Value, right: Value) -> Value:
    decides = sign == "||"
    if decides in (left, right):
        return decides
    return None if None in (left, right) else not decides


def same_kind(left: Value, right: Value) -> tuple[Value, Value]:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (left, right)]
    if all(numbers) and float in (type(left), type(right)):
        return float(left), float(right)
    return left, right


def binary(sign: str, left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    left, right = same_kind(left, right)
    floats = isinstance(left, float)
    if floats and sign in ("<", "<=", ">", ">=") and "nan" in (str(left), str(right)):
        return None
    if sign in COMPARE:
        return bool(COMPARE[sign](left, right))
    return arithmetic(sign, left, right)


def arithmetic(sign: str, left: Value, right: Value) -> Value:
    assert isinstance(left, int | float) and isinstance(right, int | float)
    match sign:
        case "+":
            return within_64_bits(left + right)
        case "-":
            return within_64_bits(left - right)
        case "*":
            return within_64_bits(left * right)
        case "/" if isinstance(left, float):
            if right == 0:
                negative = str(float(left))[0] == "-"
                return (
                    float("nan")
                    if left == 0
                    else float("-inf" if negative != (str(right)[0] == "-") else "inf")
                )
            return left / right
        case _:
            if right == 0 or (left == -(2**63) and right == -1):
                return None
            quotient = abs(int(left)) // abs(int(right)) * (1 if (left < 0) == (right < 0) else -1)
            return within_64_bits(quotient if sign == "/" else left - quotient * right)


def within_64_bits(number: float) -> Value:
    if isinstance(number, int) and not -(2**63) <= number < 2**63:
        return None
    return number


def call(function: str, arguments: list[Value]) -> Value:
    match function, arguments:
        case "abs", [int() | float() as number]:
            return min(abs(number), 2**63 - 1) if isinstance(number, int) else abs(number)
        case (("min" | "max"), [one, other]):
            left, right = same_kind(one, other)
            return {"min": min, "max": max}[function](left, right)
        case "contains", [str() as text, str() as part]:
            return part in text
        case "startsWith", [str() as text, str() as part]:
            return text.startswith(part)
        case "endsWith", [str() as text, str() as part]:
            return text.endswith(part)
        case _:
            raise AssertionError(function)

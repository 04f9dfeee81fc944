"""Clauses: what they mean, what is unknown, and that nothing else can come out of them."""

from itertools import product

import pytest
from clause_oracle import oracle
from hypothesis import example, given, settings
from hypothesis import strategies as st

from comesh.deployment.clauses.compiler import (
    Clause,
    WrongClauseError,
    compile_clause,
    compile_event_clause,
)
from comesh.deployment.clauses.operations import lifted
from comesh.deployment.clauses.parser import ClauseError, parse
from comesh.deployment.clauses.vocabulary import vocabulary
from comesh.deployment.values import ValueType

Values = dict[tuple[str, str], bool | int | float | str]

READINGS = vocabulary(
    {
        "temp": {"c": ValueType(type="float"), "n": ValueType(type="int"), "m": ValueType(type="int")},
        "door": {
            "open": ValueType(type="bool"),
            "note": ValueType(type="text"),
            "name": ValueType(type="text"),
        },
        "mode": {"now": ValueType(values=("auto", "off"))},
    },
    sun=True,
)


def clause(source: str) -> Clause:
    return compile_clause(source, READINGS)


def mistakes(source: str) -> list[tuple[int, str]]:
    with pytest.raises(WrongClauseError) as wrong:
        clause(source)
    return [(mistake.offset, str(mistake)) for mistake in wrong.value.mistakes]


@pytest.mark.parametrize(
    ("source", "values", "truth"),
    [
        ("temp.c > 26", {("temp", "c"): 26.5}, True),
        ("temp.c > 26", {("temp", "c"): 27}, True),
        ("temp.c > 26", {}, None),
        ("temp.c > 26", {("temp", "c"): float("nan")}, None),
        ("temp.c > 26", {("temp", "c"): "warm"}, None),
        ("temp.n > 26.5", {("temp", "n"): 27}, True),
        ("temp.n > 26", {("temp", "n"): True}, None),
        ("temp.n > 26", {("temp", "n"): 2**63}, None),
        ("temp.c + temp.n > 3", {("temp", "c"): 1.5, ("temp", "n"): 2}, True),
        ("temp.n / 0 > 1", {("temp", "n"): 1}, None),
        ("-temp.n > 1", {("temp", "n"): -(2**63)}, None),
        ("door.open && temp.c > 3", {("door", "open"): False}, False),
        ("temp.c > 3 || door.open", {("door", "open"): True}, True),
        ("temp.c > 3 && door.open", {("door", "open"): True}, None),
        ("door.open ? temp.c > 3 : true", {("door", "open"): False}, True),
        ("mode.now in ['auto']", {("mode", "now"): "auto"}, True),
        ("mode.now == 'auto'", {("mode", "now"): "broken"}, None),
        ("door.note.contains('x')", {("door", "note"): "axb"}, True),
        ("door.note == '\\u00e9\\n\"'", {("door", "note"): 'é\n"'}, True),
        ("now.time >= '22:00' || now.time < '06:00'", {("now", "time"): "23:15"}, True),
        ("now.weekday in ['sat', 'sun'] && sun.up", {("now", "weekday"): "sat", ("sun", "up"): True}, True),
        ("!door.up", {("door", "up"): False}, True),
        ("abs(temp.c - 20) > max(2, temp.n)", {("temp", "c"): 10.0, ("temp", "n"): 3}, True),
        ("abs(temp.n) > 3", {("temp", "n"): -(2**63)}, True),
        ("1.0 / temp.c > 5", {("temp", "c"): 0.0}, True),
    ],
)  # fmt: skip
def test_truth(source: str, values: Values, truth: bool | None) -> None:
    assert clause(source).evaluate(values) is truth


def test_what_a_clause_reads() -> None:
    found = clause("temp.c > 26 && door.open || now.hour == 3")
    assert found.reads == {("temp", "c"), ("door", "open"), ("now", "hour")}
    assert found.devices == {"temp", "door"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", [(0, "the clause is empty; remove it, or say when the routine fires")]),
        ("dor.open", [(0, "unknown device 'dor'; did you mean 'door'?")]),
        ("door.opn", [(5, "'door' has no reading 'opn'; did you mean 'open'?")]),
        ("door", [(0, "'door' alone is not a value; say which reading: door.open")]),
        ("temp.c", [(0, "the clause is a number, not true or false; compare it with something")]),
        ("temp.c > 'x'", [(7, "a number is compared with text")]),
        ("door.open == 1", [(10, "a bool is compared with a number; "
                                    "compare with true, or with nothing")]),
        ("mode.now == 'of'", [(9, "'of' is not one of its values; did you mean 'off'?")]),
        ("mode.now < 'off'", [(9, "'<' is for numbers and times; compare with == or !=")]),
        ("door.open > true", [(10, "'>' is for numbers and times; compare with == or !=")]),
        ("now.time > '9:00'", [(9, "'9:00' is not a time of day; write it like '07:30'")]),
        ("temp.c % 2 == 0", [(7, "'%' is for whole numbers")]),
        ("!temp.c", [(0, "'!' is for true or false, not for a number")]),
        ("temp.c && door.open", [(7, "'&&' is for true or false, not for a number")]),
        ("temp.c = 3", [(7, "'=' is not a comparison; write ==")]),
        ("door.open & door.open", [(10, "a single '&' means nothing here; write &&")]),
        ("door.open and door.open", [(10, "'and' is not known; write &&")]),
        ("not door.open", [(0, "'not' is not known; write !")]),
        ("1 < temp.c < 3", [(11, "comparisons cannot be chained; join two of them with &&")]),
        ("(door.open", [(9, "')' is missing")]),
        ("door.open &&", [(11, "the clause ends too early")]),
        ("door.open)", [(9, "')' does not fit here")]),
        ("door.note == 'x", [(13, "a quote is opened but never closed; close it")]),
        ("door.note == '\\q'", [(14, "'\\q' means nothing here; write \\\\ for a \\")]),
        ("temp.n > 99999999999999999999", [(9, "the number '99999999999999999999' is too large")]),
        ("temp.c > 1e999", [(9, "the number '1e999' is too large")]),
        ("temp.n in []", [(7, "the list after 'in' is empty")]),
        ("foo(1) > 2", [(0, "unknown function 'foo'; known: abs, max, min")]),
        ("abs(1, 2) > 2", [(0, "'abs' takes 1 value")]),
        ("door.note.contain('x')", [(10, "unknown function 'contain'; did you mean 'contains'?")]),
        ("temp.c > 1 && null", [(14, "'null' does not fit here")]),
        ("door.open ? 1 : 'x'", [(10, "gives a number or text; both must be of one kind")]),
        ("dor.up && temp.c > 'x'", [(0, "unknown device 'dor'; did you mean 'door'?"),
                                    (17, "a number is compared with text")]),
    ],
)  # fmt: skip
def test_mistakes_have_their_place(source: str, expected: list[tuple[int, str]]) -> None:
    assert mistakes(source) == expected


def test_bounds() -> None:
    assert "longer than 2000" in mistakes("a" * 2001)[0][1]
    assert "more than 300 words" in mistakes("door.open" + " && door.open" * 99)[0][1]
    for deep in ("(" * 50 + "true" + ")" * 50, "!" * 50 + "true", "true ? true : " * 30 + "true"):
        assert "nested more than" in mistakes(deep)[0][1]
    assert clause("!" * 24 + "door.open").evaluate({("door", "open"): True}) is True
    assert clause("temp.n" + " + 1" * 140 + " > 0").evaluate({("temp", "n"): 0}) is True


def test_an_event_may_be_a_bare_reading() -> None:
    every = compile_event_clause("mode.now", READINGS)
    assert every.evaluate({("mode", "now"): "off"}) is True
    assert compile_event_clause("door.open", READINGS).evaluate({("door", "open"): False}) is False


numbers = st.recursive(
    st.sampled_from(["temp.c", "temp.n", "1", "0", "2.5", "0.0", "9223372036854775807", "now.hour"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(
            lambda p: f"({p[0]} {p[1]} {p[2]})"
        ),
        inner.map(lambda x: f"-{x}"),
        inner.map(lambda x: f"abs({x})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
    ),
    max_leaves=4,
)
whole = st.sampled_from(["temp.n", "7", "-3", "now.hour"])
texts = st.sampled_from(["door.note", "'auto'", "'a'", "''", "'é😀'"])
relations = st.one_of(
    st.tuples(numbers, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), numbers).map(" ".join),
    st.tuples(texts, st.sampled_from(["<", ">", "==", "!="]), texts).map(" ".join),
    st.tuples(numbers, numbers, numbers).map(lambda p: f"{p[0]} in [{p[1]}, {p[2]}]"),
    st.tuples(whole, st.sampled_from(["%", "/"]), whole).map(lambda p: f"{p[0]} {p[1]} {p[2]} == 1"),
    st.tuples(texts, st.sampled_from(["contains", "startsWith", "endsWith"]), texts).map(
        lambda p: f"{p[0]}.{p[1]}({p[2]})"
    ),
    st.sampled_from(["door.open", "true", "false", "mode.now == 'auto'", "mode.now in ['off']", "door.up"]),
)
clauses = st.recursive(
    relations,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(" ".join),
        inner.map(lambda x: f"!({x})"),
        st.tuples(inner, inner, inner).map(lambda p: f"(({p[0]}) ? {p[1]} : {p[2]})"),
    ),
    max_leaves=6,
)
whole_values = st.one_of(st.integers(-5, 30), st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1]))
float_values = st.one_of(
    st.sampled_from([0.0, -0.0, 26.0, 1e308, 5e-324]), st.floats(allow_nan=False, allow_infinity=False)
)
readings = st.fixed_dictionaries(
    {},
    optional={
        ("temp", "c"): float_values,
        ("temp", "n"): whole_values,
        ("door", "open"): st.booleans(),
        ("door", "up"): st.booleans(),
        ("door", "note"): st.sampled_from(["", "a", "auto", "é😀", "\0"]),
        ("mode", "now"): st.sampled_from(["auto", "off"]),
        ("now", "hour"): st.integers(0, 23),
    },
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(clauses, readings)
@example("0.0 / 0.0 == temp.c", {("temp", "c"): 0.0})
@example("min(0.0 / 0.0, 1) < 2", {})
@example("0.0 / temp.c in [0.0 / 0.0]", {("temp", "c"): 0.0})
@example("1.0 / -temp.c < 0", {("temp", "c"): 0.0})
@example("abs(-(1 - 9223372036854775807)) in [2.5, 9223372036854775807]", {})
def test_the_oracle_agrees(source: str, values: Values) -> None:
    assert clause(source).evaluate(values) is oracle(source, READINGS, values)


extremes = st.sampled_from([0, 1, -1, 2, -2, 3, 7, -7, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 1 - 2**63])


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(["+", "-", "*", "/", "%"]),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.tuples(*[st.one_of(extremes, st.integers(-(2**63), 2**63 - 1))] * 2),
    st.one_of(extremes, st.floats(allow_nan=False, allow_infinity=False)),
)
@example("/", "!=", (-(2**63), -1), 0)
@example("%", "!=", (-(2**63), -1), 0)
def test_whole_numbers_overflow_divide_and_meet_floats_as_the_oracle_says(
    sign: str, relation: str, whole: tuple[int, int], other: float
) -> None:
    values = {("temp", "n"): whole[0], ("temp", "m"): whole[1], ("temp", "c"): float(other)}
    for source in (
        f"temp.n {sign} temp.m {relation} temp.n",
        f"temp.n {sign} temp.m {relation} temp.c",
        f"temp.n {'-' if sign == '%' else sign} temp.c {relation} temp.m",
        f"-temp.n {relation} temp.m",
        f"temp.n in [temp.m, temp.c, temp.n {sign} 1]",
    ):
        assert clause(source).evaluate(values) is oracle(source, READINGS, values), source


@pytest.mark.parametrize("source", ["door.open && door.up", "door.open || door.up", "!door.open",
                                    "door.open ? door.up : sun.up", "door.open == door.up",
                                    "door.open in [door.up, sun.up]",
                                    "!(door.open && door.up) || sun.up"])  # fmt: skip
def test_three_valued_logic_as_the_oracle_has_it(source: str) -> None:
    names = [("door", "open"), ("door", "up"), ("sun", "up")]
    for truths in product((True, False, None), repeat=3):
        values = {name: truth for name, truth in zip(names, truths, strict=True) if truth is not None}
        assert clause(source).evaluate(values) is oracle(source, READINGS, values), values


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=4), st.text(max_size=4), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
def test_texts_compare_as_the_oracle_says(one: str, other: str, relation: str) -> None:
    values = {("door", "note"): one, ("door", "name"): other}
    for source in (
        f"door.note {relation} door.name",
        "door.note.contains(door.name) || door.note.startsWith(door.name)",
        "door.note.endsWith(door.name)",
        "door.note in [door.name, 'a']",
    ):
        assert clause(source).evaluate(values) is oracle(source, READINGS, values), source


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["&&", "||", "+", "*"]), st.integers(1, 60), st.integers(0, 23), readings)
def test_long_and_deep_clauses_are_evaluated_as_the_oracle_says(
    sign: str, length: int, depth: int, values: Values
) -> None:
    logic = sign in ("&&", "||")
    chain = f" {sign} ".join(["door.open" if logic else "temp.n"] * length)
    source = ("!" if logic else "-") * depth + f"({chain})" + ("" if logic else " > 5")
    assert clause(source).evaluate(values) is oracle(source, READINGS, values)


@settings(max_examples=200, deadline=None)
@given(clauses, st.dictionaries(
    st.sampled_from([(device, name) for device, names in READINGS.items() for name in names]),
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
))  # fmt: skip
def test_nothing_but_true_false_and_unknown_comes_out(
    source: str, values: dict[tuple[str, str], bool | int | float | str | None]
) -> None:
    assert clause(source).evaluate(values) in (True, False, None)


def test_a_row_of_the_table_may_take_more_than_two_values() -> None:
    run = lifted(lambda *parts: sum(parts), tuple(lambda v, n=n: v.get(("a", n)) for n in "xyz"))
    assert run({("a", "x"): 1, ("a", "y"): 2, ("a", "z"): 3}) == 6
    assert run({("a", "x"): 1, ("a", "z"): 3}) is None


words = st.one_of(
    st.sampled_from("()&|!-+[],?:1=<."), st.sampled_from(["temp.c", "door.open", "&&", "in", "'a'"])
)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(words, max_size=14).map(" ".join)))
def test_any_text_is_a_clause_or_a_clause_error(source: str) -> None:
    try:
        parse(source)
    except ClauseError as wrong:
        assert 0 <= wrong.offset <= len(source)
        return
    try:
        clause(source)
    except WrongClauseError as wrong:
        assert wrong.mistakes

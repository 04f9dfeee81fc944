"""What is said to be never or always true is so, for every value that a reading can have."""

from hypothesis import given, settings
from hypothesis import strategies as st

from comesh.deployment.clauses.compiler import compile_clause
from comesh.deployment.clauses.parser import parse
from comesh.deployment.clauses.ranges import doubts
from comesh.deployment.values import ValueType

READINGS = {
    "a": {"n": ValueType(type="int", range=(0, 9)), "x": ValueType(type="float", range=(0, 4.5))},
    "b": {"on": ValueType(type="bool"), "mode": ValueType(values=("low", "mid", "high"))},
}
SIGNS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
LIMITS = st.sampled_from(["-1", "0", "0.5", "3", "4", "4.5", "8.5", "9", "10"])


@st.composite
def comparisons(draw: st.DrawFn, reading: str) -> str:
    if reading == "b.on":
        return draw(st.sampled_from(["b.on", "!b.on", "b.on == true", "b.on != true"]))
    if reading == "b.mode":
        word = st.sampled_from(['"low"', '"mid"', '"high"'])
        return draw(st.sampled_from([f"b.mode == {draw(word)}", f"b.mode in [{draw(word)}, {draw(word)}]"]))
    limit, sign = draw(LIMITS), draw(SIGNS)
    listed = f"{reading} in [{limit}, {draw(LIMITS)}]"
    return draw(st.sampled_from([f"{reading} {sign} {limit}", f"{limit} {sign} {reading}", listed]))


def values_of(reading: str) -> list[bool | int | float | str]:
    match reading:
        case "a.n":
            return list(range(10))
        case "a.x":
            return [step / 4 for step in range(19)]
        case "b.on":
            return [True, False]
        case _:
            return ["low", "mid", "high"]


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(["a.n", "a.x", "b.on", "b.mode"]), st.data())
def test_doubts_are_right(reading: str, data: st.DataObject) -> None:
    parts = data.draw(st.lists(comparisons(reading), min_size=1, max_size=3))
    source = " && ".join(parts)
    device, _, name = reading.partition(".")
    clause = compile_clause(source, READINGS)
    truths = [clause.evaluate({(device, name): value}) for value in values_of(reading)]
    told = [doubt.what for doubt in doubts(parse(source), READINGS)]
    never = any("never" in what for what in told)
    assert not (never and any(truths)), source
    if not any(sign in source for sign in ("!=", " in ")):
        assert never or any(truths), source
    if len(parts) == 1:
        assert any("always" in what for what in told) <= all(truths), source

"""Whatever the file holds: a deployment or problems with places, never anything else."""

from typing import Any

from deployment_texts import EXAMPLES, SMALL
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comesh.deployment.load import Outcome, load_bytes
from comesh.deployment.planning import plan_of
from comesh.deployment.problems import show_path

SOURCES = [SMALL.encode(), *(path.read_bytes()[:6000] for path in EXAMPLES)]
quick = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def holds(outcome: Outcome) -> None:
    """What is true of every outcome."""
    assert (outcome.deployment is None) == bool(outcome.errors)
    for problem in outcome.problems:
        assert problem.what
        assert str(problem).isprintable()
        assert str(problem).encode()
        assert problem.line >= 0 and problem.column >= 0
    if outcome.deployment is not None and len(outcome.deployment.devices) < 20:
        plan_of(outcome.deployment)


@quick
@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    holds(load_bytes(data))


@quick
@given(st.text(alphabet=st.sampled_from("abn:-[]{}&*!|>'\"%@`#?,<\n \t0.\\~"), max_size=80))
def test_random_yaml_like_text(text: str) -> None:
    holds(load_bytes(text.encode()))


@quick
@given(st.data())
def test_bytes_of_real_documents_changed(data: st.DataObject) -> None:
    document = bytearray(data.draw(st.sampled_from(SOURCES)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(document)))
        match data.draw(st.sampled_from(["cut", "insert", "change"])):
            case "cut":
                del document[at : at + data.draw(st.integers(1, 40))]
            case "insert":
                document[at:at] = data.draw(st.one_of(st.binary(max_size=8), st.sampled_from(INSERTED)))
            case _:
                document[at : at + 1] = data.draw(st.binary(min_size=1, max_size=1))
    holds(load_bytes(bytes(document)))


INSERTED = [
    b"\n",
    b": ",
    b"- ",
    b"*x",
    b"&x ",
    b"!secret ",
    b"<<: ",
    b"\t",
    b"{",
    b"]",
    b"'",
    b"\xff",
    b"%YAML 1.1\n",
    b"? ",
]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["5s", "1m", "lamp", "switch", "lamp.on", "button.press", "bool", "a", "paper", "mqtt"]),
    st.sampled_from(["07:30", "sunset", "* * * * *", "Europe/Zurich", "mon"]),
)
KEYS = [
    "settings",
    "nodes",
    "devices",
    "routines",
    "place",
    "on",
    "readings",
    "commands",
    "driver",
    "do",
    "when",
    "at",
    "cron",
]
KEYS += [
    "for",
    "every",
    "device",
    "command",
    "argument",
    "type",
    "values",
    "range",
    "sets",
    "lamp",
    "a",
    "f",
    "epoch",
    "locks",
]
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=5)), inner, max_size=4),
    ),
    max_leaves=12,
)
BASE: dict[str, Any] = {
    "settings": {"f": 1, "epoch": "60s", "selection": {"lsh": {"m": 2}}, "locks": {"batch": "none"}},
    "nodes": {name: {"place": ["1m", "2m"]} for name in "abc"},
    "devices": {
        "lamp": {
            "place": ["1m", "2m", "3m"],
            "readings": {"on": "bool", "level": {"type": "int", "range": [0, 9]}, "mode": ["x", "y"]},
            "commands": {"switch": {"argument": "bool", "sets": "on"}, "go": None},
            "driver": {"type": "mqtt", "topic": "x"},
        },
        "button": {"on": "a", "event": True, "readings": {"press": ["one", "two"]}},
    },
    "routines": {
        "r": {
            "when": "lamp.level > 3",
            "for": "5s",
            "do": [{"device": "lamp", "command": "switch", "argument": True}],
        },
        "s": {"on_event": "button.press", "do": [{"device": "lamp", "command": "go"}]},
        "t": {"at": ["07:30"], "days": ["mon"], "do": [{"device": "lamp", "command": "go"}]},
    },
}


def paths(tree: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [at] if at else []
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        found += paths(value, (*at, key))
    return found


def replaced(tree: Any, path: tuple[str | int, ...], value: Any) -> Any:
    if not path:
        return value
    copy: Any = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = replaced(tree[path[0]], path[1:], value)
    return copy


def as_yaml(value: Any) -> str:
    """YAML in flow style: what JSON cannot say (infinity, lone keys) included."""
    match value:
        case dict():
            return "{" + ", ".join(f"{as_yaml(key)}: {as_yaml(inner)}" for key, inner in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(as_yaml, value)) + "]"
        case str():
            return (
                '"' + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in value) + '"'
            )
        case float():
            return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(str(value), repr(value))
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
        case _:
            return str(value)


def test_the_tree_that_is_changed_is_fine() -> None:
    assert load_bytes(as_yaml(BASE).encode()).problems == ()


@settings(quick, max_examples=300)
@given(st.sampled_from(paths(BASE)), trees)
def test_one_part_of_the_tree_replaced(path: tuple[str | int, ...], value: Any) -> None:
    outcome = load_bytes(as_yaml(replaced(BASE, path, value)).encode())
    holds(outcome)
    assert isinstance(show_path(path), str)


@quick
@given(trees)
def test_random_trees(tree: Any) -> None:
    holds(load_bytes(as_yaml(tree).encode()))

"""The life of a firing in ARCHITECTURE.md is the walk that benchmarks/walk.py measures, by the same names."""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "comesh"
SECTION = re.compile(r"^## The life of one routine firing\n(.*?)^How a single step", re.DOTALL | re.MULTILINE)
STAGE = re.compile(r"^\*\*(.+?)\.?\*\*")
ROW = re.compile(r"^\| `(\S+\.py)` \| (`.+?`) \|")
MENTIONED = re.compile(r"`(\S+\.py)` `(\w+)`")


def section() -> str:
    found = SECTION.search((ROOT / "ARCHITECTURE.md").read_text())
    assert found is not None
    return found[1]


def rows() -> Iterator[tuple[str, str, str]]:
    """Stage, file and function, as the tables have them."""
    stage = ""
    for line in section().splitlines():
        if begins := STAGE.match(line):
            stage = begins[1].lower()
        elif row := ROW.match(line):
            for function in re.findall(r"`(\w+)`", row[2]):
                yield stage, row[1], function


def path_of(file: str) -> Path:
    """Below the core, where nothing else is said."""
    in_core = SOURCE / "core" / file
    return in_core if in_core.exists() else SOURCE / file


@cache
def functions_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_name_is_in_its_file() -> None:
    named = [(file, function) for _, file, function in rows()] + MENTIONED.findall(section())
    assert len(named) > 50
    lost = [f"{file} {function}" for file, function in named if function not in functions_of(path_of(file))]
    assert lost == []


def test_the_walk_goes_that_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    walk = importlib.import_module("walk").measure()
    called = {
        stage: {(one.file, one.name.split(".")[-1]) for one in part.calls} for stage, part in walk.stages()
    }
    told: dict[str, set[tuple[str, str]]] = {}
    for stage, file, function in rows():
        told.setdefault(stage, set()).add((file, function))
    frame = told.pop("every step")
    assert set(told) <= set(called)
    assert {
        stage: sorted(names - called[stage]) for stage, names in told.items() if names - called[stage]
    } == {}
    anywhere = set().union(*called.values())
    of_core = {(file, function) for file, function in frame if not file.startswith(("drivers/", "runtime/"))}
    assert of_core <= anywhere

"""Names of policies in a document: registered ones count, others are refused with their line."""

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from comesh.core.ids import RoutineId
from comesh.core.selection.policies import MEMBER_POLICIES
from comesh.core.strategies import LOCK_STRATEGIES
from comesh.deployment import plugins
from comesh.deployment.load import load_bytes
from comesh.deployment.plugins import PluginError, load_plugin
from comesh.deployment.program import load_program

TEXT = """\
settings:
  selection:
    members: {members}
    leaders: {leaders}
  locks: {{strategy: {strategy}}}
nodes:
  n1: {{place: [0m, 0m]}}
  n2: {{place: [1m, 0m]}}
  n3: {{place: [2m, 0m]}}
devices:
  lamp: {{on: n1, commands: {{go: }}}}
routines:
  night: {{every: 1h, do: [{{device: lamp, command: go}}]}}
"""
OWN = """\
from comesh.core.selection.policies import register_member_policy
from comesh.core.strategies import AtDevices, Manner, register_lock_strategy

def last_first(choice, draft):
    draft.take(range(len(choice.hashes))[::-1], choice.size)

register_member_policy("last-first", last_first)
register_lock_strategy("own-queue", Manner(AtDevices.QUEUE))
"""


def text(members: str = "lsh-mix", leaders: str = "locality", strategy: str = "sequential") -> str:
    return TEXT.format(members=members, leaders=leaders, strategy=strategy)


def told(document: str) -> list[str]:
    return [str(problem) for problem in load_bytes(document.encode(), "d.yaml").errors]


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    plugins.load_installed.cache_clear()
    yield
    plugins.load_installed.cache_clear()
    for registry in (MEMBER_POLICIES, LOCK_STRATEGIES):
        for name in {"last-first", "own-queue"} & set(registry.names()):
            registry.remove(name)


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, source: str) -> None:
    """As a package with an entry point would."""
    (folder / "own_policies_for_test.py").write_text(source)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "own_policies_for_test", raising=False)
    point = EntryPoint("mine", "own_policies_for_test", plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point] if group == plugins.GROUP else [])


def test_unknown_names_are_refused_with_the_line_and_the_known_ones() -> None:
    install = "if it is your own, install its package (comesh.policies) on every node"
    assert told(text(members="nearest")) == [
        "d.yaml:3: settings.selection.members: unknown member policy 'nearest'; "
        f"known here: locality, lsh-mix, random; {install}"
    ]
    assert told(text(leaders="randm")) == [
        "d.yaml:4: settings.selection.leaders: unknown leader policy 'randm'; did you mean 'random'?; "
        f"known here: locality, random, spread; {install}"
    ]
    assert told(text(strategy="fast")) == [
        "d.yaml:5: settings.locks.strategy: unknown lock strategy 'fast'; "
        f"known here: optimistic, priority, sequential; {install}"
    ]
    assert told(text(members="[random]")) == [
        "d.yaml:3: settings.selection.members: expected a text, got a list"
    ]


def test_a_file_registers_what_a_document_then_names(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN)
    load_plugin(str(own))
    load_plugin(str(own))
    program = load_program(text(members="last-first", strategy="own-queue"))
    assert program.plan.settings.members == "last-first"
    assert program.routines[RoutineId("night")].strategy == "own-queue"


def test_what_is_installed_is_found_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, OWN)
    assert told(text()) == []
    assert "last-first" not in MEMBER_POLICIES.names(), "only where it is needed"
    assert told(text(members="last-first", strategy="own-queue")) == []


def test_an_installed_package_that_cannot_be_had_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path, "import there_is_no_such_module\n")
    (problem,) = told(text(members="last-first"))
    assert "unknown member policy 'last-first'" in problem
    assert "plugin mine = own_policies_for_test: ModuleNotFoundError: No module named 'there_is" in problem


@pytest.mark.parametrize(
    ("source", "why"),
    [(None, "there is no such file"), ("1 // 0", "ZeroDivisionError"), ("x = (", "SyntaxError")],
)
def test_a_file_that_cannot_be_had_is_reported(tmp_path: Path, source: str | None, why: str) -> None:
    file = tmp_path / "wrong.py"
    if source is not None:
        file.write_text(source)
    with pytest.raises(PluginError, match=f"^plugin {file}: {why}"):
        load_plugin(str(file))
    with pytest.raises(PluginError, match=why):
        load_plugin(str(file))


def test_a_policy_that_fails_is_a_problem_of_the_document(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN.replace("range(len(choice.hashes))[::-1]", "[99]"))
    load_plugin(str(own))
    (problem,) = told(text(members="last-first"))
    assert "no plan can be made: member policy 'last-first' failed for c1: IndexError" in problem

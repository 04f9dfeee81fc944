"""docs/own-policy.md: its code runs, as a program and as a plug-in of `comesh sim`, and is true."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from comesh.cli.main import app
from comesh.core.selection.policies import MEMBER_POLICIES
from comesh.core.strategies import LOCK_STRATEGIES

PAGE = (Path(__file__).parents[2] / "docs" / "own-policy.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHELL = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    for registry, name in ((MEMBER_POLICIES, "rested"), (LOCK_STRATEGIES, "hopeful")):
        if name in registry.names():
            registry.remove(name)


def test_the_code_runs_and_compares() -> None:
    assert len(CODE) == 3
    printed = io.StringIO()
    names: dict[str, object] = {"__name__": "example"}
    with contextlib.redirect_stdout(printed):
        for part in CODE:
            exec(compile(part, "docs/own-policy.md", "exec"), names)
    lines = {line.split()[0]: line for line in printed.getvalue().splitlines()}
    assert all(f"    {line}\n" in PAGE for line in lines.values()), (
        "the page shows what it prints:\n" + printed.getvalue()
    )
    assert set(lines) == {"lsh-mix", "random", "rested", "sequential", "optimistic", "priority", "hopeful"}
    assert all(line.endswith("; 0 broken") for line in lines.values())
    median = {name: int(line.split(" ms in the median")[0].split()[-1]) for name, line in lines.items()}
    longest = {name: int(line.split(" ms at most")[0].split()[-1]) for name, line in lines.items()}
    assert median["hopeful"] < median["sequential"], "as the page says"
    assert 3 * longest["hopeful"] < longest["optimistic"]
    assert median["rested"] < median["random"]


def test_a_policy_and_a_strategy_take_about_twenty_lines() -> None:
    assert all(part.count("\n") <= 20 for part in CODE[:2])


def test_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("".join(CODE[:2]))
    command, _ = SHELL
    arguments = command.replace("--devices 100 --minutes 3", "--devices 30 --minutes 1").split()
    assert len(arguments) == 12 and arguments[0] == "comesh"
    result = CliRunner().invoke(app, arguments[1:])
    assert result.exit_code == 0, result.output
    assert "every promise of the protocol held" in result.output


def test_how_many_failures_it_bears_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("".join(CODE[:2]))
    _, command = SHELL
    result = CliRunner().invoke(app, command.replace("2000", "80").split()[1:])
    assert result.exit_code == 0, result.output
    assert "drawn: 80 times over real groups" in result.output


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--members", "rested"], "--members rested: unknown member policy 'rested'; "),
        (
            ["--strategy", "hopeful"],
            "--strategy hopeful: unknown lock strategy 'hopeful'; known here: optimistic",
        ),
        (["--plugin", "mine.py"], "plugin mine.py: there is no such file"),
        (["house.yaml", "--leaders", "random"], "--leaders is for a mesh without a FILE"),
    ],
)
def test_the_command_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["sim", "--minutes", "0.1", *arguments])
    assert result.exit_code == 2
    assert why in " ".join(result.output.split())

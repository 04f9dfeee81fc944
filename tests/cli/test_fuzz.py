import json

import pytest
from typer.testing import CliRunner

from comesh.cli import fuzz as fuzz_command
from comesh.cli.main import app
from comesh.sim.membership_swarm import Verdict


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["fuzz", *arguments])
    return result.exit_code, result.output


def test_a_seed_is_run_and_summed_up() -> None:
    code, output = run("--seeds", "2", "--jobs", "1", "--verbose")
    assert code == 0, output
    assert "seed 2:" in output
    assert "1 seeds" in output
    assert "radio: hop " in output
    assert "clocks: off by up to " in output
    assert "Settings(" not in output
    assert "0 with a broken promise" in output


def test_no_seed_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_command, "_verdicts", lambda *_: iter([]))
    code, output = run("--minutes", "1", "--json")
    assert code == 2
    assert "no seed was run" in output


def test_machines_get_json() -> None:
    code, output = run("--seeds", "2-3", "--jobs", "1", "--json")
    assert code == 0, output
    assert json.loads(output)["seeds"] == 2


def test_a_broken_promise_prints_its_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = Verdict(
        seed=7, nodes=3, faults=1, events=9, recovered_after_s=None, broken=("n1 buried n2, which runs",)
    )
    monkeypatch.setattr(fuzz_command, "_verdicts", lambda *_: iter([verdict]))
    code, output = run("--seeds", "7")
    assert code == 1
    assert "n1 buried n2, which runs" in output
    assert "replay: comesh fuzz --seeds 7-7 --verbose" in output


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--seeds", "x"),
        ("--seeds", "9-3"),
        ("--seeds", "1", "--minutes", "1"),
        ("--minutes", "-1"),
        ("--minutes", "0"),
        ("--minutes", "nan"),
    ],
)
def test_wrong_calls_say_what_is_expected(arguments: tuple[str, ...]) -> None:
    code, output = run(*arguments)
    assert code == 2
    assert "--seeds" in output

"""`comesh lab`: what it says before it breaks anything. Scenarios are played in tests/mesh."""

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from comesh.cli import lab
from comesh.cli.main import app
from comesh.lab.judging import Verdict
from comesh.lab.mesh import MeshError
from comesh.lab.scenarios import SCENARIOS, Outcome, Scenario
from comesh.lab.scenarios.play import Stage

runner = CliRunner()
KEPT = Verdict(
    violations=(),
    more_violations=0,
    losses=(),
    seconds=1.0,
    lines=1,
    runs=1,
    commits=1,
    acts=1,
    late_acts=0,
    leader_changes=0,
    lives=1,
    events=0,
    untold_ends=0,
    unsure=(),
)


def holds(stage: Stage) -> None:
    """It does."""
    stage.say("a step")
    stage.verdicts.append(KEPT)


def fails(stage: Stage) -> None:
    """It does not."""
    stage.verdicts.append(KEPT)
    raise MeshError("not within 5 s: the impossible")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = {
        "holds": Scenario("holds", holds),
        "fails": Scenario("fails", fails),
        "left-out": Scenario("left-out", holds, lambda: "it needs root"),
    }
    monkeypatch.setattr(lab, "SCENARIOS", scenarios)


def test_all_scenarios_are_listed_with_what_they_prove() -> None:
    result = runner.invoke(app, ["lab", "--list"])
    assert result.exit_code == 0
    for scenario in SCENARIOS.values():
        assert scenario.name in result.stdout
        assert scenario.proves in result.stdout


@pytest.mark.usefixtures("small")
def test_kept_and_skipped_scenarios_end_well(tmp_path: Path) -> None:
    result = runner.invoke(app, ["lab", "holds", "left-out", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0
    assert "holds: held in 0 s; kept: 1 safety" in result.stdout
    assert "left-out: left out: it needs root" in result.stdout
    assert "a step" in result.stderr
    told = msgspec.json.decode((tmp_path / "out" / "outcomes.json").read_bytes(), type=list[Outcome])
    assert [outcome.held for outcome in told] == [True, True]


@pytest.mark.usefixtures("small")
def test_a_broken_promise_ends_with_1_and_the_reason(tmp_path: Path) -> None:
    result = runner.invoke(app, ["lab", "--json", "--out", str(tmp_path / "out")])
    assert result.exit_code == 1
    told = msgspec.json.decode(result.stdout, type=list[Outcome])
    assert [outcome.failed for outcome in told] == ["", "not within 5 s: the impossible", ""]
    assert "fails: DID NOT HOLD" in result.stderr


def test_a_name_that_is_none_and_a_used_directory_are_refused(tmp_path: Path) -> None:
    result = runner.invoke(app, ["lab", "leader-die"])
    assert result.exit_code == 2
    assert "leaders-die" in result.stderr
    (tmp_path / "old.rec").touch()
    result = runner.invoke(app, ["lab", "leaders-die", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "is not empty" in result.stderr

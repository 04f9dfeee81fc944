"""docs/reproducing.md: the experiment of one's own runs as the page says, and again when its file changed."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from comesh.cli.main import app
from comesh.deployment import plugins
from comesh.experiments import catalogue

PAGE = (Path(__file__).parents[2] / "docs" / "reproducing.md").read_text()
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(COMMAND,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)

runner = CliRunner()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    as_in_a_new_process(monkeypatch)


def as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "_added", {})
    monkeypatch.setattr(catalogue, "_plugins", {})
    plugins._load_file.cache_clear()


def test_the_experiment_runs_in_other_processes_and_is_kept() -> None:
    Path("near.py").write_text(CODE)
    words = COMMAND.split()[1:]
    result = runner.invoke(app, [*words, "--jobs", "2"])
    assert result.exit_code == 0, result.output
    assert "(<= 0.8): met" in result.stdout
    assert Path("reproduction/figures/NEAR.png").exists()
    assert "comesh reproduce NEAR --quick --plugin near.py" in Path("reproduction/report.md").read_text()
    again = runner.invoke(app, words)
    assert "near: 12 cases measured before" in again.stderr
    fresh = runner.invoke(app, [*words, "--fresh", "--jobs", "1"])
    assert fresh.exit_code == 0
    assert "measured before" not in fresh.stderr


def test_what_its_file_says_is_measured_again_when_it_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["reproduce", "ONCE", "--plugin", "once.py", "--jobs", "1"]
    Path("once.py").write_text(CODE.replace("NEAR", "ONCE"))
    assert runner.invoke(app, words).exit_code == 0
    as_in_a_new_process(monkeypatch)
    Path("once.py").write_text(CODE.replace("NEAR", "ONCE").replace("epochs=4", "epochs=2"))
    assert "results of other commits left out: 12 of " in runner.invoke(app, words).stderr
    as_in_a_new_process(monkeypatch)
    Path("once.py").write_text(CODE.replace("NEAR", "ONCE"))
    assert "12 cases measured before" in runner.invoke(app, words).stderr, "that code is back"


def test_all_has_it_too() -> None:
    Path("near.py").write_text(CODE)
    result = runner.invoke(app, ["reproduce", "--list", "--plugin", "near.py"])
    assert result.stdout.splitlines()[-1].split()[0] == "NEAR"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        (CODE.replace("NEAR", "P1"), "an experiment's id is in capitals and new, and 'P1' is not"),
        (CODE.replace('"near"', '"client-delay"'), "name is in small letters and new, and 'client-delay'"),
        (CODE.replace("sizes, seed", "(), seed"), "there is no case at the scale quick"),
        (CODE.replace("members=POLICIES", "members=POLICY"), "its cases: NameError"),
    ],
)
def test_a_plugin_that_is_no_good_is_refused(code: str, says: str) -> None:
    name = f"bad_{abs(hash(code))}.py"
    Path(name).write_text(code)
    result = runner.invoke(app, ["reproduce", "P1", "--plugin", name])
    assert result.exit_code == 2
    assert says in result.stderr


def test_what_breaks_in_one_experiment_is_told_and_the_rest_is_there() -> None:
    broken = CODE.replace("NEAR", "BROKEN").replace("stage.facets(table,", "stage.facets({}['colour'],")
    Path("broken.py").write_text(broken)
    result = runner.invoke(app, ["reproduce", "BROKEN", "--plugin", "broken.py", "--jobs", "1"])
    assert result.exit_code == 1
    report = Path("reproduction/report.md").read_text()
    assert "failed: drawing: KeyError: 'colour'" in report
    assert "Hops to a quorum" in report


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        ('"seed": 0', "ValueError: a row has another 'seed' than the parameters of its case"),
        ('"deviation": float("nan")', "ValueError: a row has no number as its 'deviation'"),
        ('"policy": POLICIES.count', "TypeError"),
    ],
)
def test_a_row_that_cannot_be_kept_is_told(measured: str, says: str) -> None:
    wrong = CODE.replace("NEAR", "WRONG").replace('[{"quorum', f'[{{{measured}, "quorum')
    Path("wrong.py").write_text(wrong)
    result = runner.invoke(app, ["reproduce", "WRONG", "--plugin", "wrong.py", "--jobs", "1"])
    assert result.exit_code == 1
    assert says in Path("reproduction/report.md").read_text()

"""`comesh reproduce`: what it tells, writes and refuses; a small experiment is run as a user would."""

import json
import signal
import sys
from importlib import import_module
from pathlib import Path

import distributed
import pytest
from real_processes import Running, wait_for
from typer.testing import CliRunner

from comesh.cli.main import app
from comesh.experiments import catalogue, source
from comesh.experiments.catalogue import MODULES, experiment

runner = CliRunner()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """P1 with its smallest mesh only."""
    module = sys.modules[experiment("P1").campaign.run.__module__]
    monkeypatch.setattr(module, "PAPER", {50: 13.0})


@pytest.mark.usefixtures("small")
def test_one_experiment_is_run_told_and_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = runner.invoke(app, ["reproduce", "p1", "--out", str(out), "--jobs", "1", "--trials", "3"])
    assert result.exit_code == 0, result.output
    assert "P1. Candidates per selection" in result.stdout
    assert "off the paper's candidates, N = 50, both: 0.0471 (<= 0.25): met" in result.stdout
    for name in ("report.html", "report.md", "figures/P1.svg", "tables/candidates.csv"):
        assert (out / name).exists(), name
    told = (out / "report.md").read_text()
    assert "comesh reproduce p1 --quick --trials 3" in told
    assert f"(commit {source.commit()})" in told


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("fresh", [False, True])
def test_who_stops_is_reported_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: bool
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("comesh.cli.reproducing").reproduction, "run_campaign", stop)
    words = ["reproduce", "P1", "--out", str(tmp_path), "--jobs", "1", *(["--fresh"] if fresh else [])]
    told = " ".join(runner.invoke(app, words).stderr.split())
    assert ("the same command without --fresh goes on" in told) is fresh
    assert "goes on from there" in told


WAITS = """
import os
from pathlib import Path
from threading import Event

from comesh.experiments.stage import Campaign, Experiment


def run(case):
    Path(f"{case['seed']}.pid").write_text(str(os.getpid()))
    Event().wait()


campaign = Campaign("waits", lambda scale: [{"seed": seed} for seed in range(4)], run)
EXPERIMENT = Experiment(id="WAITS", title="", campaign=campaign, paper="", tables=None, draw=None)
"""


def test_who_is_killed_takes_along_what_was_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("waits.py").write_text(WAITS)

    def begun() -> list[Path]:
        return [Path("/proc", file.read_text()) for file in Path().glob("*.pid") if file.read_text()]

    words = ("reproduce", "WAITS", "--plugin", "waits.py", "--jobs", "2")
    with Running(tmp_path / "said", *words) as running:
        wait_for(lambda: len(begun()) == 2, "two cases under way")
        assert running.end(signal.SIGTERM) == 130, running.said()
    assert "stopped: 0 cases of 4 kept" in running.said()
    wait_for(lambda: not any(process.exists() for process in begun()), "the end of its processes")


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_goes_away_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("waits.py").write_text(WAITS.replace("Path(f", "Path(__file__).with_name(f"))
    options = {"processes": True, "dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster:
        address = cluster.scheduler_address
        words = ("WAITS", "--plugin", "waits.py", "--backend", "dask", "--scheduler", address)
        with Running(tmp_path / "said", "reproduce", *words) as running:
            wait_for(lambda: any(tmp_path.glob("*.pid")), "a case under way")
            cluster.close()
            assert running.process.wait(60) == 2
    said = " ".join(running.said().split())
    assert f"{address}: the scheduler of the cluster is gone; the same command goes on" in said
    assert "Traceback" not in said


BREAKS = """
from comesh.experiments.stage import Campaign, Experiment


def run(case):
    if case["seed"] > 1:
        raise ValueError(f"seed {case['seed']} is too much")
    return [{"value": 1}]


campaign = Campaign("breaks", lambda scale: [{"seed": seed} for seed in range(4)], run)
EXPERIMENT = Experiment(id="BREAKS", title="", campaign=campaign, paper="", tables=None, draw=None)
"""


def test_cases_that_fail_are_reported_while_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(import_module("comesh.cli.reproducing"), "PLAIN_S", 0)
    for known in ("_added", "_plugins"):  # in this test alone
        monkeypatch.setattr(catalogue, known, {})
    Path("breaks.py").write_text(BREAKS)
    told = runner.invoke(app, ["reproduce", "BREAKS", "--plugin", "breaks.py", "--jobs", "1"])
    assert told.exit_code == 1
    said = " ".join(told.stderr.split())
    assert said.count("a case failed: {'seed': 2}: ValueError: seed 2 is too much") == 1
    assert "3 of 4 cases in all, 1 failed, about" in said
    assert "4 of 4 cases in all, 2 failed, none left" in said


UNDRAWN = """
from comesh.experiments.stage import Campaign, Experiment


def run(case):
    if case["seed"] > 1:
        raise ValueError(f"seed {case['seed']} is too much")
    return [{"value": 1}]


def tables(table):
    return {"": table}


def draw(table):
    raise KeyError("no such column")


campaign = Campaign("undrawn", lambda scale: [{"seed": seed} for seed in range(7)], run)
EXPERIMENT = Experiment(id="UNDRAWN", title="", campaign=campaign, paper="", tables=tables, draw=draw)
"""


def test_failures_are_reported_and_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what breaks after all is measured."""
    monkeypatch.chdir(tmp_path)
    for known in ("_added", "_plugins"):  # in this test alone
        monkeypatch.setattr(catalogue, known, {})
    words = ["reproduce", "UNDRAWN", "--plugin", "undrawn.py", "--jobs", "1"]
    Path("undrawn.py").write_text(UNDRAWN)
    told = runner.invoke(app, words)
    assert told.exit_code == 1
    assert "without 5 of 7 cases, which failed" in told.stdout
    assert told.stdout.count("  failed: {'seed':") == 3
    assert "and 2 more cases failed" in told.stdout
    assert "UNDRAWN: failed: drawing: KeyError: 'no such column'" in told.stdout


def test_results_that_cannot_be_read_are_reported_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for known in ("_added", "_plugins"):
        monkeypatch.setattr(catalogue, known, {})
    Path("undrawn.py").write_text(UNDRAWN.replace('{"": table}', "table.missing"))
    told = runner.invoke(app, ["reproduce", "UNDRAWN", "--plugin", "undrawn.py", "--jobs", "1"])
    failed = [line for line in told.stdout.splitlines() if line.startswith("  failed: ")]
    assert failed[0].startswith("  failed: reading its results: AttributeError")
    assert "and 3 more cases failed" in told.stdout


DIES = """
import os
import signal

from comesh.experiments.stage import Campaign, Experiment


def run(case):
    os.kill(os.getpid(), signal.SIGKILL)


campaign = Campaign("dies", lambda scale: [{"seed": seed} for seed in range(2)], run)
EXPERIMENT = Experiment(id="DIES", title="", campaign=campaign, paper="", tables=None, draw=None)
"""


def test_a_process_that_was_killed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dies.py").write_text(DIES)
    with Running(tmp_path / "said", "reproduce", "DIES", "--plugin", "dies.py", "--jobs", "2") as running:
        assert running.process.wait(60) == 2
    said = " ".join(running.said().split())
    assert "DIES: a process that measured it was killed, perhaps for want of memory (fewer --jobs" in said
    assert "Traceback" not in said


@pytest.mark.usefixtures("small")
def test_results_of_another_commit_are_taken_if_it_is_declared_equal_and_told(tmp_path: Path) -> None:
    words = ["reproduce", "P1", "--out", str(tmp_path), "--jobs", "1"]
    runner.invoke(app, words)
    file = tmp_path / "cases" / "candidates.jsonl"
    commit, other = source.commit(), "0123456789ab"
    file.write_text(file.read_text().replace(commit, other))
    as_measured = [*words, "--as-measured", other]
    result = runner.invoke(app, [*as_measured, "--json"])
    assert result.exit_code == 0, result.output
    note = f"measured at {other} (declared equal)"
    assert json.loads(result.stdout)["experiments"][0]["note"] == note
    assert f"--as-measured {other}" in (tmp_path / "report.md").read_text()
    assert note in runner.invoke(app, as_measured).stdout
    assert commit not in file.read_text(), "nothing was measured again"
    without = runner.invoke(app, words)
    assert f"results of other commits left out: 10 of {other}" in " ".join(without.stderr.split())
    assert commit in file.read_text(), "without it all is"


@pytest.mark.usefixtures("small")
def test_a_missed_bar_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[experiment("P1").campaign.run.__module__]
    monkeypatch.setattr(module, "PAPER", {50: 130.0})
    result = runner.invoke(app, ["reproduce", "P1", "--out", str(tmp_path), "--jobs", "1", "--json"])
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["good"] is False
    assert told["experiments"][0]["bars"][0]["met"] is False


def test_all_experiments_are_listed() -> None:
    result = runner.invoke(app, ["reproduce", "--list"])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(MODULES)
    some = runner.invoke(app, ["reproduce", "p7", "A", "--list", "--json"])
    assert [one["id"] for one in json.loads(some.stdout)] == ["P7", "A"]
    assert runner.invoke(app, ["reproduce", "P99", "--list"]).exit_code == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--fresh", "--as-measured", "HEAD"], "which of them?"),
        (["P1", "P99", "NEAR"], "there is no experiment P99, NEAR"),
        (["NEAR"], "comes with --plugin FILE, as its EXPERIMENT"),
        (["P1,P3"], "P1,P3: expected IDs with spaces between them, such as P1 P3"),
        (["P1-P3", "P4"], "P1-P3: expected IDs with spaces between them"),
        (["P1", "--backend", "slurm"], "expected joblib or dask"),
        (["P1", "--backend", "dask"], "--scheduler ADDRESS go together"),
        (["P1", "--scheduler", "tcp://127.0.0.1:1"], "--scheduler ADDRESS go together"),
        (["P1", "--backend", "dask", "--scheduler", "nonsense"], "expected an address such as tcp://"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], says: str) -> None:
    result = runner.invoke(app, ["reproduce", *words])
    assert result.exit_code == 2
    assert says in result.stderr


@pytest.mark.parametrize(
    ("missing", "extra", "words"),
    [
        ("matplotlib", "sim", ["P1"]),
        ("distributed", "dask", ["P1", "--backend", "dask", "--scheduler", "tcp://127.0.0.1:1"]),
    ],
)
def test_what_is_not_installed_is_named(
    missing: str, extra: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = ("comesh.experiments", "comesh.cli.reproducing")
    for name in [one for one in sys.modules if one.startswith(loaded)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    for name in [one for one in sys.modules if one.startswith(f"{missing}.")]:
        monkeypatch.delitem(sys.modules, name)
    result = runner.invoke(app, ["reproduce", *words])
    assert result.exit_code == 2
    assert f"pip install 'comesh[{extra}]'" in result.stderr

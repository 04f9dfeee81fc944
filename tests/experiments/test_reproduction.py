"""Campaigns: what was measured is not measured again, all backends come to the same, errors are told."""

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import distributed
import msgspec
import pytest
import toy_experiment
from typer.testing import CliRunner

from comesh.cli.main import app
from comesh.experiments import backends, catalogue, report, source
from comesh.experiments.backends import Done, Processes
from comesh.experiments.report import Made
from comesh.experiments.reproduction import Asked, Progress, Result, reproduce, run_campaign, table_of
from comesh.experiments.source import Code, code_of
from comesh.experiments.stage import Parameters, Recorded, Row, Scale
from comesh.experiments.store import Outcome, Store

TOY = toy_experiment.EXPERIMENT
MADE = Made(
    command="comesh reproduce P1 --quick", scale=Scale.QUICK, version="0", day="2026-01-01", commit="c0"
)
OTHER = "0123456789ab"


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """P1 is the toy."""
    monkeypatch.setattr(backends, "experiment", lambda name: TOY)


def asked(out: Path, scale: Scale = Scale.QUICK, **more: object) -> Asked:
    return msgspec.structs.replace(Asked(scale=scale, out=out), **more)


def toy_result(out: Path, scale: Scale = Scale.QUICK, equal: Sequence[str] = ()) -> Result:
    return reproduce([TOY], asked(out, scale, equal=equal), Processes(1), progress=Progress())[0]


def store(out: Path, *equal: str) -> Store:
    return Store(out, TOY.campaign, code_of(TOY.campaign), equal)


def test_what_was_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = toy_result(tmp_path)
    assert before.table.numbers("square") == [0, 1, 4, 9]

    def never(*_: object) -> Done:
        raise AssertionError("measured again")

    monkeypatch.setattr(backends, "run_case", never)
    assert toy_result(tmp_path).table.rows == before.table.rows


def test_only_what_is_missing_is_measured(tmp_path: Path) -> None:
    measured: list[Parameters] = []

    class Noting(Progress):
        def done(self, campaign: object, outcome: Outcome) -> None:
            measured.append(outcome.parameters)

    toy_result(tmp_path)
    file = tmp_path / "cases" / "squares.jsonl"
    lines = file.read_bytes().splitlines()
    file.write_bytes(lines[0] + b"\n" + lines[2] + b"\n" + lines[3][:20])  # cut off while it was written
    reproduce([TOY], asked(tmp_path), Processes(1), progress=Noting())
    assert [case["number"] for case in measured] == [1, 3]


def test_long_cases_begin_first(tmp_path: Path) -> None:
    begun: list[int] = []

    class Noting(Progress):
        def done(self, campaign: object, outcome: Outcome) -> None:
            begun.append(outcome.parameters["number"])

    campaign = msgspec.structs.replace(TOY.campaign, about_s=lambda case: float(case["number"]))
    slow = msgspec.structs.replace(TOY, campaign=campaign)
    reproduce([slow], asked(tmp_path), Processes(1), progress=Noting())
    assert begun == [3, 2, 1, 0]


def test_real_trials_are_as_many_at_once_as_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once: list[int] = []

    def counting(jobs: int) -> Processes:
        at_once.append(jobs)
        return Processes(1)

    # In the module that this `reproduce` is of: a test of what is not installed may have loaded another.
    monkeypatch.setitem(reproduce.__globals__, "Processes", counting)
    real = msgspec.structs.replace(TOY, campaign=msgspec.structs.replace(TOY.campaign, real=True))
    reproduce([real], asked(tmp_path, trials=5), Processes(1), progress=Progress())
    assert at_once == [5]


def test_who_must_be_quiet_is_run_last_with_few_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[tuple[int, list[int]]] = []

    class Noting(Processes):
        def __init__(self, jobs: int) -> None:
            super().__init__(1)
            self._at_once = jobs

        def outcomes(self, name: str, code: Code, cases: Iterable[Parameters]) -> Iterator[Done]:
            some = list(cases)
            began.append((self._at_once, [case["number"] for case in some]))
            return super().outcomes(name, code, some)

    monkeypatch.setitem(reproduce.__globals__, "Processes", Noting)
    campaign = msgspec.structs.replace(TOY.campaign, real=True, is_quiet=lambda case: case["number"] == 1)
    noisy = msgspec.structs.replace(TOY, campaign=campaign)
    reproduce([noisy], asked(tmp_path, trials=5), Processes(1), progress=Progress())
    assert began == [(5, [0, 2, 3]), (2, [1])]


def test_fresh_measures_again_what_was_asked_for_and_keeps_the_rest(tmp_path: Path) -> None:
    toy_result(tmp_path, Scale.FULL)
    measured: list[int] = []

    class Noting(Progress):
        def done(self, campaign: object, outcome: Outcome) -> None:
            measured.append(outcome.parameters["number"])

    reproduce([TOY], asked(tmp_path, fresh=True), Processes(1), progress=Noting())
    assert measured == [0, 1, 2, 3]
    with store(tmp_path) as kept:
        assert kept.get({"number": 5, "seed": 1}) is not None


def test_two_at_once_do_not_write_into_one_file(tmp_path: Path) -> None:
    with (
        store(tmp_path),
        pytest.raises(BlockingIOError, match="another comesh reproduce"),
        store(tmp_path),
    ):
        pass


def test_processes_come_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # other processes have the real P1
    real = catalogue.experiment("P1")
    code = code_of(real.campaign)
    some = [case for case in real.campaign.cases(Scale.QUICK) if case["devices"] == 50]
    alone = list(Processes(1).outcomes("P1", code, some))
    spread = list(Processes(2).outcomes("P1", code, list(reversed(some))))
    assert _rows(spread) == _rows(alone)


@pytest.mark.filterwarnings("ignore")
def test_the_command_on_a_dask_cluster_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers, each a process of its own: the same rows in the same order, and the same report."""
    monkeypatch.undo()  # workers have the real experiments
    here, there = tmp_path / "here", tmp_path / "there"
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        on_cluster = ["--backend", "dask", "--scheduler", cluster.scheduler_address, "--out", str(there)]
        spread = CliRunner().invoke(app, ["reproduce", "P1", *on_cluster])
    alone = CliRunner().invoke(app, ["reproduce", "P1", "--jobs", "1", "--out", str(here)])
    assert (spread.exit_code, alone.exit_code) == (0, 0), spread.output + alone.output
    table = Path("tables", "candidates.csv")
    assert (there / table).read_text() == (here / table).read_text()


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_without_workers_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(backends, "WORKERS_S", 0.5)
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1") as cluster:
        on_cluster = ["--backend", "dask", "--scheduler", cluster.scheduler_address, "--out", str(tmp_path)]
        result = CliRunner().invoke(app, ["reproduce", "P1", *on_cluster])
    assert result.exit_code == 2, result.output
    assert f"{cluster.scheduler_address}: no workers after" in result.stderr
    assert "dask worker" in result.stderr


def _rows(done: list[Done]) -> dict[bytes, list[dict[str, object]]]:
    return {msgspec.json.encode(one.outcome.parameters): one.outcome.rows for one in done}


def test_the_parameters_are_those_of_the_cases_that_an_experiment_looks_at(tmp_path: Path) -> None:
    result = toy_result(tmp_path)
    assert report.parameters_of(result).startswith("number 0 to 3; seed 1. 4 cases, which took ")
    few = msgspec.structs.replace(result.experiment, looks_at=lambda case: case["number"] == 2)
    told = report.parameters_of(msgspec.structs.replace(result, experiment=few))
    assert told.startswith("number 2; seed 1. 1 case of the 4 of squares, all of which took ")


def test_equal_figures_are_equal_files(tmp_path: Path) -> None:
    for name in ("one", "other"):
        report.write([toy_result(tmp_path / name)], tmp_path / name, MADE)
    one, other = (tmp_path / name / "figures" / "P1.svg" for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_outcomes_are_in_the_order_of_the_cases(tmp_path: Path) -> None:
    class Backwards(Processes):
        def outcomes(self, name: str, code: Code, cases: Iterable[Parameters]) -> Iterator[Done]:
            yield from reversed(list(super().outcomes(name, code, list(cases))))

    found = run_campaign(TOY, asked(tmp_path), Backwards(1), Progress())
    assert table_of(found).numbers("square") == [0, 1, 4, 9]


def test_no_experiment_needs_a_window() -> None:
    assert "matplotlib.pyplot" not in sys.modules


def relabelled(out: Path, lines: slice = slice(None), **change: str) -> None:
    """Results become those of another commit."""
    file = out / "cases" / "squares.jsonl"
    found = [msgspec.json.decode(line, type=Outcome) for line in file.read_bytes().splitlines()]
    found[lines] = [msgspec.structs.replace(one, **{"commit": OTHER, **change}) for one in found[lines]]
    file.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in found))


def test_results_of_another_commit_do_not_count_unless_it_is_declared_equal(tmp_path: Path) -> None:
    toy_result(tmp_path)
    relabelled(tmp_path)
    with store(tmp_path) as kept:
        assert kept.left_out == {OTHER: 4}
        assert kept.get({"number": 1, "seed": 1}) is None
    with store(tmp_path, OTHER) as kept:
        assert not kept.left_out
        assert kept.get({"number": 1, "seed": 1}) is not None
    result = toy_result(tmp_path, equal=[OTHER])
    assert result.commits == {OTHER: 4}
    assert result.note == f"measured at {OTHER} (declared equal)"
    (section,) = report.write([result], tmp_path, MADE)
    assert section.verdict == "1 met"
    assert f"measured at commit {OTHER}" in (tmp_path / "report.md").read_text()


def test_this_commits_results_go_before_those_that_are_declared_equal(tmp_path: Path) -> None:
    toy_result(tmp_path)
    here = code_of(TOY.campaign).name
    relabelled(tmp_path, slice(1, None))
    with store(tmp_path) as kept:
        kept.put(Outcome(commit=OTHER, parameters={"number": 0, "seed": 1}, rows=[{"square": 77}]))
    result = toy_result(tmp_path, equal=[OTHER])
    assert result.commits == {here: 1, OTHER: 3}
    assert result.table.numbers("square") == [0, 1, 4, 9]


def test_what_broke_with_this_commit_is_measured_again(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        broke = Outcome(commit=code_of(TOY.campaign).name, parameters={"number": 2, "seed": 1}, error="no")
        kept.put(broke)
    with store(tmp_path) as kept:
        assert kept.get({"number": 2, "seed": 1}) is None
    assert toy_result(tmp_path).table.numbers("square") == [0, 1, 4, 9]


def test_uncommitted_changes_are_part_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for status, name in (("", OTHER), (" M core/node.py", f"{OTHER}+{source.package_digest()}")):
        said = {"log": OTHER, "status": status, "ls-files": "comesh/__init__.py"}
        monkeypatch.setattr(source, "_git", lambda *words, said=said: said[words[0]])
        source.commit.cache_clear()
        assert source.commit() == name
    monkeypatch.setattr(source, "_git", lambda *_: "")
    source.commit.cache_clear()
    assert source.commit().endswith(f"+{source.package_digest()}"), "no checkout: version and digest"
    monkeypatch.undo()
    source.commit.cache_clear()


def test_own_experiments_depend_on_the_plugins_that_were_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / "one.py", tmp_path / "other.py"]
    for file in files:
        file.write_text(f"NAME = {file.stem!r}\n")
    assert code_of(TOY.campaign).plugins == ""
    monkeypatch.setattr(catalogue, "_added", {"TOY": TOY})
    monkeypatch.setattr(catalogue, "_plugins", {"one.py": files[0]})
    code = code_of(TOY.campaign)
    assert code.name == f"{code.commit}, plugins {code.plugins}"
    monkeypatch.setattr(catalogue, "_plugins", {"one.py": files[0], "other.py": files[1]})
    assert code_of(TOY.campaign, ["one.py"]) == code
    assert code_of(TOY.campaign, ["one.py", "other.py"]) == code_of(TOY.campaign) != code


def test_a_worker_with_other_code_says_so() -> None:
    code = code_of(TOY.campaign)
    done = backends.run_case("P1", code._replace(digest="0" * 8), {"number": 1, "seed": 1})
    assert "restart the workers" in done.outcome.error


def test_an_error_in_a_case_is_told_and_tried_again(tmp_path: Path) -> None:
    result = toy_result(tmp_path, Scale.FULL)
    assert [one.parameters["number"] for one in result.failed] == [7]
    assert "seven is too much" in result.failed[0].error
    assert not result.is_good
    [section] = report.write([result], tmp_path, MADE)
    assert section.verdict == "1 met; failed: 1; without 1 of 8 cases, which failed"
    assert section.png, "what there is is drawn"
    assert "seven is too much" in (tmp_path / "report.md").read_text()
    with store(tmp_path) as kept:
        assert kept.get({"number": 7, "seed": 1}) is None


def test_everything_is_written(tmp_path: Path) -> None:
    report.write([toy_result(tmp_path)], tmp_path, MADE)
    rows = list(csv.DictReader((tmp_path / "tables" / "squares.csv").read_text().splitlines()))
    assert rows[3] == {"number": "3", "seed": "1", "square": "9"}
    (bar,) = csv.DictReader((tmp_path / "bars.csv").read_text().splitlines())
    assert (bar["experiment"], bar["value"], bar["sense"], bar["verdict"]) == ("P1", "9.0", ">=", "met")
    for ending, begin in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        assert (tmp_path / "figures" / f"P1{ending}").read_bytes().startswith(begin)
    told = (tmp_path / "report.md").read_text()
    assert "comesh reproduce P1 --quick" in told
    assert "number 0 to 3; seed 1. 4 cases" in told
    assert "| the largest \\| square | 9 | >= 9 | met |" in told
    assert "| 3 | 9 |" in told
    page = (tmp_path / "report.html").read_text()
    assert "Squares &lt;grow&gt;." in page
    assert "data:image/png;base64," in page
    assert "http" not in page.split("base64,")[0]
    assert "<td>the largest | square</td><td>9</td><td>&gt;= 9</td><td>met</td>" in page


def test_recordings_are_kept_and_rows_can_be_computed_from_them_anew(tmp_path: Path) -> None:
    """As if the measure had been wrong, and is mended."""

    def run(case: Parameters) -> Recorded:
        return Recorded([{"square": -1}], str(case["number"]).encode())

    def reread(recording: bytes) -> list[Row]:
        return [{"square": int(recording) ** 2}]

    campaign = msgspec.structs.replace(TOY.campaign, run=run, reread=reread)
    recorded = msgspec.structs.replace(TOY, campaign=campaign)
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(backends, "experiment", lambda name: recorded)
    (wrong,) = reproduce([recorded], asked(tmp_path), Processes(1), progress=Progress())
    monkeypatch.undo()
    assert wrong.table.numbers("square") == [-1] * 4
    assert len(list((tmp_path / "recordings" / "squares").glob("*.xz"))) == 4
    (mended,) = reproduce([recorded], asked(tmp_path, reread=True), Processes(1), progress=Progress())
    assert mended.table.numbers("square") == [0, 1, 4, 9]
    assert mended.note == "4 cases computed anew from their recordings"
    (kept,) = reproduce([recorded], asked(tmp_path), Processes(1), progress=Progress())
    assert kept.table.numbers("square") == [0, 1, 4, 9]

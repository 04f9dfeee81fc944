"""Campaigns: what was measured is not measured again, all backends come to the same, errors are told."""

import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import distributed
import msgspec
import pyarrow.parquet
import pytest
import toy_experiment
from typer.testing import CliRunner

from comesh.cli.main import app
from comesh.experiments import backends, catalogue, report
from comesh.experiments.backends import Processes
from comesh.experiments.campaign import Parameters, Scale, Verdict
from comesh.experiments.reproduction import Progress, Result, reproduce, run_campaign, table_of
from comesh.experiments.section import Made
from comesh.experiments.store import Outcome, Reuse, Store, code_of, measures_of, used_by, without_words
from comesh.experiments.table import Table, percentile

TOY = toy_experiment.EXPERIMENT
MADE = Made(command="comesh reproduce P1 --quick", scale=Scale.QUICK, version="0", day="2026-01-01")


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """P1 is the toy."""
    monkeypatch.setattr(backends, "experiment", lambda name: TOY)


def toy_result(out: Path, scale: Scale = Scale.QUICK) -> Result:
    return reproduce([TOY], scale, out, Processes(1), progress=Progress())[0]


def test_what_was_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = toy_result(tmp_path)
    assert before.table.numbers("square") == [0, 1, 4, 9]

    def never(*_: object) -> Outcome:
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
    reproduce([TOY], Scale.QUICK, tmp_path, Processes(1), progress=Noting())
    assert [case["number"] for case in measured] == [1, 3]


def test_results_of_other_code_do_not_count(tmp_path: Path) -> None:
    toy_result(tmp_path)
    file = tmp_path / "cases" / "squares.jsonl"
    with Store(tmp_path / "cases", TOY.campaign) as store:
        code = store.code
    file.write_text(file.read_text().replace(code, "0" * len(code)))
    with Store(tmp_path / "cases", TOY.campaign) as store:
        assert store.dropped == 4
        assert store.get({"number": 1, "seed": 1}) is None


def test_results_of_other_code_count_if_they_are_wanted_and_the_report_says_so(tmp_path: Path) -> None:
    toy_result(tmp_path)
    file = tmp_path / "cases" / "squares.jsonl"
    code = code_of(TOY.campaign)
    first, *others = file.read_text().splitlines(keepends=True)
    older = [
        line.replace(code, "0" * len(code)).replace('"square":', '"square":1') for line in (first, *others)
    ]
    file.write_text("".join([first, *older]))
    wanted = reproduce([TOY], Scale.QUICK, tmp_path, Processes(1), progress=Progress(), reuse=Reuse.ANY_CODE)
    assert wanted[0].table.numbers("square") == [0, 11, 14, 19]
    assert wanted[0].codes == [code, "0" * len(code)]
    report.write(wanted, tmp_path, MADE)
    assert "; partly measured with other code |  |" in (tmp_path / "report.md").read_text()
    again = toy_result(tmp_path)
    assert again.table.numbers("square") == [0, 1, 4, 9]
    report.write([again], tmp_path, MADE)
    assert "measured with other code" not in (tmp_path / "report.md").read_text()


def test_what_broke_with_this_code_is_measured_again_whatever_other_code_came_to(tmp_path: Path) -> None:
    toy_result(tmp_path)
    file = tmp_path / "cases" / "squares.jsonl"
    code = code_of(TOY.campaign)
    good = file.read_text()
    broke = msgspec.json.encode(Outcome(code=code, parameters={"number": 2, "seed": 1}, error="no")) + b"\n"
    file.write_bytes(broke + good.replace(code, "0" * len(code)).encode())
    with Store(tmp_path / "cases", TOY.campaign, any_code=True) as store:
        assert store.get({"number": 1, "seed": 1}) is not None
        assert store.get({"number": 2, "seed": 1}) is None


def test_the_index_tells_what_differs_in_the_words_of_the_rows_that_do(tmp_path: Path) -> None:
    result = toy_result(tmp_path)
    short, silent = (
        msgspec.structs.replace(result.comparisons[0], what=f"row {number}", in_short=words)
        for number, words in enumerate(("Squares `shrink`.", ""))
    )
    report.write([msgspec.structs.replace(result, comparisons=[short])], tmp_path, MADE)
    assert "shrink" not in (tmp_path / "report.md").read_text()
    differing = [msgspec.structs.replace(one, verdict=Verdict.DIFFERS) for one in (short, short, silent)]
    report.write([msgspec.structs.replace(result, comparisons=differing)], tmp_path, MADE)
    assert "| 3 differs | Squares `shrink`. See: row 1. |" in (tmp_path / "report.md").read_text()
    assert "<td>Squares <code>shrink</code>. See: row 1.</td>" in (tmp_path / "report.html").read_text()


def test_a_table_that_cannot_be_written_is_told_and_the_report_is_there(tmp_path: Path) -> None:
    toy_result(tmp_path)
    file = tmp_path / "cases" / "squares.jsonl"
    code = code_of(TOY.campaign)
    first, *others = file.read_text().splitlines(keepends=True)
    older = first.replace(code, "0" * len(code)).replace('"square":0', '"square":"none"')
    file.write_text("".join([older, *others]))
    wanted = reproduce([TOY], Scale.QUICK, tmp_path, Processes(1), progress=Progress(), reuse=Reuse.ANY_CODE)
    (section,) = report.write(wanted, tmp_path, MADE)
    assert any(one.startswith("writing its table") for one in section.failed)
    assert (tmp_path / "report.html").is_file()


SOURCE = """
from comesh.experiments.measures.churn import drawn
FLAT = 0.25
SHARE: float = 0.4
def run(case):
    return helper(case)
def helper(case):
    return [{"crash": len(drawn(case["nodes"], SHARE, 1).crash)}]
def compare(table):
    return FLAT
"""


def test_results_depend_on_what_run_uses_and_not_on_how_they_are_told(tmp_path: Path) -> None:
    module = tmp_path / "some_campaign.py"

    def used(source: str) -> list[str]:
        module.write_text(source)
        return used_by("run", module)

    before = used(SOURCE)
    assert used(SOURCE.replace("0.25", "0.5")) == before
    assert used(SOURCE.replace("return FLAT", "return -FLAT")) == before
    assert used(SOURCE.replace("0.4", "0.5")) != before
    assert used(SOURCE.replace('"crash"', '"crashed"')) != before


def test_results_depend_on_the_measures_that_are_imported_and_what_these_import(tmp_path: Path) -> None:
    module = tmp_path / "some_campaign.py"
    module.write_text(SOURCE)
    assert {path.name for path in measures_of(module)} == {"churn.py"}
    module.write_text("from comesh.experiments.measures.group_churn import under_churn")
    assert {"group_churn.py", "churn.py", "mesh.py", "table.py"} <= {one.name for one in measures_of(module)}
    assert all(path.exists() for path in measures_of(module))


def test_long_cases_begin_first(tmp_path: Path) -> None:
    begun: list[int] = []

    class Noting(Progress):
        def done(self, campaign: object, outcome: Outcome) -> None:
            begun.append(outcome.parameters["number"])

    campaign = msgspec.structs.replace(TOY.campaign, about_s=lambda case: float(case["number"]))
    slow = msgspec.structs.replace(TOY, campaign=campaign)
    reproduce([slow], Scale.QUICK, tmp_path, Processes(1), progress=Noting())
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
    reproduce([real], Scale.QUICK, tmp_path, Processes(1), progress=Progress(), trials=5)
    assert at_once == [5]


def test_who_must_be_quiet_is_run_last_with_few_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[tuple[int, list[int]]] = []

    class Noting(Processes):
        def __init__(self, jobs: int) -> None:
            super().__init__(1)
            self._at_once = jobs

        def outcomes(self, name: str, code: str, cases: Iterable[Parameters]) -> Iterator[Outcome]:
            some = list(cases)
            began.append((self._at_once, [case["number"] for case in some]))
            return super().outcomes(name, code, some)

    monkeypatch.setitem(reproduce.__globals__, "Processes", Noting)
    campaign = msgspec.structs.replace(TOY.campaign, real=True, is_quiet=lambda case: case["number"] == 1)
    noisy = msgspec.structs.replace(TOY, campaign=campaign)
    reproduce([noisy], Scale.QUICK, tmp_path, Processes(1), progress=Progress(), trials=5)
    assert began == [(5, [0, 2, 3]), (2, [1])]


def test_fresh_measures_again_what_was_asked_for_and_keeps_the_rest(tmp_path: Path) -> None:
    toy_result(tmp_path, Scale.FULL)
    measured: list[int] = []

    class Noting(Progress):
        def done(self, campaign: object, outcome: Outcome) -> None:
            measured.append(outcome.parameters["number"])

    reproduce([TOY], Scale.QUICK, tmp_path, Processes(1), progress=Noting(), reuse=Reuse.NONE)
    assert measured == [0, 1, 2, 3]
    with Store(tmp_path / "cases", TOY.campaign) as store:
        assert store.get({"number": 5, "seed": 1}) is not None


def test_two_at_once_do_not_write_into_one_file(tmp_path: Path) -> None:
    with (
        Store(tmp_path / "cases", TOY.campaign),
        pytest.raises(BlockingIOError, match="another comesh reproduce"),
        Store(tmp_path / "cases", TOY.campaign),
    ):
        pass


def test_what_is_said_in_a_source_does_not_matter_to_results() -> None:
    plain = b'"""What for."""\nA = "b"\n\n\ndef f(x):  # why\n    """How."""\n    return (x, A)\n'
    other = b'A = "b"\n"""What it is."""\ndef f(x):\n    return (\n        x, A,\n    )\n'
    assert without_words(plain) == without_words(other)
    assert without_words(plain) != without_words(plain.replace(b'"b"', b'"c"'))
    assert without_words(plain) == without_words(plain.replace(b"What for", b"Why"))


def test_results_depend_on_the_plugins_that_were_named_and_not_on_those_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / "one.py", tmp_path / "other.py"]
    for file in files:
        file.write_text(f"NAME = {file.stem!r}\n")
    monkeypatch.setattr(catalogue, "_added", {"TOY": TOY})
    monkeypatch.setattr(catalogue, "_plugins", {"one.py": files[0]})
    code = code_of(TOY.campaign)
    monkeypatch.setattr(catalogue, "_plugins", {"one.py": files[0], "other.py": files[1]})
    assert code_of(TOY.campaign, ["one.py"]) == code
    assert code_of(TOY.campaign, ["one.py", "other.py"]) == code_of(TOY.campaign) != code


def test_a_worker_with_other_code_says_so() -> None:
    outcome = backends.run_case("P1", "0" * 16, {"number": 1, "seed": 1})
    assert "restart the workers" in outcome.error


def test_an_error_in_a_case_is_told_and_tried_again(tmp_path: Path) -> None:
    result = toy_result(tmp_path, Scale.FULL)
    assert [one.parameters["number"] for one in result.failed] == [7]
    assert "seven is too much" in result.failed[0].error
    assert not result.is_good
    [section] = report.write([result], tmp_path, MADE)
    assert section.verdict == "failed: 1; 1 agrees; without 1 of 8 cases, which failed"
    assert section.figure == "P1", "what there is is drawn"
    assert "seven is too much" in (tmp_path / "report.md").read_text()
    with Store(tmp_path / "cases", TOY.campaign) as store:
        assert store.get({"number": 7, "seed": 1}) is None


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


def _rows(outcomes: list[Outcome]) -> dict[bytes, list[dict[str, object]]]:
    return {msgspec.json.encode(one.parameters): one.rows for one in outcomes}


def test_everything_is_written(tmp_path: Path) -> None:
    report.write([toy_result(tmp_path)], tmp_path, MADE)
    rows = list(csv.DictReader((tmp_path / "tables" / "squares.csv").read_text().splitlines()))
    assert rows[3] == {"number": "3", "seed": "1", "square": "9"}
    assert pyarrow.parquet.read_table(tmp_path / "tables" / "squares.parquet").num_rows == 4
    for ending, begin in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        assert (tmp_path / "figures" / f"P1{ending}").read_bytes().startswith(begin)
    told = (tmp_path / "report.md").read_text()
    assert "comesh reproduce P1 --quick" in told
    assert "number 0 to 3; seed 1. 4 cases" in told
    assert "the largest \\| square | 9 | 9 | agrees (at least 9: met)" in told
    page = (tmp_path / "report.html").read_text()
    assert "Squares &lt;grow&gt;." in page
    assert "data:image/png;base64," in page
    assert "http" not in page.split("base64,")[0]
    assert "*Ours* has nothing" in told and "<em>Ours</em> has nothing" in page, "they explain themselves"


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
        def outcomes(self, name: str, code: str, cases: Iterable[Parameters]) -> Iterator[Outcome]:
            yield from reversed(list(super().outcomes(name, code, list(cases))))

    found = run_campaign(TOY, Scale.QUICK, tmp_path, Backwards(1), Progress())
    assert table_of(found).numbers("square") == [0, 1, 4, 9]


def test_tables() -> None:
    table = Table([{"a": 1, "b": 2.0}, {"a": 1, "b": 4.0}, {"a": 2, "c": "x"}])
    assert table.columns == ["a", "b", "c"]
    assert table.mean("b") == 3.0
    assert table.summary(("a",), "b") == {(1,): 3.0}
    assert table.curves("a", "a", "b") == {"1": {1: 3.0}}
    assert table.where(a=2).distinct("c") == ["x"]
    assert percentile([1, 2, 3, 4], 50) == 2
    assert percentile([5], 99) == 5
    assert percentile(list(range(1, 101)), 90) == 90


def test_no_experiment_needs_a_window() -> None:
    assert "matplotlib.pyplot" not in sys.modules

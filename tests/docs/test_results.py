"""The committed results: rebuilt from their cases without measuring, explained, with findings beside them."""

import csv
import json
import re
from pathlib import Path

import pytest

from comesh.experiments import report
from comesh.experiments.catalogue import experiment, names
from comesh.experiments.report import Made
from comesh.experiments.reproduction import Result, result_of
from comesh.experiments.stage import Scale
from comesh.experiments.store import Outcome

RESULTS = Path(__file__).parents[2] / "docs" / "results"
REPORT = (RESULTS / "report.md").read_text()
FINDINGS = (RESULTS / "findings.md").read_text()


@pytest.fixture(scope="module")
def results() -> list[Result]:
    """Read off the committed cases."""
    found = []
    for name in names():
        one = experiment(name)
        lines = (RESULTS / "cases" / f"{one.campaign.name}.jsonl").read_text().splitlines()
        found.append(result_of(one, [Outcome(**json.loads(line)) for line in lines]))
    return found


def test_the_report_is_rebuilt_from_the_committed_cases(results: list[Result], tmp_path: Path) -> None:
    (commit,) = {commit for result in results for commit in result.commits}
    made = Made(command="", scale=Scale.FULL, version="", day="", commit=commit)
    report.write(results, tmp_path, made)
    for file in sorted((RESULTS / "tables").glob("*.csv")):
        assert (tmp_path / "tables" / file.name).read_text() == file.read_text(), file.name
    assert (tmp_path / "bars.csv").read_text() == (RESULTS / "bars.csv").read_text()
    rebuilt, committed = ((folder / "report.md").read_text().splitlines() for folder in (tmp_path, RESULTS))
    assert [line for line in rebuilt if line[:1] == "|"] == [line for line in committed if line[:1] == "|"]
    assert {file.name for file in (RESULTS / "figures").iterdir()} == {f"{name}.png" for name in names()}
    assert f"commit {commit}" in FINDINGS


def test_every_case_is_there_and_no_bar_is_missed(results: list[Result]) -> None:
    for result in results:
        cases = json.loads(json.dumps(list(result.experiment.campaign.cases(Scale.FULL))))
        assert result.cases == cases, result.experiment.id
        assert result.is_good, result.experiment.id
    bars = [bar for result in results for bar in result.bars]
    assert len(bars) > 100
    assert all(bar.met for bar in bars)


def test_every_experiment_is_there_once() -> None:
    headings = re.findall(r"^## (\w+)\. ", REPORT, re.MULTILINE)
    assert sorted(headings) == sorted(names())


def test_what_it_names_is_there() -> None:
    linked = re.findall(r"\]\(((?:figures|tables)/[^)]+)\)", REPORT)
    assert len(linked) > 40
    assert [name for name in linked if not (RESULTS / name).is_file()] == []


def test_the_findings_speak_of_every_experiment() -> None:
    spoken_of = set(re.findall(r"\b(?:P\d+|[A-G])\b", FINDINGS))
    spoken_of |= {f"P{number}" for number in range(1, 6)}  # P1 to P5
    assert spoken_of >= set(names())


def test_every_column_of_its_tables_is_explained() -> None:
    told = (Path(__file__).parents[2] / "docs" / "measurements.md").read_text()
    general, *chapters = re.split(r"^## ", told, flags=re.MULTILINE)
    for file in sorted((RESULTS / "tables").glob("*.csv")):
        [chapter] = [one for one in chapters if re.search(rf"\b{file.stem}\b", one.splitlines()[0])]
        explained = set(re.findall(r"`([\w.]+)`", general + chapter))
        if file.stem == "push":
            explained |= set(
                re.findall(r"`([\w.]+)`", next(one for one in chapters if "client-delay" in one))
            )
        with file.open() as lines:
            rows = list(csv.DictReader(lines))
        assert [column for column in rows[0] if column not in explained] == [], file.name
        named = {row[column] for row in rows for column in ("operation", "measure") if row.get(column)}
        assert [name for name in named if f"`{name.partition(', ')[0]}`" not in chapter] == [], file.name

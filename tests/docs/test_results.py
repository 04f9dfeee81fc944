"""The committed report of `comesh reproduce all --full`: all experiments, with their reasons."""

import csv
import re
from pathlib import Path

from comesh.experiments.catalogue import names

RESULTS = Path(__file__).parents[2] / "docs" / "results"
REPORT = (RESULTS / "report.md").read_text()
CELLS = ("what", "ours", "paper", "verdict", "why")


def test_every_experiment_is_there_once() -> None:
    headings = re.findall(r"^## (\w+)\. ", REPORT, re.MULTILINE)
    assert sorted(headings) == sorted(names())


def test_whatever_differs_says_why() -> None:
    split = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in REPORT.splitlines()]
    rows = [dict(zip(CELLS, cells, strict=True)) for cells in split if len(cells) == len(CELLS)]
    differing = [row for row in rows if row["verdict"].startswith("differs")]
    assert len(differing) > 20
    assert [row["what"] for row in differing if not row["why"]] == []


def test_what_it_names_is_there() -> None:
    linked = re.findall(r"\]\(((?:figures|tables)/[^)]+)\)", REPORT)
    assert len(linked) > 40
    assert [name for name in linked if not (RESULTS / name).is_file()] == []


def test_the_index_says_where_something_differs() -> None:
    rows = re.findall(r"^\| \[\w+\]\(#[^)]+\) \| [^|]+ \| ([^|]+) \| ([^|]*) \|$", REPORT, re.MULTILINE)
    assert len(rows) == len(names())
    assert [verdict for verdict, why in rows if ("differs" in verdict) != bool(why.strip())] == []


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

"""`comesh plan` on the examples."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from comesh.cli.main import app

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
runner = CliRunner()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_have_a_plan_that_fits_80_columns_without_cut_names(example: Path) -> None:
    result = runner.invoke(app, ["plan", str(example)], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    assert "…" not in result.stdout
    assert "members per group" in result.stdout
    assert max(map(len, result.stdout.splitlines()[1:])) <= 80


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_json_has_everything(example: Path) -> None:
    result = runner.invoke(app, ["plan", str(example), "--json", "--epochs", "3"])
    answer = json.loads(result.stdout)
    assert len(answer["epochs"]) == 3
    groups = {cluster["group"] for cluster in answer["clusters"]} | {"deployment"}
    for epoch in answer["epochs"]:
        assert set(epoch) == groups
    assert {load["node"] for load in answer["loads"]} >= set(answer["epochs"][0]["c1"])
    assert answer["warnings"] == [], "the examples survive any one outage"


def test_the_picture_is_written(tmp_path: Path) -> None:
    picture = tmp_path / "office.svg"
    result = runner.invoke(app, ["plan", str(EXAMPLES[0]), "--svg", str(picture)])
    assert result.exit_code == 0
    ElementTree.fromstring(picture.read_text())
    nowhere = runner.invoke(app, ["plan", str(EXAMPLES[0]), "--svg", str(tmp_path / "no" / "where.svg")])
    assert nowhere.exit_code == 2
    assert "cannot write" in nowhere.stderr


def test_failed_nodes_are_left_out_after_genesis() -> None:
    asked = json.loads(runner.invoke(app, ["plan", str(EXAMPLES[0]), "--json"]).stdout)
    leader, other, *_ = asked["epochs"][0]["c1"]
    given = ["--json", "--without", leader, "--without", other]
    answer = json.loads(runner.invoke(app, ["plan", str(EXAMPLES[0]), *given]).stdout)
    assert answer["epochs"][0] == asked["epochs"][0]
    assert not {leader, other} & {one for epoch in answer["epochs"][1:] for one in epoch["c1"]}
    kept = [load["node"] for load in asked["loads"]][:5]
    given = [word for node in kept for word in ("--alive", node)]
    answer = json.loads(runner.invoke(app, ["plan", str(EXAMPLES[0]), "--json", *given]).stdout)
    assert {one for epoch in answer["epochs"][1:] for one in epoch["c1"]} <= set(kept)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--without", "nobody_here"], "no node 'nobody_here'"),
        (["--without", "x", "--alive", "y"], "use one of them"),
    ],
)
def test_wrong_options_are_explained(given: list[str], told: str) -> None:
    result = runner.invoke(app, ["plan", str(EXAMPLES[0]), *given])
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_document_with_mistakes_has_no_plan(tmp_path: Path) -> None:
    document = tmp_path / "wrong.yaml"
    document.write_text("nodes: 3\n")
    assert runner.invoke(app, ["plan", str(document)]).exit_code == 1
    assert runner.invoke(app, ["plan", str(tmp_path / "missing.yaml")]).exit_code == 2

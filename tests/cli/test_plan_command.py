"""`comesh plan` on the examples."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console
from typer.testing import CliRunner

from comesh.cli import plan as plan_command
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


PLANT = """
nodes:
  gw_plant: {place: [0m, 0m], power_domain: plant}
  b: {place: [3m, 0m], power_domain: west}
  c: {place: [3m, 4m], power_domain: east}
  d: {place: [5m, 4m], power_domain: north}
devices:
  pump: {on: gw_plant, commands: {set: {argument: bool}}, readings: {on: bool}}
  level: {on: gw_plant, readings: {cm: int}}
  lamp: {place: [1m, 0m], commands: {set: {argument: bool}}, readings: {on: bool}}
routines:
  fill:
    when: level.cm < 3
    do: [{device: lamp, command: set, argument: true}]
"""


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    document = tmp_path / "plant.yaml"
    document.write_text(PLANT)
    return document


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal on which no cell of a table is wrapped."""
    monkeypatch.setattr(plan_command, "out", Console(width=200, highlight=False, soft_wrap=True))


@pytest.mark.usefixtures("wide")
def test_devices_that_go_dark_with_a_domain_and_anchors_are_shown(plant: Path) -> None:
    text = " ".join(runner.invoke(app, ["plan", str(plant)]).stdout.split())
    assert "2 devices go dark: level, pump; routines hit: fill" in text
    assert "fill (lamp)" in text
    assert "deployment: the group that commits changes of this document" in text
    answer = json.loads(runner.invoke(app, ["plan", str(plant), "--json"]).stdout)
    losses = {loss["domain"]: loss for loss in answer["power_domains"]}
    assert losses["plant"]["dark"] == ["level", "pump"]
    assert losses["plant"]["routines_hit"] == ["fill"]
    assert losses["west"]["dark"] == []
    assert answer["settings"]["members"] == "lsh-mix"
    assert answer["nodes_alone"] == []


@pytest.mark.usefixtures("wide")
def test_devices_on_a_node_without_a_named_domain_go_dark_with_it(plant: Path) -> None:
    plant.write_text(PLANT.replace(", power_domain: plant", ""))
    text = " ".join(runner.invoke(app, ["plan", str(plant)]).stdout.split())
    assert "gw_plant alone 1 2 devices go dark: level, pump; routines hit: fill" in text
    (alone,) = json.loads(runner.invoke(app, ["plan", str(plant), "--json"]).stdout)["nodes_alone"]
    assert (alone["domain"], alone["dark"]) == ("gw_plant", ["level", "pump"])


@pytest.mark.usefixtures("wide")
def test_gone_members_are_marked_and_groups_that_cannot_act_are_reported(plant: Path) -> None:
    given = ["plan", str(plant), "--alive", "b", "--epochs", "2"]
    text = runner.invoke(app, given).stdout
    assert "(gone)" in text
    assert "cannot act: 1 of 3 members left" in text
    assert "warning: c1 cannot act in epoch 1: 1 of 3 members left" in text
    answer = json.loads(runner.invoke(app, [*given, "--json"]).stdout)
    assert answer["gone"] == ["c", "d", "gw_plant"]
    assert {one["group"] for one in answer["cannot_act"]} == {"c1", "deployment"}
    assert "c1 cannot act in epoch 1: 1 of 3 members left" in answer["warnings"]


def test_the_picture_overwrites_pictures_only(plant: Path, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("dear diary")
    for given, told in (
        (["--svg", str(plant)], "is a file that this command reads"),
        (["--svg", str(plant), "--force"], "is a file that this command reads"),
        (["--svg", str(other)], "exists and is not a picture"),
    ):
        result = runner.invoke(app, ["plan", str(plant), *given])
        assert result.exit_code == 2
        assert told in result.stderr
    assert (plant.read_text(), other.read_text()) == (PLANT, "dear diary")
    for given in (["--force"], []):
        assert runner.invoke(app, ["plan", str(plant), "--svg", str(other), *given]).exit_code == 0
        assert other.read_text().startswith("<svg")


ODD = """
name: "<&> [/bold] \\a :smile:"
settings: {epoch: 5s, lease: 500ms, membership_period: 300ms}
nodes:
  a: {place: [0m, 0m], power_domain: "[/red]"}
  b: {place: [1m, 0m], power_domain: "[/red]"}
  c: {place: [2m, 0m], power_domain: "[red]:smile:\\e[2J"}
devices:
  d: {place: [0m, 0m], readings: {celsius: {type: float, unit: "[/C]"}}}
"""


@pytest.mark.parametrize("console", [{"markup": True, "emoji": True}, {}])
def test_texts_of_a_document_are_no_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: dict[str, bool]
) -> None:
    if console:
        monkeypatch.setattr(plan_command, "out", Console(width=200, soft_wrap=True, **console))
    document, picture = tmp_path / "odd.yaml", tmp_path / "odd.svg"
    document.write_text(ODD)
    result = runner.invoke(app, ["plan", str(document), "--svg", str(picture)])
    assert result.exit_code == 0, result.output
    assert "\n[/red] " in result.stdout
    assert "[red]:smile:?[2J" in result.stdout
    assert "\x1b" not in result.stdout
    assert "<&> [/bold]  :smile:, epoch 0" in {
        text.text for text in ElementTree.fromstring(picture.read_text()).iter()
    }


@pytest.mark.parametrize("command", [["validate"], ["sim", "--minutes", "0.2"], ["demo", "--once"]])
def test_other_commands_take_such_texts_too(tmp_path: Path, command: list[str]) -> None:
    document = tmp_path / "[red]odd].yaml"
    document.write_text(ODD)
    result = runner.invoke(app, [*command, str(document)])
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "\x07" not in result.output


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

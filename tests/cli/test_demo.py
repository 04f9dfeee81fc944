"""The demo as a person runs it, without a terminal: the story is told in lines."""

from io import StringIO
from pathlib import Path

from rich.console import Console, ConsoleDimensions
from typer.testing import CliRunner

from comesh.cli.demo_view import Log, screen
from comesh.cli.main import app
from comesh.deployment.load import load
from comesh.sim.building import Building
from comesh.sim.faults import Crash

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_the_story_holds_what_it_promises() -> None:
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0, result.output
    assert "crashes" in result.output
    assert "power domain" in result.output
    assert "the mesh is cut" in result.output
    assert "NOT" not in result.output
    assert "0 did not." in result.output
    assert "crashes in the middle of it" in result.output
    assert "which the crash met, came to its end" in result.output
    assert "leads c1 now" in result.output
    assert "welcome finished" in result.output or "welcome failed: " in result.output
    assert "checked all the while: no two runs act on one device at once" in result.output
    assert "none of them was broken" in result.output
    for domain in ("battery", "core", "east_riser", "west_riser"):
        assert f"power domain {domain} goes out" in result.output


def test_other_documents_can_be_shown() -> None:
    result = CliRunner().invoke(app, ["demo", str(EXAMPLES / "factory.yaml"), "--once", "--seed", "5"])
    assert result.exit_code == 0, result.output


def test_a_domain_that_stops_a_group_is_told(tmp_path: Path) -> None:
    """All nodes but one hang on one circuit: its loss must not be passed over."""
    text = (EXAMPLES / "office.yaml").read_text()
    for domain in ("west_riser", "core", "east_riser"):
        text = text.replace(f"power_domain: {domain}", "power_domain: main")
    document = tmp_path / "one_circuit.yaml"
    document.write_text(text)
    result = CliRunner().invoke(app, ["demo", str(document), "--once"])
    assert result.exit_code == 0, result.output
    assert "can not act until" in result.output
    assert "goes on after a wait of" in result.output


def test_a_document_without_devices_has_no_story(tmp_path: Path) -> None:
    document = tmp_path / "bare.yaml"
    document.write_text("nodes: {a: {place: [0m, 0m]}, b: {place: [1m, 0m]}, c: {place: [2m, 0m]}}\n")
    result = CliRunner().invoke(app, ["demo", str(document)])
    assert result.exit_code == 2
    assert result.stderr.startswith("comesh: the story needs at least one device")


def test_texts_of_a_document_are_no_markup_on_the_screen(tmp_path: Path) -> None:
    document = tmp_path / "odd.yaml"
    document.write_text(
        'name: "[/bold]\\e[2J"\n'
        'nodes: {a: {place: [0m, 0m], power_domain: "[/red]\\e"}, '
        "b: {place: [1m, 0m]}, c: {place: [2m, 0m]}}\n"
        'devices: {d: {place: [0m, 0m], readings: {warm: {type: float, unit: "[/C]"}}}}\n'
    )
    deployment = load(document).deployment
    assert deployment is not None
    building = Building(deployment, seed=1)
    building.run(5)
    log = Log(building)
    log.add("[/red] goes out")
    console = Console(width=150, height=50, record=True, file=StringIO())
    console.print(screen(building, log, ConsoleDimensions(150, 50)))
    shown = console.export_text()
    for text in ("[/bold]?[2J", "[/red]?", "[/red] goes out", "[/C]"):
        assert text in shown


def test_the_screen_shows_who_is_gone_and_fits_small_terminals() -> None:
    deployment = load(EXAMPLES / "office.yaml").deployment
    assert deployment is not None
    building = Building(deployment, seed=1)
    building.run(5)
    log = Log(building)
    log.add("a story")
    victim = building.groups[building.plan.clusters[0].group].members[0]
    building.happen(Crash(at_ms=0, node=victim))
    building.run(5)
    shown = {}
    for width, height in [(150, 50), (80, 24)]:
        console = Console(width=width, height=height, record=True, file=StringIO())
        console.print(screen(building, log, ConsoleDimensions(width, height)))
        shown[width] = console.export_text()
    assert f"✗ {victim}" in shown[150]
    assert "serves" in shown[80]
    assert shown[80].count("\n") <= 24

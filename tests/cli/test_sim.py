"""`comesh sim`: what it prints, its JSON, its trace, its exit codes."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from comesh.cli.main import app

SMALL = ["sim", "--devices", "30", "--minutes", "0.5"]

DOCUMENT = """
nodes:
  a: {place: [0m, 0m], power_domain: west}
  b: {place: [3m, 0m], power_domain: west}
  c: {place: [3m, 4m], power_domain: east}
devices:
  lamp: {place: [1m, 0m], commands: {set: {argument: bool}}, readings: {on: bool, level: int}}
"""


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output + result.stderr
    return result.stdout if code == 0 else result.stderr


def test_a_shape_with_crashes() -> None:
    text = run(*SMALL, "--crash", "1", "--minutes", "1")
    assert "grid: 12 nodes among 30 stations, seed 1" in text
    assert "60 s simulated" in text
    assert "to 11 of 11 after" in text
    assert "false suspicions 0, false deaths 0" in text
    assert "Ping" in text


def test_json_and_the_seed() -> None:
    def report(*more: str) -> dict[str, object]:
        told = json.loads(run(*SMALL, "--json", *more))
        assert isinstance(told, dict)
        told.pop("cpu_s")
        return told

    first = report("--loss", "0.1", "--topology", "random")
    assert first == report("--loss", "0.1", "--topology", "random")
    assert first != report("--loss", "0.1", "--topology", "random", "--seed", "2")
    assert first["nodes"] == 12
    assert first["simulated_s"] == 30.0
    assert first["trace_digest"] is None


def test_a_trace_is_written(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    text = run(*SMALL, "--trace", str(file))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line[2] for line in lines} >= {"Started", "TimerFired", "MessageReceived"}
    assert "trace " in text


def test_a_schedule_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("faults:\n- {fault: loss, at_ms: 1000, rate: 0.5, per: message, for_ms: 5000}\n")
    text = run(*SMALL, "--faults", str(file))
    assert "loss rate=0.5 per=message for_ms=5000" in text
    assert "on the way" in text


def test_drawn_faults() -> None:
    text = run(*SMALL, "--random", "pause=8", "--random", "crash=4")
    assert "faults: " in text
    assert "pause node=" in text


@pytest.mark.parametrize(
    "more", [["--duplicate", "0.2", "--reorder", "0.2"], ["--skew-ms", "50", "--drift-ppm", "9"]]
)
def test_bad_air_and_bad_clocks(more: list[str]) -> None:
    assert "false deaths 0" in run(*SMALL, "--joined", "--hop-ms", "2", *more)


def test_a_document(tmp_path: Path) -> None:
    file = tmp_path / "office.yaml"
    file.write_text(DOCUMENT)
    faults = tmp_path / "faults.yaml"
    faults.write_text("faults: [{fault: power-loss, at_ms: 20000, domain: west}]\n")
    text = run("sim", str(file), "--minutes", "1", "--faults", str(faults))
    assert "plan: 3 nodes among 4 stations" in text
    assert "crashes: 2" in text


def test_a_documents_devices_have_its_readings(tmp_path: Path) -> None:
    file = tmp_path / "office.yaml"
    file.write_text(DOCUMENT)
    faults = tmp_path / "faults.yaml"
    wrong = "faults: [{fault: device-wrong, at_ms: 1000, device: lamp, reading: %s, value: '?'}]"
    faults.write_text(wrong % "level")
    assert "device-wrong device=lamp" in run("sim", str(file), "--minutes", "0.1", "--faults", str(faults))
    faults.write_text(wrong % "levl")
    complaint = run("sim", str(file), "--faults", str(faults), code=2)
    assert "unknown reading 'levl'; did you mean 'level'?" in " ".join(complaint.split())


def test_a_document_with_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "office.yaml"
    file.write_text(DOCUMENT.replace("3m", "3 parsecs"))
    assert "office.yaml:4: nodes.b.place" in run("sim", str(file), code=1)


def test_a_reach_too_short_for_a_document(tmp_path: Path) -> None:
    file = tmp_path / "office.yaml"
    file.write_text(DOCUMENT)
    assert "4000 mm would connect" in run("sim", str(file), "--reach", "3.5", code=2)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--topology", "ring"], "ring"),
        (["--loss", "1.5"], "--loss"),
        (["--random", "flood=1"], "classes: crash, wipe"),
        (["--random", "crash"], "such as crash=2"),
        (["--random", "crash=-1"], "such as crash=2"),
        (["--random", "crash=inf"], "such as crash=2"),
        (["--faults", "no/such/file.yaml"], "no/such/file.yaml"),
        (["--trace", "no/such/folder/trace"], "no/such/folder"),
        (["no/such/document.yaml"], "no/such/document.yaml"),
        (["--reach", "0.5"], "below one spacing"),
    ],
)
def test_called_wrongly(arguments: list[str], complaint: str) -> None:
    assert complaint in run(*SMALL, *arguments, code=2)


@pytest.mark.parametrize(
    ("schedule", "complaint"),
    [
        ("faults: [{fault: crash, at_ms: 1}]", "node"),
        ("faults: [{fault: crash, at_ms: 1, node: zz}]", "unknown node"),
    ],
)
def test_wrong_schedules(schedule: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(schedule)
    assert complaint in run(*SMALL, "--faults", str(file), code=2)

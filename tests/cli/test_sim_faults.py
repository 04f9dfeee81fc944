"""`comesh sim --write-faults`: the schedule that was run, to read, to cut down, to replay."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from comesh.cli.main import app
from comesh.cli.outputs import FAULTS_HEADER
from comesh.sim.fault_model import DRAWN

ROOT = Path(__file__).parents[2]

SMALL = ["sim", "--devices", "30", "--minutes", "1", "--loss", "0.02"]


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output + result.stderr
    return result.stdout if code == 0 else " ".join(result.stderr.split())


def test_what_was_drawn_replays_from_the_file(tmp_path: Path) -> None:
    by_hand, drawn, again = (tmp_path / name for name in ("hand.yaml", "drawn.yaml", "again.yaml"))
    by_hand.write_text("- {fault: leave, at: 5s, node: n20}\n- {fault: copy-card, at: 6s, node: n20}\n")
    draws = [f"--random={kind}={20 if kind != 'power' else 0}" for kind in DRAWN]

    def report(*more: str) -> dict[str, object]:
        told = json.loads(run(*SMALL, "--json", *more))
        assert isinstance(told, dict)
        told.pop("cpu_s")
        return told

    trace = ("--trace", str(tmp_path / "trace.jsonl"))
    first = report(*trace, *draws, "--crash", "2", "--faults", str(by_hand), "--write-faults", str(drawn))
    second = report(*trace, "--faults", str(drawn), "--write-faults", str(again))
    assert first == second
    assert first["trace_digest"] is not None
    assert drawn.read_text() == again.read_text()
    faults = first["faults"]
    assert isinstance(faults, list)
    assert {"fault": "leave", "at_ms": 5000.0, "node": "n20"} in faults
    assert len({fault["fault"] for fault in faults}) > 12


def test_only_what_was_written_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    quick = ["sim", "--devices", "5", "--minutes", "0.01"]
    run(*quick, "--write-faults", str(file))
    run(*quick, "--write-faults", str(file))
    assert file.read_text() == FAULTS_HEADER + "faults: []\n"
    assert "reads" in run(*quick, "--faults", str(file), "--write-faults", str(file), code=2)
    file.write_text("faults: []\n")
    assert "--force" in run(*quick, "--write-faults", str(file), code=2)
    run(*quick, "--write-faults", str(file), "--force")
    new = str(tmp_path / "new")
    assert "both name" in run(*quick, "--write-faults", new, "--trace", new, code=2)
    nowhere = str(tmp_path / "no" / "such")
    assert f"cannot write {nowhere}" in run(*quick, "--write-faults", nowhere, code=2).replace("- ", "-")


def test_presses_are_drawn_where_there_are_buttons() -> None:
    office = str(Path(__file__).parents[2] / "examples" / "office.yaml")
    drawn = json.loads(run("sim", office, "--minutes", "1", "--random", "press=20", "--json"))["faults"]
    assert {fault["fault"] for fault in drawn} == {"press"}
    result = CliRunner().invoke(app, [*SMALL, "--random", "press=20"])
    assert result.exit_code == 0
    assert "this mesh has no event devices" in result.stderr


def test_the_schedule_of_the_docs_runs_as_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "simulator.md").read_text()
    [schedule] = re.findall(r"```yaml\n(faults:\n.*?)```", page, re.DOTALL)
    assert "`comesh sim examples/office.yaml --faults schedule.yaml`" in page
    (tmp_path / "schedule.yaml").write_text(schedule)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    told = json.loads(
        run("sim", "examples/office.yaml", "--faults", "schedule.yaml", "--minutes", "3", "--json")
    )
    assert len(told["faults"]) == schedule.count("fault: ")
    assert told["protocol"]["violations"] == []


def test_a_wrong_name_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    office = str(ROOT / "examples" / "office.yaml")
    file.write_text("- {fault: crash, at: 1s, node: n03}\n")
    told = run("sim", office, "--faults", str(file), code=2)
    assert "unknown node 'n03'; known: gateway_east, gateway_middle, gateway_west, panel_east" in told
    file.write_text("- {fault: power-loss, at: 1s, domain: moon}\n")
    assert "'moon'; known: *, battery, core, east_riser, west_riser" in run(
        "sim", office, "--faults", str(file), code=2
    )
    file.write_text("- {fault: device-down, at: 1s, device: zz}\n")
    assert re.search(
        r"'zz'; known: (\w+, ){11}\w+ and 33 more", run("sim", office, "--faults", str(file), code=2)
    )
    file.write_text("- {fault: crash, at: 1s, node: panel_wst}\n")
    assert "known:" not in run("sim", office, "--faults", str(file), code=2), "it says which was meant"

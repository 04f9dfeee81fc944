"""`comesh sim`: what it prints, its JSON, its trace, its exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from comesh.cli.main import app
from comesh.cli.sim_protocol import without_repeats
from comesh.core.group.leadership import Leadership
from comesh.core.ids import DeviceId
from comesh.core.records import Entry
from comesh.core.step import Step
from comesh.sim.protocol_watch import DeviceChange

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


def test_without_a_terminal_progress_is_reported_in_lines_on_standard_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("comesh.cli.sim_run.PLAIN_S", 0.0)
    result = CliRunner().invoke(app, [*SMALL, "--membership-only", "--json"])
    assert result.exit_code == 0
    assert "\n15 s of 30 s simulated\n" in result.stderr
    json.loads(result.stdout)


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
    assert "office.yaml: 3 nodes among 4 stations" in text
    assert "a station is a place with a radio" in text
    assert "c1 had no majority from 20.0 s to the end" in text
    assert "every promise of the protocol held" in text
    assert "crashes: 2" in text
    named = tmp_path / "named.yaml"
    named.write_text(f"name: Our house\n{DOCUMENT}")
    text = run("sim", str(named), "--minutes", "0.1")
    assert "Our house: 3 nodes" in text
    assert "a majority ran and could reach each other throughout: c1, deployment" in text


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
        (["office.yaml"], "--devices is for a mesh without a FILE"),
        (["--crash", "13"], "there are only 12 nodes"),
        (["--reach", "0.5"], "below one spacing"),
    ],
)
def test_called_wrongly(arguments: list[str], complaint: str) -> None:
    assert complaint in run(*SMALL, *arguments, code=2)


def test_a_missing_document() -> None:
    assert "no/such/document.yaml" in run("sim", "no/such/document.yaml", code=2)


@pytest.mark.parametrize("given", [["--topology", "grid"], ["--devices", "9"], ["--smart", "0.5"]])
def test_options_of_shapes_are_refused_with_a_document(given: list[str], tmp_path: Path) -> None:
    file = tmp_path / "office.yaml"
    file.write_text(DOCUMENT)
    assert f"{given[0]} is for a mesh without a FILE" in run("sim", str(file), *given, code=2)


@pytest.mark.parametrize(
    ("schedule", "complaint"),
    [
        ("faults: [{fault: crash, at_ms: 1}]", "faults.yaml:1: fault 1 (crash): it needs node (node)"),
        ("\n- {fault: crash, at: 1s, node: zz}", "faults.yaml:2: fault 1: crash at 1 s: unknown node 'zz'"),
        ("faults: [", "faults.yaml:"),
    ],
)
def test_wrong_schedules(schedule: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(schedule)
    assert complaint in run(*SMALL, "--faults", str(file), code=2)


def test_a_missing_schedule_is_reported_in_plain_words() -> None:
    assert "faults.yaml: there is no such file" in run(*SMALL, "--faults", "no/faults.yaml", code=2)


@pytest.mark.parametrize(
    ("schedule", "told"),
    [
        ("# nothing yet\n", "there are no faults in it"),
        (
            "[{fault: heal, at: 1s}, {fault: heal, at: 31s}]",
            "1 of 2 faults come after the end of the run (30 s)",
        ),
    ],
)
def test_what_will_not_happen_is_reported(schedule: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(schedule)
    result = CliRunner().invoke(app, [*SMALL, "--faults", str(file)])
    assert result.exit_code == 0
    assert told in result.stderr


def test_power_faults_need_power_domains() -> None:
    result = CliRunner().invoke(app, [*SMALL, "--random", "power=1"])
    assert result.exit_code == 0
    assert "this mesh has no power domains" in result.stderr


def test_a_trace_overwrites_traces_only(tmp_path: Path) -> None:
    faults, notes = tmp_path / "faults.yaml", tmp_path / "notes.txt"
    faults.write_text("[{fault: heal, at: 1s}]")
    notes.write_text("dear diary")
    given = [*SMALL, "--faults", str(faults), "--trace"]
    assert "this command reads" in run(*given, str(faults), "--force", code=2)
    assert "exists and is not a trace" in run(*given, str(notes), code=2)
    assert (faults.read_text(), notes.read_text()) == ("[{fault: heal, at: 1s}]", "dear diary")
    run(*given, str(notes), "--force")
    run(*given, str(notes))
    assert "Started" in notes.read_text()


def test_the_classes_of_random_faults_are_in_the_help() -> None:
    text = " ".join(run("sim", "--help").split())
    assert "Classes: crash, wipe, kill" in text


def test_nodes_that_cannot_reach_each_other_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "office.yaml"
    file.write_text(DOCUMENT)
    faults = tmp_path / "faults.yaml"
    faults.write_text("[{fault: partition, at: 20500ms, from: [c], for: 10s}]")
    given = ["sim", str(file), "--minutes", "1", "--faults", str(faults)]
    assert "2 parts from 21.0 s to 31.0 s: a, b | c" in run(*given)
    answer = json.loads(run(*given, "--json"))
    assert answer["splits"] == [{"from_s": 21.0, "to_s": 31.0, "parts": [["a", "b"], ["c"]]}]
    assert answer["without_majority"] == {"c1": [], "deployment": []}


@pytest.mark.parametrize("option", ["--reach", "--hop-ms", "--skew-ms", "--minutes", "--loss", "--drift-ppm"])
@pytest.mark.parametrize("value", ["inf", "nan", "1e300"])
def test_numbers_have_bounds(option: str, value: str) -> None:
    assert f"Invalid value for '{option}'" in run(*SMALL, option, value, code=2)


@pytest.mark.parametrize("option", ["--reach", "--hop-ms", "--skew-ms"])
def test_the_greatest_numbers_run(option: str) -> None:
    run(*SMALL, option, "1e6")


ROUTINES = (
    DOCUMENT
    + """
  button: {place: [2m, 0m], event: true, readings: {press: bool}}
routines:
  light: {on_event: button.press, do: [{device: lamp, command: set, argument: true}]}
  dark: {do: [{device: lamp, command: set, argument: false}]}
"""
)


@pytest.fixture
def house(tmp_path: Path) -> list[str]:
    """A house whose button is pressed at 10 s."""
    file, faults = tmp_path / "house.yaml", tmp_path / "faults.yaml"
    file.write_text(ROUTINES)
    faults.write_text("[{fault: press, at: 10s, device: button, values: {press: true}}]")
    return ["sim", str(file), "--minutes", "0.5", "--faults", str(faults)]


def test_a_document_runs_its_routines(house: list[str]) -> None:
    text = run(*house, "--follow", "light")
    assert "what groups did: 2" in text
    assert "runs: 1 fired, 1 finished, 0 failed" in text
    assert "run light#" in text
    assert "fired: button had an event (press true)" in text
    assert "step 1: tells lamp set true" in text
    assert "step 1: lamp did it (" in text
    assert "every promise of the protocol held" in text
    protocol = json.loads(run(*house, "--follow", "light", "--json"))["protocol"]
    assert protocol["runs"]["finished"] == 1
    (trace,) = protocol["traces"]
    assert trace["outcome"] == "finished"
    assert [line["trace"]["what"] for line in trace["lines"]][:2] == ["fired", "attempt_began"]
    assert {group["group"] for group in protocol["groups"]} == {"c1", "deployment"}
    assert json.loads(run(*house, "--json"))["protocol"]["traces"] == []


def test_a_followed_routine_must_exist(house: list[str]) -> None:
    assert "did you mean 'light'?" in " ".join(run(*house, "--follow", "ligth", code=2).split())
    assert "no routine runs" in run(*house, "--follow", "light", "--membership-only", code=2)


def test_membership_alone(house: list[str]) -> None:
    text = run(*house, "--membership-only")
    assert "Membership only: no groups, no routines." in text
    assert "runs: " not in text
    answer = json.loads(run(*SMALL, "--membership-only", "--json"))
    assert answer["protocol"] is None
    assert answer["without_majority"] is None


def test_a_shape_runs_the_workload_of_the_paper() -> None:
    text = run("sim", "--devices", "30", "--minutes", "1.5", "--routines", "4")
    assert "runs: 4 fired, 4 finished, 0 failed" in text
    assert "every promise of the protocol held" in text
    assert "one that fires and one that acts" in run("sim", "--devices", "1", code=2)


def test_a_broken_promise_is_a_no_with_its_history(house: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    propose = Leadership.propose

    def commit_alone(self: Leadership, entry: Entry, step: Step, **more: Any) -> None:
        propose(self, entry, step, **more)
        if self.serving is not None:
            self._commit(self.member.ledger.number, step)

    monkeypatch.setattr(Leadership, "propose", commit_alone)
    result = CliRunner().invoke(app, house)
    assert result.exit_code == 1
    assert "BROKEN PROMISES: " in result.stdout
    assert "committed by a quorum, at " in result.stdout
    assert " is serving at " in result.stdout
    unchecked = CliRunner().invoke(app, [*house, "--no-checks"])
    assert unchecked.exit_code == 0
    assert "the promises of the protocol were not checked" in unchecked.stdout
    assert CliRunner().invoke(app, [*house, "--json"]).exit_code == 1


def test_a_lossy_election_is_reported(tmp_path: Path) -> None:
    file, faults = tmp_path / "house.yaml", tmp_path / "faults.yaml"
    file.write_text(ROUTINES)
    faults.write_text(
        "[{fault: power-loss, at: 20s, domain: '*'}, {fault: power-back, at: 30s, domain: '*'}]"
    )
    text = run("sim", str(file), "--minutes", "2", "--faults", str(faults))
    assert "served by nobody: 2" in text
    assert "lossy elections, as the protocol reports them: 2" in text


def test_groups_that_could_not_act_are_reported_before_the_verdict(tmp_path: Path) -> None:
    file = tmp_path / "floor.yaml"
    run("new", str(file))
    lines = run("sim", str(file), "--minutes", "4", "--crash", "2").splitlines()
    assert lines[-2:] == [
        "c1 and deployment could not act for 120 s: too many of their nodes were down or cut off",
        "every promise of the protocol held",
    ]
    assert "could not act" not in run("sim", str(file), "--minutes", "4", "--crash", "1")


def test_repeats_of_a_new_leader_are_no_change() -> None:
    def change(at_ms: float, device: str, status: str) -> DeviceChange:
        return DeviceChange(at_ms, DeviceId(device), status, "")

    first, again, other, back, later = (
        change(1.0, "lamp", "down"),
        change(2.0, "lamp", "down"),
        change(3.0, "fan", "down"),
        change(4.0, "lamp", "up"),
        change(5.0, "lamp", "down"),
    )
    assert without_repeats([first, again, other, back, later]) == [first, other, back, later]


def test_one_node_is_one_node() -> None:
    assert ": 1 node among 1 station, " in run(
        "sim", "--devices", "1", "--minutes", "0.1", "--membership-only"
    )

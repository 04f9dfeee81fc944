"""`comesh new`, `comesh validate` and `comesh schema`, as a person uses them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from comesh.cli.main import app

runner = CliRunner()
WRONG = "nodes: {a: {place: [0m, 0m]}}\nsettings: {f: 1}\n"


def test_new_then_validate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = runner.invoke(app, ["new", "mine.yaml"])
    assert (written.exit_code, written.stdout) == (
        0,
        "wrote mine.yaml\n"
        "next: put in your own nodes, devices and routines, then check them with\n"
        "  comesh validate mine.yaml\n",
    )
    checked = runner.invoke(app, ["validate", "mine.yaml"])
    assert (checked.exit_code, checked.stderr) == (0, "")
    assert checked.stdout == "mine.yaml is fine: 3 nodes, 5 devices, 5 routines, 0 warnings\n"


def test_new_never_overwrites(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("precious")
    refused = runner.invoke(app, ["new", str(file)])
    assert refused.exit_code == 2
    assert "exists already and is left as it is" in refused.stderr
    assert file.read_text() == "precious"


def test_new_where_nothing_can_be_written(tmp_path: Path) -> None:
    refused = runner.invoke(app, ["new", str(tmp_path / "none" / "mine.yaml")])
    assert refused.exit_code == 2
    assert "cannot be written (No such file or directory)" in refused.stderr


def test_validate_tells_mistakes_on_standard_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text(WRONG)
    checked = runner.invoke(app, ["validate", "bad.yaml"])
    assert (checked.exit_code, checked.stdout) == (1, "")
    assert checked.stderr == (
        "bad.yaml:2: settings.f: f: 1 needs groups of 3 nodes, but there are only 1; "
        "set f: 0, or have 3 nodes\n"
        "1 mistake\n"
    )


def test_validate_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text(WRONG)
    checked = runner.invoke(app, ["validate", "--json", "bad.yaml"])
    assert checked.exit_code == 1
    answer = json.loads(checked.stdout)
    assert answer["ok"] is False
    [problem] = answer["problems"]
    assert (problem["file"], problem["line"], problem["column"]) == ("bad.yaml", 2, 15)
    assert (problem["path"], problem["severity"]) == ("settings.f", "error")
    runner.invoke(app, ["new", "good.yaml"])
    answer = json.loads(runner.invoke(app, ["validate", "--json", "good.yaml"]).stdout)
    assert (answer["ok"], answer["counts"]) == (True, {"nodes": 3, "devices": 5, "routines": 5})


def test_validate_could_not_run(tmp_path: Path) -> None:
    checked = runner.invoke(app, ["validate", str(tmp_path / "none.yaml")])
    assert checked.exit_code == 2
    assert "there is no such file" in checked.stderr
    assert "mistake" not in checked.stderr


def test_many_problems_are_cut_short(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("nodes:\n" + "".join(f"  n{n}: 3\n" for n in range(150)))
    checked = runner.invoke(app, ["validate", str(file)])
    assert checked.exit_code == 1
    assert "... and 50 more\n150 mistakes\n" in checked.stderr


def test_schema_is_json() -> None:
    printed = runner.invoke(app, ["schema"])
    assert printed.exit_code == 0
    assert json.loads(printed.stdout)["title"] == "CoMesh deployment"


def test_validate_takes_several_files_and_ends_with_the_worst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner.invoke(app, ["new", "good.yaml"])
    Path("bad.yaml").write_text(WRONG)
    checked = runner.invoke(app, ["validate", "bad.yaml", "good.yaml"])
    assert checked.exit_code == 1
    assert "good.yaml is fine" in checked.stdout and "1 mistake\n" in checked.stderr
    assert runner.invoke(app, ["validate", "good.yaml", "none.yaml", "bad.yaml"]).exit_code == 2
    answers = json.loads(runner.invoke(app, ["validate", "--json", "bad.yaml", "good.yaml"]).stdout)
    assert [answer["ok"] for answer in answers] == [False, True]


def test_validate_reads_standard_input() -> None:
    checked = runner.invoke(app, ["validate", "-"], input=WRONG)
    assert checked.exit_code == 1
    assert checked.stderr.startswith("<standard input>:2: settings.f: ")


@pytest.mark.parametrize("name", ["", "."])
def test_validate_needs_the_name_of_a_file(name: str) -> None:
    checked = runner.invoke(app, ["validate", name])
    assert checked.exit_code == 2
    assert "the name of a file is needed" in checked.stderr


@pytest.mark.parametrize("data", [b"\x7fELF\x00", "name: Büro".encode("latin-1"), b"#" * 1_000_001])
def test_validate_cannot_run_on_bytes_that_are_not_text(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "d.yaml"
    file.write_bytes(data)
    checked = runner.invoke(app, ["validate", str(file)])
    assert (checked.exit_code, checked.stdout) == (2, "")
    assert "mistake" not in checked.stderr


def test_validate_says_what_was_not_checked() -> None:
    checked = runner.invoke(app, ["validate", "-"], input="name: 'open\n" + WRONG)
    assert checked.stderr.endswith("\nthe rest of the document was not checked\n1 mistake\n")
    answer = json.loads(runner.invoke(app, ["validate", "--json", "-"], input="name: 'open\n").stdout)
    assert answer["complete"] is False


def test_validate_notes_that_no_driver_runs_yet() -> None:
    document = "nodes: {a: {place: [0m, 0m]}}\nsettings: {f: 0}\ndevices: {d: {on: a, driver: mqtt}}\n"
    checked = runner.invoke(app, ["validate", "-"], input=document)
    assert checked.exit_code == 0
    assert "note: no driver runs in this version: the options of mqtt are kept as they are" in checked.stdout
    answer = json.loads(runner.invoke(app, ["validate", "--json", "-"], input=document).stdout)
    assert len(answer["notes"]) == 1
    virtual = runner.invoke(app, ["validate", "--json", "-"], input=document.replace("mqtt", "virtual"))
    assert json.loads(virtual.stdout)["notes"] == []


def test_mistakes_are_shown_before_warnings_when_there_are_too_many(tmp_path: Path) -> None:
    far = "".join(f"  far{i}: {{place: [30km, {i}m]}}\n" for i in range(210))
    near = "".join(f"  d{i}: {{place: [0m, {i}m]}}\n" for i in range(260))
    nodes = "nodes: {a: {place: [0m, 0m]}, b: {place: [1m, 0m]}, c: {place: [2m, 0m]}}\n"
    file = tmp_path / "many.yaml"
    file.write_text(
        f"{nodes}devices:\n{far}{near}routines:\n  r: {{when: nosuch.on, do: [{{device: d1, command: x}}]}}\n"
    )
    for command in ("validate", "plan"):
        checked = runner.invoke(app, [command, str(file)])
        assert checked.exit_code == 1
        assert "routines.r.when: unknown device 'nosuch'" in checked.stderr
        assert "... and 100 more\nmore were not looked for\n" in checked.stderr
    assert checked.stdout == ""
    assert json.loads(runner.invoke(app, ["validate", "--json", str(file)]).stdout)["complete"] is False


UNDOING = """\
nodes: {a: {place: [0m, 0m]}}
settings: {f: 0}
devices:
  lamp: {place: [1m, 0m], readings: {on: bool}, commands: {light: {sets: {on: true}}}}
routines:
  careful:
    every: 1m
    undo: true
    do: [{device: lamp, command: light}]
  plain:
    every: 1m
    do: [{device: lamp, command: light}]
"""
UNDO_NOTE = "8: routines.careful.undo: undo is not carried out yet: a failed run leaves devices as they are"


def test_undo_has_a_note_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "undoing.yaml"
    file.write_text(UNDOING)
    checked = runner.invoke(app, ["validate", str(file)])
    assert checked.exit_code == 0
    assert [line for line in checked.stdout.splitlines() if "undo" in line and "note:" in line] == [
        f"note: {file}:{UNDO_NOTE}"
    ]
    piped = json.loads(runner.invoke(app, ["validate", "-", "--json"], input=UNDOING).stdout)
    assert f"<standard input>:{UNDO_NOTE}" in piped["notes"]


def test_without_undo_nothing_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "plain.yaml"
    file.write_text(UNDOING.replace("    undo: true\n", ""))
    assert json.loads(runner.invoke(app, ["validate", str(file), "--json"]).stdout)["notes"] == []

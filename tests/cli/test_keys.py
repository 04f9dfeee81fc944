"""`comesh keys`, as a person uses it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from comesh.cli.main import app
from comesh.runtime.credentials import Credentials

runner = CliRunner()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


def test_init_node_show() -> None:
    made = runner.invoke(app, ["keys", "init", "--name", "office"])
    assert (made.exit_code, made.stdout) == (
        0,
        "wrote keys/authority.key and keys/authority.crt\n"
        "next: make the keys of your nodes with\n"
        "  comesh keys node NAME...\n",
    )
    nodes = runner.invoke(app, ["keys", "node", "n1", "n2"])
    assert nodes.exit_code == 0
    assert "wrote keys/n2.key and keys/n2.crt\n" in nodes.stdout
    assert Credentials.load(Path("keys"), "n1").name == "n1"
    shown = runner.invoke(app, ["keys", "show"])
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert [line.split()[:2] for line in shown.stdout.splitlines()[1:]] == [
        ["office", "authority"],
        ["node", "n1"],
        ["node", "n2"],
    ]


def test_show_as_json_and_warnings_before_the_end() -> None:
    runner.invoke(app, ["keys", "init", "mine"])
    runner.invoke(app, ["keys", "node", "n1", "--keys", "mine", "--days", "20"])
    shown = runner.invoke(app, ["keys", "show", "mine", "--json"])
    assert runner.invoke(app, ["keys", "show", "--keys", "mine", "--json"]).stdout == shown.stdout
    assert runner.invoke(app, ["keys", "show", "mine", "--keys", "other"]).exit_code == 2
    assert shown.exit_code == 0
    answer = json.loads(shown.stdout)
    assert [one["who"] for one in answer] == ["comesh authority", "node n1"]
    assert answer[1]["days_left"] == 19
    assert answer[1]["has_key"] is True
    assert len(answer[1]["fingerprint"]) == 64
    assert "warning: n1.crt expires in 19 days" in shown.stderr
    Path("mine/n1.key").chmod(0o644)
    assert "n1.key can be read by others" in runner.invoke(app, ["keys", "show", "mine"]).stderr


def test_nothing_is_overwritten_without_force() -> None:
    runner.invoke(app, ["keys", "init"])
    runner.invoke(app, ["keys", "node", "n1"])
    before = Path("keys/n1.key").read_bytes()
    for arguments in (["init"], ["node", "n1"]):
        refused = runner.invoke(app, ["keys", *arguments])
        assert refused.exit_code == 2
        assert "exists already and is left as it is; --force replaces it" in refused.stderr
    assert Path("keys/n1.key").read_bytes() == before
    assert runner.invoke(app, ["keys", "node", "n1", "--force"]).exit_code == 0
    assert Path("keys/n1.key").read_bytes() != before


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["node", "n1"], 2, "authority.key is missing; make it with: comesh keys init"),
        (["show"], 2, "keys is not a directory; make one with: comesh keys init"),
        (["show", "empty"], 1, "empty has no certificates; make them with: comesh keys init empty"),
        (["init", "--days", "0"], 2, "valid for 1 to 36500 days"),
        (["init", "file/below"], 2, "cannot be used (Not a directory)"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_what_is_wrong_is_reported(arguments: list[str], code: int, says: str) -> None:
    Path("empty").mkdir()
    Path("file").touch()
    ended = runner.invoke(app, ["keys", *arguments])
    assert ended.exit_code == code
    assert says in ended.stderr


def test_a_bad_name_makes_no_keys_at_all() -> None:
    runner.invoke(app, ["keys", "init"])
    refused = runner.invoke(app, ["keys", "node", "n1", "Not Good"])
    assert refused.exit_code == 2
    assert "'Not Good' cannot be the name of a node" in refused.stderr
    assert not Path("keys/n1.key").exists()


def test_wrong_certificates_are_reported() -> None:
    Path("keys").mkdir()
    Path("keys/n1.crt").write_text("nonsense")
    shown = runner.invoke(app, ["keys", "show"])
    assert shown.exit_code == 2
    assert "n1.crt is not a certificate" in shown.stderr

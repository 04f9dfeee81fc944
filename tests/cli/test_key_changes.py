"""`comesh keys revoke|replace|rotate|bundle` and `comesh join`, as a person uses them. No node runs."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from real_processes import comesh

from comesh.runtime.bundle import Bundle
from comesh.runtime.credentials import Credentials
from comesh.runtime.documents import Chain
from comesh.runtime.invitation import JoinToken

DOCUMENT = """
nodes:
  n1: {place: [0m, 0m], address: "10.0.0.1:7440"}
  n2: {place: [1m, 0m], address: "10.0.0.2:7440"}
  n3: {place: [2m, 0m], address: "10.0.0.3:7440"}
devices:
  lamp: {place: [0m, 1m], readings: {on: bool}, commands: {set: {argument: bool, sets: on}}}
routines:
  light: {do: [{device: lamp, command: set, argument: true}]}
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    Path("floor.yaml").write_text(DOCUMENT)
    does("init")
    does("node", "n1", "n2")


def does(*arguments: str) -> str:
    ended = comesh("keys", *arguments)
    assert (ended.code, ended.stderr) == (0, "")
    return ended.stdout


def refuses(*arguments: str) -> str:
    ended = comesh(*arguments)
    assert ended.code == 2
    return ended.stderr


def shown() -> list[tuple[str, str]]:
    told: list[dict[str, Any]] = json.loads(does("show", "--json"))
    return [(one["who"], one["state"]) for one in told]


def test_revoke_show_and_make_again() -> None:
    assert "revoked 1 certificate; wrote keys/revoked.crl (list 1)" in does("revoke", "n1")
    assert ("node n1", "revoked") in shown()
    assert "revoked already" in does("revoke", "n1")
    does("node", "n1", "--force")
    assert shown() == [
        ("comesh authority", "in use"),
        ("node n1", "in use"),
        ("node n2", "in use"),
        ("node n1", "revoked"),
    ]
    row = next(line for line in does("show").splitlines() if "revoked" in line)
    assert row.split()[:2] == ["node", "n1"]
    assert "whose certificates?" in refuses("keys", "revoke")
    assert "keys has no certificate of n9" in refuses("keys", "revoke", "n9")


def test_replace_does_both() -> None:
    said = does("replace", "n2")
    assert "wrote keys/n2.key and keys/n2.crt: they belong on the new machine" in said
    assert "revoked 1 certificate; wrote keys/revoked.crl (list 1)" in said
    assert shown().count(("node n2", "in use")) == 1
    assert shown().count(("node n2", "revoked")) == 1


def test_rotate_nodes() -> None:
    before = Path("keys/n1.key").read_bytes()
    assert "wrote keys/n1.key" in does("rotate", "n1")
    assert Path("keys/n1.key").read_bytes() != before
    assert shown()[-1] == ("node n1", "former")
    does("revoke", "n1")
    assert "left out n1: its certificate is revoked" in does("rotate", "--all")
    assert "is revoked; if it is to take part again" in refuses("keys", "rotate", "n1")
    for wrong in ([], ["n1", "--all"], ["--finish"], ["--all", "--authority"]):
        assert "rotate what?" in refuses("keys", "rotate", *wrong)


def test_rotate_the_authority() -> None:
    assert "3. comesh keys rotate --authority --finish" in does("rotate", "--authority")
    assert shown()[:2] == [("comesh authority", "in use"), ("comesh authority", "former")]
    assert "would be refused: n1, n2" in refuses("keys", "rotate", "--authority", "--finish")
    does("rotate", "--all")
    does("rotate", "--authority", "--finish")
    assert [state for _, state in shown()] == ["in use"] * 3


def test_a_lost_authority_is_reported_and_replaced() -> None:
    Path("keys/authority.key").unlink()
    assert "has not the key of the authority" in refuses("keys", "revoke", "n1")
    assert "cannot be revoked, only dropped" in does("rotate", "--authority")


def test_made_is_the_day_and_valid_from_the_day_before() -> None:
    one = json.loads(does("show", "--json"))[0]
    assert one["valid_from"] < one["made"] < one["valid_to"]


def test_a_bundle_and_joining_with_it(tmp_path: Path) -> None:
    does("revoke", "n1")
    said = does("bundle", "n3", "--document", "floor.yaml", "-o", "n3.bundle")
    assert "made keys/n3.key and keys/n3.crt" in said
    there = tmp_path / "there"
    joined = comesh("join", "n3.bundle", "--keys", there / "keys", "--data", there / "data")
    assert joined.code == 0, joined.stderr
    assert (
        f"comesh node floor.yaml --name n3 --data {there / 'data'} --keys {there / 'keys'}" in joined.stdout
    )
    assert {path.name for path in (there / "keys").iterdir()} == {
        *("authority.crt", "n3.crt", "n3.key", "revoked.crl"),
    }
    assert (there / "keys" / "n3.key").stat().st_mode & 0o777 == 0o600
    assert Credentials.load(there / "keys", "n3").name == "n3"
    assert comesh("join", "n3.bundle", "--keys", there / "keys").code == 0, "again is fine"
    does("rotate", "n3")
    does("bundle", "n3", "--document", "floor.yaml", "-o", "n3.bundle", "--force")
    assert "exists already" in refuses("join", "n3.bundle", "--keys", str(there / "keys"))
    assert comesh("join", "n3.bundle", "--keys", there / "keys", "--force").code == 0


def test_a_name_that_never_ran_joins_with_the_chain(tmp_path: Path) -> None:
    first = Path("floor.yaml").read_text()
    Path("chain").write_text(Chain({1: first, 2: first + "# a remark\n"}).dump())
    does("bundle", "n3", "--document", "chain", "-o", "n3.bundle")
    there = tmp_path / "there"
    joined = comesh("join", "n3.bundle", "--first", "--keys", there / "keys", "--data", there / "data")
    assert joined.code == 0, joined.stderr
    assert "--init, the first time; later without --init" in joined.stdout


def test_bundles_that_are_refused() -> None:
    assert "there is no node 'n9'" in refuses("keys", "bundle", "n9", "--document", "floor.yaml", "-o", "b")
    does("revoke", "n1")
    assert "is revoked; make a new one" in refuses(
        "keys", "bundle", "n1", "--document", "floor.yaml", "-o", "b"
    )
    does("bundle", "n2", "--document", "floor.yaml", "-o", "n2.bundle")
    good = msgspec.json.decode(Path("n2.bundle").read_bytes(), type=Bundle)
    wrong = {
        "is the certificate of n2, not of n1": {"node": "n1"},
        "is no name of a file": {"document_name": "../floor.yaml"},
        "there is no node 'n2'": {"document": DOCUMENT.replace("n2:", "n4:")},
        "is of another version of comesh": {"comesh_bundle": 2},
        "is not a certificate": {"authorities": "nonsense"},
    }
    for says, changed in wrong.items():
        Path("bad").write_bytes(msgspec.json.encode(msgspec.structs.replace(good, **changed)))
        Path("bad").chmod(0o600)
        assert says in refuses("join", "bad", "--keys", "there")
        assert not any(path.is_file() for path in Path("there").rglob("*"))
    Path("bad").write_text("nonsense")
    assert "bad is not a bundle" in refuses("join", "bad", "--keys", "there")
    Path("n2.bundle").chmod(0o644)
    assert "can be read by others" in refuses("join", "n2.bundle", "--keys", "there")


def test_tokens_that_are_none() -> None:
    token = JoinToken.draw("ab" * 32)
    assert JoinToken.read(f" {token.text()}\n") == token
    other = JoinToken.draw("ab" * 32)
    assert other.proof != token.proof
    with pytest.raises(Exception, match="was changed on its way, or is not for it"):
        other.open(token.seal(b"keys"))
    assert token.open(token.seal(b"keys")) == b"keys"
    assert "where does the invitation wait?" in refuses("join", token.text())
    cut = token.text()[:-4]
    assert "copy all of it" in refuses("join", cut, "--at", "https://127.0.0.1:1")
    assert "does not answer" in refuses("join", token.text(), "--at", "https://127.0.0.1:1")
    assert "is not the address of a node" in refuses("join", token.text(), "--at", "ftp://there")
    invite = ("keys", "invite", "n1", "--document", "floor.yaml", "--at")
    assert "an operator's token is needed" in refuses(*invite, "https://127.0.0.1:1")
    Path("token").write_text("comesh_x")
    assert "others on the way can read" in refuses(*invite, "http://10.0.0.1:1", "--token-file", "token")

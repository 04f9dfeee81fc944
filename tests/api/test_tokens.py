"""Tokens: made and removed by commands, kept as hashes, taken up by a node that runs."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from one_node import one_node, until
from typer.testing import CliRunner

from comesh.api.tokens import DAY_MS, FILE, MAX_TOKENS, KnownTokens, TokensError, create, match, read
from comesh.cli.main import app
from comesh.queries.requests import Role

runner = CliRunner()


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "keys").mkdir()
    return tmp_path / "keys"


def test_a_token_is_printed_once_and_kept_as_a_hash(keys: Path) -> None:
    made = runner.invoke(app, ["keys", "token", "ann", "--role", "operator", "--days", "7"])
    assert made.exit_code == 0
    secret = made.stdout.strip()
    assert len(secret) > 43
    assert "it is not shown again" in made.stderr
    assert secret not in (keys / FILE).read_text()
    assert (keys / FILE).stat().st_mode & 0o077 == 0
    assert runner.invoke(app, ["keys", "token", "bob"]).exit_code == 0
    listed = json.loads(runner.invoke(app, ["keys", "tokens", "--json"]).stdout)
    assert [(one["name"], one["role"], one["expired"]) for one in listed] == [
        ("ann", "operator", False),
        ("bob", "viewer", False),
    ]
    assert listed[1]["expires"] is None
    shown = runner.invoke(app, ["keys", "tokens"]).stdout
    assert "ann" in shown
    assert "never" in shown
    assert runner.invoke(app, ["keys", "token", "ann", "--remove"]).exit_code == 0
    assert [one.name for one in read(keys)] == ["bob"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["token", "a b"], "'a b' cannot name a token"),
        (["token", "ann"], "there is a token 'ann' already; remove it first"),
        (["token", "new", "--days", "0"], "valid for 1 to 36500 days"),
        (["token", "bob", "--remove"], "there is no token 'bob' in keys/tokens.json; known: ann"),
        (["token", "new", "--keys", "none"], "none cannot be used (No such file or directory); --keys says"),
        (["token", "new", "--role", "king"], "king"),
    ],
)
def test_what_cannot_be_made_is_told(keys: Path, arguments: list[str], says: str) -> None:
    assert runner.invoke(app, ["keys", "token", "ann"]).exit_code == 0
    refused = runner.invoke(app, ["keys", *arguments])
    assert (refused.exit_code, says in refused.stderr) == (2, True), refused.stderr
    assert [one.name for one in read(keys)] == ["ann"]


def test_a_token_ends_with_its_days(keys: Path) -> None:
    secret = create(keys, "ann", Role.VIEWER, 0.0, 2)
    [token] = read(keys)
    assert match((token,), secret, 2 * DAY_MS - 1) == token
    assert match((token,), secret, 2 * DAY_MS) is None
    assert match((token,), secret + "x", 0.0) is None
    assert match((), secret, 0.0) is None


def test_tokens_are_bounded(keys: Path) -> None:
    for number in range(MAX_TOKENS):
        create(keys, f"t{number}", Role.VIEWER, 0.0)
    with pytest.raises(TokensError, match="256 tokens already"):
        create(keys, "more", Role.VIEWER, 0.0)
    assert len(read(keys)) == MAX_TOKENS


@pytest.mark.parametrize("content", [b"nonsense", b"{}", b"[" * 5000, b"\xff", b'[{"name": "x"}]', b""])
def test_a_file_that_is_none_lets_nobody_in(keys: Path, content: bytes) -> None:
    secret = create(keys, "ann", Role.VIEWER, 0.0)
    known = KnownTokens(keys)
    assert known.who(secret, 0.0) is not None
    (keys / FILE).write_bytes(content)
    assert known.who(secret, 0.0) is None
    assert "is no list of tokens; remove it" in known.trouble
    (keys / FILE).unlink()
    assert known.who(secret, 0.0) is None
    assert known.trouble == ""


def test_a_file_that_others_may_change_is_refused(keys: Path) -> None:
    secret = create(keys, "ann", Role.VIEWER, 0.0)
    (keys / FILE).chmod(0o660)
    known = KnownTokens(keys)
    assert known.who(secret, 0.0) is None
    assert "keep it to its owner with: chmod 600" in known.trouble


def test_a_node_takes_up_what_changes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with one_node(tmp_path) as node:
            late = create(tmp_path / "keys", "late", Role.VIEWER, 1000.0 * time.time())
            assert (await node.get("/api/v1/nodes", token=late))[0] == 200
            gone = runner.invoke(app, ["keys", "token", "late", "--remove", "--keys", str(tmp_path / "keys")])
            assert gone.exit_code == 0
            assert (await node.get("/api/v1/nodes", token=late))[0] == 401
            (tmp_path / "keys" / FILE).chmod(0o644)
            assert (await node.get("/api/v1/nodes"))[0] == 401
            await until(lambda: "nobody may ask over HTTP" in node.said())

    asyncio.run(scene())

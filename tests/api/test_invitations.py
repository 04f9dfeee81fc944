"""Invitations over HTTP: kept sealed, taken once, bounded; a wrong proof learns nothing."""

import asyncio
import ssl
from pathlib import Path
from shutil import copytree
from typing import Any

import msgspec
import pytest
from one_node import OneNode, one_node, until
from typer.testing import CliRunner

from comesh.api import invitations
from comesh.api.invitations import MAX_WRONG
from comesh.cli.main import app
from comesh.runtime.credentials import Authority
from comesh.runtime.invitation import MAX_SEALED_BYTES, JoinToken
from comesh.runtime.keyring import replace_node

FINGERPRINT = "ab" * 32
runner = CliRunner()


async def post(node: OneNode, path: str, body: object, token: str | None = None) -> tuple[int, Any]:
    answer = await node.say(node.request("POST", path, msgspec.json.encode(body), token=token))
    head, _, content = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), msgspec.json.decode(content)


def wish(token: JoinToken, **more: object) -> dict[str, object]:
    sealed = token.seal(b"keys")
    return {
        "id": token.id,
        "node": "n1",
        "verifier": token.verifier,
        "hours": 1.0,
        "sealed": sealed,
        **more,
    }


async def take(node: OneNode, token: JoinToken, proof: str | None = None) -> tuple[int, Any]:
    """Without an API token."""
    path = f"/api/v1/invitations/{token.id}/take"
    return await post(node, path, {"proof": token.proof if proof is None else proof}, token="")


def test_it_is_kept_and_taken_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:
            token = JoinToken.draw(FINGERPRINT)
            status, made = await post(node, "/api/v1/invitations", wish(token))
            assert (status, made["node"]) == (200, "n1")
            kept = tmp_path / "data" / "invitations" / token.id
            assert kept.stat().st_mode & 0o777 == 0o600
            assert token.proof not in kept.read_text()
            status, taken = await take(node, token)
            assert status == 200
            assert token.open(taken["sealed"]) == b"keys"
            assert not kept.exists()
            assert (await take(node, token))[0] == 403
            assert node.assembly.host.counters["invitations taken"] == 1

    asyncio.run(story())


def test_a_wrong_proof_learns_nothing_and_ten_remove_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:
            token, other = JoinToken.draw(FINGERPRINT), JoinToken.draw(FINGERPRINT)
            await post(node, "/api/v1/invitations", wish(token))
            nowhere = await take(node, other)
            for _ in range(MAX_WRONG - 1):
                assert await take(node, token, other.proof) == nowhere
            assert (tmp_path / "data" / "invitations" / token.id).exists()
            assert await take(node, token, other.proof) == nowhere
            assert await take(node, token) == nowhere
            assert nowhere[0] == 403
            assert node.assembly.host.counters["invitations refused"] == MAX_WRONG + 2
            await until(lambda: "removed after 10 wrong proofs" in node.said())

    asyncio.run(story())


def test_who_may_bring_one_and_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:
            token = JoinToken.draw(FINGERPRINT)
            path = "/api/v1/invitations"
            assert (await post(node, path, wish(token), token="nobody's"))[0] == 401
            assert (await post(node, path, wish(token, node="n9")))[0] == 404
            assert (await post(node, path, wish(token, hours=0)))[0] == 400
            assert (await post(node, path, wish(token, id="../../etc")))[0] == 400
            assert (await post(node, path, wish(token, sealed="A" * (MAX_SEALED_BYTES * 4 // 3 + 5))))[
                0
            ] == 400
            head = node.request("POST", path).replace(b"content-length: 0", b"content-length: 9999999")
            assert (await node.say(head)).startswith(b"HTTP/1.1 413 ")
            assert (await post(node, path, wish(token)))[0] == 200
            assert (await post(node, path, wish(token)))[0] == 409
            monkeypatch.setattr(invitations, "MAX_INVITATIONS", 2)
            assert (await post(node, path, wish(JoinToken.draw(FINGERPRINT))))[0] == 200
            status, said = await post(node, path, wish(JoinToken.draw(FINGERPRINT)))
            assert (status, said["error"][:19]) == (409, "2 invitations wait ")

    asyncio.run(story())


def test_it_outlives_a_restart_and_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:
            long, short = JoinToken.draw(FINGERPRINT), JoinToken.draw(FINGERPRINT)
            await post(node, "/api/v1/invitations", wish(long, hours=700))
            await post(node, "/api/v1/invitations", wish(short))
            again = invitations.Invitations(node.assembly)  # as the next process sees it
            assert set(again._waiting()) == {long.id, short.id}
            now_ms = node.assembly.clock.wall_ms()
            monkeypatch.setattr(again, "_now_ms", lambda: now_ms + 2 * invitations.HOUR_MS)
            assert set(again._waiting()) == {long.id}
            assert not (tmp_path / "data" / "invitations" / short.id).exists()

    asyncio.run(story())


def test_over_tls_with_the_node_s_own_certificate_which_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person's command knows the node by the authority; the new machine needs only the token."""

    async def story() -> None:
        async with one_node(tmp_path, api_cert="own") as node:
            monkeypatch.setenv("COMESH_TOKEN", node.token)
            at, keys = f"https://127.0.0.1:{node.port}", str(tmp_path / "keys")
            invite = ["keys", "invite", "n1", "--at", at, "--document", str(tmp_path / "alone.yaml")]
            made = await asyncio.to_thread(runner.invoke, app, [*invite, "--keys", keys])
            assert made.exit_code == 0, made.stderr
            monkeypatch.chdir(tmp_path)
            join = ["join", "-", "--at", at, "--keys", "there"]
            wrong = await asyncio.to_thread(runner.invoke, app, join, "shed.bundle")
            assert "this is no token" in wrong.stderr
            joined = await asyncio.to_thread(runner.invoke, app, join, made.stdout)
            assert joined.exit_code == 0, joined.stderr
            assert (tmp_path / "there" / "n1.key").read_bytes() == (tmp_path / "keys" / "n1.key").read_bytes()
            Authority.create(tmp_path / "theirs").issue("n1").write(tmp_path / "theirs", "n1")
            refused = await asyncio.to_thread(
                runner.invoke, app, [*invite, "--keys", str(tmp_path / "theirs")]
            )
            assert "shows a certificate that is not trusted here" in refused.stderr
            copytree(tmp_path / "keys", tmp_path / "desk")
            replace_node(tmp_path / "desk", "n1")
            stolen = await asyncio.to_thread(runner.invoke, app, [*invite, "--keys", str(tmp_path / "desk")])
            assert "shows a revoked certificate: it is told nothing" in stolen.stderr
            where = ("127.0.0.1", node.port)
            before = await asyncio.to_thread(ssl.get_server_certificate, where)
            Authority.load(tmp_path / "keys").issue("n1").write(tmp_path / "keys", "n1", force=True)
            await until(lambda: "new keys of this node are used" in node.said())
            assert await asyncio.to_thread(ssl.get_server_certificate, where) != before

    asyncio.run(story())

"""What a client may send and hold: everything has a bound, and who goes beyond it is told or cut off."""

import asyncio
import contextlib
import re
import socket
import ssl
from pathlib import Path

import pytest
from one_node import BOUND_S, OneNode, one_node, until

from comesh.api import edge, events, server
from comesh.api.limits import MAX_BODY_BYTES, MAX_HEADER_BYTES
from comesh.api.tokens import remove
from comesh.queries.answers import News
from comesh.queries.requests import ShowDevice

FIRE = "/api/v1/routines/light/fire"
BOUNDS = (("MAX_CONNECTIONS", b"connections as it takes"), ("MAX_OF_ONE_ADDRESS", b"from one address"))


async def still_answers(node: OneNode) -> bool:
    status, _ = await node.get("/api/v1/devices/lamp")
    return status == 200


def test_a_body_that_is_too_long_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with one_node(tmp_path) as node:
            long = b'{"request": "' + b"x" * MAX_BODY_BYTES + b'"}'
            assert b" 413 " in (await node.say(node.request("POST", FIRE, long)))[:20]
            pieces = b"".join(b"2000\r\n" + b"x" * 0x2000 + b"\r\n" for _ in range(9)) + b"0\r\n\r\n"
            request = node.request("POST", FIRE).replace(b"content-length: 0", b"transfer-encoding: chunked")
            assert b" 413 " in (await node.say(request + pieces))[:20]
            assert await still_answers(node)

    asyncio.run(scene())


@pytest.mark.parametrize(
    "request_text",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100) + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * MAX_HEADER_BYTES + b"\r\n\r\n",
        b"GET /" + b"x" * (2 * MAX_HEADER_BYTES) + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        b"POST /health HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /health HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"GET \xff HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(tmp_path: Path, request_text: bytes) -> None:
    async def scene() -> None:
        async with one_node(tmp_path) as node:
            answer = await node.say(request_text)
            assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 ")), answer
            assert b'{"error":' in answer
            assert await still_answers(node)

    asyncio.run(scene())


def test_a_slow_request_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing at all, headers that never end, a body that nobody asked for and that never ends."""
    monkeypatch.setattr(server, "REQUEST_S", 1.0)

    async def scene() -> None:
        async with one_node(tmp_path) as node:
            endless = node.request("GET", "/api/v1/nodes").replace(b"content-length: 0", b"content-length: 9")
            for begun in (
                b"",
                b"GET /health HTTP/1.1\r\nhost: x\r\n",
                endless.replace(b"close", b"keep-alive"),
            ):
                reader, writer = await node.connect()
                writer.write(begun)
                await asyncio.wait_for(_all(reader), BOUND_S)
                writer.close()
            assert await still_answers(node)

    asyncio.run(scene())


def test_a_slow_body_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "BODY_S", 0.2)

    async def scene() -> None:
        async with one_node(tmp_path) as node:
            request = node.request("POST", FIRE).replace(b"content-length: 0", b"content-length: 9")
            assert (await node.say(request + b"{")).startswith(b"HTTP/1.1 408 ")

    asyncio.run(scene())


@pytest.mark.parametrize(("bound", "says"), BOUNDS)
def test_connections_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, says: bytes
) -> None:
    monkeypatch.setattr(server, bound, 3)

    async def scene() -> None:
        async with one_node(tmp_path) as node:
            held = [await node.connect() for _ in range(3)]
            for _, writer in held:  # each has been let in when it is answered
                writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
            for reader, _ in held:
                assert (await asyncio.wait_for(reader.readline(), BOUND_S)).startswith(b"HTTP/1.1 200")
            refused = await node.say(b"")
            assert refused.startswith(b"HTTP/1.1 503 ")
            assert says in refused
            for _, writer in held:
                writer.close()
            answered = False
            while not answered:
                answered = b" 200 " in (await node.say(node.request("GET", "/health")))[:20]

    asyncio.run(asyncio.wait_for(scene(), BOUND_S))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the loop drops the socket
def test_handshakes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_HANDSHAKES", 2)
    monkeypatch.setattr(server, "HANDSHAKE_S", 3.0)

    async def scene() -> None:
        async with one_node(tmp_path, api_cert="own") as node:
            trusted = ssl.create_default_context(cafile=str(tmp_path / "keys" / "authority.crt"))
            silent = [await node.connect() for _ in range(2)]
            with pytest.raises(OSError):
                await asyncio.open_connection("127.0.0.1", node.port, ssl=trusted, server_hostname="n1")
            for reader, writer in silent:  # until they are given up
                await asyncio.wait_for(_all(reader), BOUND_S)
                writer.close()
            for _ in range(5):  # those that end well take no room
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", node.port, ssl=trusted, server_hostname="n1"
                )
                writer.write(node.request("GET", "/health"))
                assert (await asyncio.wait_for(reader.read(), BOUND_S)).startswith(b"HTTP/1.1 200 ")
                writer.close()

    asyncio.run(scene())


def test_an_answer_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShowDevice, "within_s", 0.1)

    async def scene() -> None:
        async with one_node(tmp_path) as node:

            async def never(*_: object) -> object:
                return await asyncio.Event().wait()

            monkeypatch.setattr(node.assembly.table.mesh, "ask_leader", never)
            status, answer = await node.get("/api/v1/devices/lamp")
            assert (status, "no answer within" in answer["error"]) == (504, True)

    asyncio.run(scene())


# -- events --------------------------------------------------------------------------------------------------


async def followed(node: OneNode) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client of the event stream that has read how it begins."""
    reader, writer = await node.connect()
    writer.write(node.request("GET", "/api/v1/events"))
    await asyncio.wait_for(reader.readuntil(b": still here"), BOUND_S)
    return reader, writer


def test_events_come_as_they_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.1)

    async def scene() -> None:
        async with one_node(tmp_path) as node:
            reader, writer = await followed(node)
            await asyncio.wait_for(reader.readuntil(b": still here"), BOUND_S)
            await node.say(node.request("POST", FIRE, b'{"request": "now"}'))
            await asyncio.wait_for(reader.readuntil(b"event: news"), BOUND_S)
            await asyncio.wait_for(reader.readuntil(b'"what":"finished"'), BOUND_S)
            assert len(node.assembly.peers.on_news) == 1
            writer.close()
            await until(lambda: not node.assembly.peers.on_news)  # nobody follows any more

    asyncio.run(scene())


def test_a_stream_ends_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "TOKEN_S", 0.1)

    async def scene() -> None:
        async with one_node(tmp_path) as node:
            reader, writer = await followed(node)
            remove(tmp_path / "keys", "does")
            await asyncio.wait_for(_all(reader), BOUND_S)
            await until(lambda: not node.assembly.peers.on_news)
            writer.close()

    asyncio.run(scene())


def test_followers_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_EVENT_CLIENTS", 2)

    async def scene() -> None:
        async with one_node(tmp_path) as node:
            held = [await followed(node) for _ in range(2)]
            status, answer = await node.get("/api/v1/events")
            assert (status, "ask another node" in answer["error"]) == (503, True)
            held[0][1].close()
            await until(lambda: node.assembly.peers.on_news)
            for _, writer in held:
                writer.close()

    asyncio.run(scene())


def test_a_client_that_does_not_read_loses_events_and_is_told(tmp_path: Path) -> None:
    async def scene() -> None:
        async with one_node(tmp_path) as node:
            reader, writer = await _small_reader(node)
            news = News(0.0, node.assembly.node.id, "run", "x", "y" * 1000)
            for _ in range(200):
                for _ in range(100):
                    for watcher in node.assembly.history.watchers:
                        watcher(news)
                await asyncio.sleep(0)
            assert await still_answers(node)  # nobody else is held up
            told = b""
            while not (lost := re.search(rb'event: lost\ndata: \{"event":"lost","lost":(\d+)\}', told)):
                told = told[-100:] + await asyncio.wait_for(reader.read(65_536), BOUND_S)
            assert int(lost[1]) > 0
            writer.close()

    asyncio.run(scene())


def test_a_client_that_never_reads_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STALLED_S", 0.3)

    async def scene() -> None:
        async with one_node(tmp_path) as node:
            _, writer = await _small_reader(node)
            news = News(0.0, node.assembly.node.id, "run", "x", "y" * 1000)

            def flooded() -> bool:
                for watcher in node.assembly.history.watchers:
                    watcher(news)
                return not node.assembly.peers.on_news

            await until(lambda: any(flooded() for _ in range(1000)))
            writer.close()

    asyncio.run(scene())


async def _small_reader(node: OneNode) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A follower with little room for what it does not read."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(("127.0.0.1", node.port))
    reader, writer = await asyncio.open_connection(sock=one, limit=1024)
    writer.write(node.request("GET", "/api/v1/events"))
    await until(lambda: node.assembly.peers.on_news)
    return reader, writer


async def _all(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        await reader.read()

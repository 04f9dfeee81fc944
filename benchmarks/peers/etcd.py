"""etcd: three members on loopback, and lock + unlock through the JSON gateway of its leader.

The client speaks HTTP over plain sockets with connections that stay open, so that it costs as little as it
can. One lease is granted before; a pair is POST /v3/lock/lock and POST /v3/lock/unlock, from sending the
first to having the answer of the second.
"""

import asyncio
import base64
import contextlib
import os
import socket
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from peers.results import Effort, Result, result
from peers.stage import LOOPBACK, MissingError, free_ports, install, running, scratch, wait_until

PACKAGE: Final = "etcd-server"
MEMBERS: Final = 3
LEASE_S: Final = 600
"""Longer than a measurement: it is never renewed."""
READY_S: Final = 30.0
ANSWER_S: Final = 10.0
"""The longest that one answer may take."""
MAX_BYTES: Final = 65_536
"""Of one answer."""


class Member(msgspec.Struct, frozen=True):
    port: int
    """Of its clients, on loopback."""
    log: Path


@contextlib.contextmanager
def etcd_cluster() -> Iterator[Member]:
    """Three members that are ready; yields their leader."""
    install(PACKAGE, "etcd")
    with scratch() as directory, contextlib.ExitStack() as processes:
        ports = free_ports(2 * MEMBERS)
        peer_ports, client_ports = ports[:MEMBERS], ports[MEMBERS:]
        members = [Member(port, directory / f"m{number}.log") for number, port in enumerate(client_ports)]
        for number, member in enumerate(members):
            command = _command(number, directory, peer_ports, member.port)
            processes.enter_context(running(command, member.log, env=_environment()))
        yield _ready_leader(members)


def _command(number: int, directory: Path, peer_ports: Sequence[int], port: int) -> list[str]:
    peer = f"http://{LOOPBACK}:{peer_ports[number]}"
    client = f"http://{LOOPBACK}:{port}"
    everyone = ",".join(f"m{other}=http://{LOOPBACK}:{port}" for other, port in enumerate(peer_ports))
    return [
        *("etcd", "--name", f"m{number}", "--data-dir", str(directory / f"m{number}")),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *("--initial-cluster", everyone, "--initial-cluster-state", "new"),
        *("--logger", "zap", "--log-level", "error"),
    ]


def _environment() -> dict[str, str]:
    """Without the settings of some other etcd."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ETCD_")}


def _ready_leader(members: Sequence[Member]) -> Member:
    leaders: list[Member] = []

    def ready() -> bool:
        leaders.clear()
        agreed = set()
        for member in members:
            try:
                with contextlib.closing(Gateway(member.port)) as gateway:
                    status = gateway.ask("/v3/maintenance/status", {})
            except OSError:
                return False
            agreed.add(status.get("leader", "0"))
            if status.get("leader") == status["header"]["member_id"]:
                leaders.append(member)
        return len(leaders) == 1 and len(agreed) == 1

    wait_until(ready, READY_S, "etcd", members[0].log)
    return leaders[0]


def text(value: bytes) -> str:
    """Bytes as the gateway wants them."""
    return base64.b64encode(value).decode()


def request(path: str, body: object) -> bytes:
    content = msgspec.json.encode(body)
    head = f"POST {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def split_answer(data: bytes) -> bytes | None:
    """The body, if all of it is there."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return None
    if not head.startswith(b"HTTP/1.1 200 "):
        raise MissingError(f"etcd refused: {head.splitlines()[0].decode()} {body[:200].decode()}")
    lengths = [line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    if not lengths:
        raise MissingError("etcd answered without a length; this client does not read chunks")
    length = int(lengths[0])
    return body if len(body) >= length else None


class Gateway:
    """One connection, one question at a time."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((LOOPBACK, port), ANSWER_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, path: str, body: object) -> Any:
        return msgspec.json.decode(self.send(request(path, body)))

    def send(self, data: bytes) -> bytes:
        self._socket.sendall(data)
        answer = b""
        while (body := split_answer(answer)) is None:
            more = self._socket.recv(MAX_BYTES)
            if not more or len(answer) > MAX_BYTES:
                raise ConnectionError("etcd closed the connection, or answered too much")
            answer += more
        return body

    def lease(self) -> str:
        """Granted now; the gateway writes whole numbers as text."""
        granted: str = self.ask("/v3/lease/grant", {"TTL": LEASE_S, "ID": 0})["ID"]
        return granted

    def close(self) -> None:
        self._socket.close()


def lock_request(name: bytes, lease: str) -> bytes:
    return request("/v3/lock/lock", {"name": text(name), "lease": lease})


def unlock_request(answer: bytes) -> bytes:
    """For what an answer to a lock request says."""
    return request("/v3/lock/unlock", {"key": msgspec.json.decode(answer)["key"]})


def one_after_the_other(port: int, count: int) -> tuple[list[float], float]:
    """Milliseconds of each pair, and seconds of all."""
    with contextlib.closing(Gateway(port)) as gateway:
        lock = lock_request(b"comesh", gateway.lease())
        took_ms: list[float] = []
        began = time.perf_counter()
        for _ in range(count):
            start = time.perf_counter()
            gateway.send(unlock_request(gateway.send(lock)))
            took_ms.append((time.perf_counter() - start) * 1000)
        return took_ms, time.perf_counter() - began


class _Worker(asyncio.Protocol):
    """One connection with a lock of its own: lock, unlock, and again, until the common count is reached."""

    def __init__(self, number: int, lease: str, left: list[int], took_ms: list[float]) -> None:
        self._lock = lock_request(f"comesh{number}".encode(), lease)
        self._left = left
        self._took_ms = took_ms
        self._answer = b""
        self._locked = False
        self._start = 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def begin(self) -> None:
        if self._left[0] == 0:
            self._transport.close()
            return
        self._left[0] -= 1
        self._start = time.perf_counter()
        self._transport.write(self._lock)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        try:
            body = split_answer(self._answer)
        except MissingError as error:
            self.done.set_exception(error)
            self._transport.abort()
            return
        if body is None:
            return
        self._answer = b""
        self._locked = not self._locked
        if self._locked:
            self._transport.write(unlock_request(body))
            return
        self._took_ms.append((time.perf_counter() - self._start) * 1000)
        self.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.done.done():
            return
        if exc is None and not self._locked and self._left[0] == 0:
            self.done.set_result(None)
        else:
            self.done.set_exception(exc or ConnectionError("etcd closed a connection"))


def _itself(worker: _Worker) -> _Worker:
    return worker


def at_once(port: int, count: int, workers: int) -> tuple[list[float], float]:
    """The same, by so many workers at once that share the count."""
    with contextlib.closing(Gateway(port)) as gateway:
        lease = gateway.lease()

    async def all_of_them() -> tuple[list[float], float]:
        loop = asyncio.get_running_loop()
        left, took_ms = [count], list[float]()
        made = [_Worker(number, lease, left, took_ms) for number in range(workers)]
        for worker in made:
            await loop.create_connection(partial(_itself, worker), LOOPBACK, port)
        began = time.perf_counter()
        for worker in made:
            worker.begin()
        await asyncio.gather(*(worker.done for worker in made))
        return took_ms, time.perf_counter() - began

    return asyncio.run(all_of_them())


def measure(effort: Effort) -> Iterator[Result]:
    with etcd_cluster() as leader:
        one_after_the_other(leader.port, effort.warm_up)
        yield result(
            "etcd, JSON gateway: lock + unlock", "ms", *one_after_the_other(leader.port, effort.count)
        )
        at_once(leader.port, effort.warm_up, effort.at_once)
        busy = at_once(leader.port, effort.count, effort.at_once)
        yield result(f"etcd, JSON gateway: lock + unlock, {effort.at_once} at once", "ms", *busy)

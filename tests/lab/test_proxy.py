"""Tests of the relay between nodes on loopback: addresses, and the faults of links."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from comesh.lab.proxy import Link, Proxy, ProxyError, free_addresses

BOUND_S = 20.0
LAST = b"the last one"


class Ear(asyncio.DatagramProtocol):
    """One node, with the datagrams it received and their sources."""

    def __init__(self) -> None:
        self.heard: list[tuple[bytes, tuple[str, int]]] = []
        self.changed = asyncio.Event()
        self.closed = asyncio.Event()
        self.transport: asyncio.DatagramTransport | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        self.heard.append((data, (addr[0], addr[1])))
        self.changed.set()

    async def hears(self, enough: Callable[["Ear"], bool]) -> None:
        while not enough(self):
            self.changed.clear()
            await self.changed.wait()

    @property
    def messages(self) -> list[bytes]:
        return [data for data, _ in self.heard]


class Mesh:
    """Three nodes behind a proxy."""

    def __init__(self, seed: int = 1, host: str = "127.0.0.1") -> None:
        self.proxy = Proxy(seed=seed)
        self.nodes = free_addresses(["a", "b", "c"], host)
        self.addresses: dict[str, dict[str, tuple[str, int]]] = {}
        self.ears: dict[str, Ear] = {}

    async def __aenter__(self) -> "Mesh":
        loop = asyncio.get_running_loop()
        self.addresses = await self.proxy.start(self.nodes)
        for name, address in self.nodes.items():
            transport, ear = await loop.create_datagram_endpoint(Ear, local_addr=address)
            ear.transport, self.ears[name] = transport, ear
        return self

    async def __aexit__(self, *_: object) -> None:
        for ear in self.ears.values():
            assert ear.transport is not None
            ear.transport.close()
            await ear.closed.wait()
        await self.proxy.close()

    def send(self, sender: str, receiver: str, data: bytes) -> None:
        transport = self.ears[sender].transport
        assert transport is not None
        transport.sendto(data, self.addresses[sender][receiver])

    async def settles(self, sender: str, receiver: str, datagrams: int) -> None:
        """The proxy has taken so many of this pair and holds none of them, and what it passed on is heard."""
        count = self.proxy.counts[sender, receiver]

        def held() -> int:
            taken = count.datagrams + count.duplicated
            return taken - count.lost - count.cut - count.overflowed - count.delivered

        while count.datagrams < datagrams or held() or len(self.ears[receiver].heard) < count.delivered:
            await asyncio.sleep(0)


def run(body: Callable[[Mesh], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def all_of_it() -> None:
        async with asyncio.timeout(BOUND_S), Mesh(**options) as mesh:
            await body(mesh)

    asyncio.run(all_of_it())


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here"))],
)
def test_an_answer_to_the_source_address_arrives(host: str) -> None:
    async def body(mesh: Mesh) -> None:
        mesh.send("a", "b", b"hello")
        await mesh.ears["b"].hears(lambda ear: len(ear.heard) == 1)
        data, source = mesh.ears["b"].heard[0]
        assert (data, source) == (b"hello", mesh.addresses["b"]["a"])
        mesh.send("b", "a", b"and hello")
        await mesh.ears["a"].hears(lambda ear: len(ear.heard) == 1)
        assert mesh.ears["a"].heard == [(b"and hello", mesh.addresses["a"]["b"])]
        count = mesh.proxy.counts["a", "b"]
        assert (count.datagrams, count.bytes, count.delivered) == (1, 5, 1)

    run(body, host=host)


def test_sides_of_a_partition_do_not_hear_each_other_until_it_is_healed() -> None:
    async def body(mesh: Mesh) -> None:
        mesh.proxy.partition([["a", "b"], ["c"]])
        mesh.send("a", "c", b"lost")
        mesh.send("c", "b", b"lost")
        mesh.send("a", "b", b"heard")
        await mesh.ears["b"].hears(lambda ear: ear.messages == [b"heard"])
        await mesh.settles("a", "c", 1)
        await mesh.settles("c", "b", 1)
        mesh.proxy.partition([["a"], ["b"]])
        mesh.send("a", "b", b"lost")
        await mesh.settles("a", "b", 2)
        mesh.proxy.heal()
        for receiver in "bc":
            mesh.send("a", receiver, LAST)
            await mesh.ears[receiver].hears(lambda ear: LAST in ear.messages)
        assert mesh.ears["b"].messages == [b"heard", LAST]
        assert mesh.ears["c"].messages == [LAST]
        assert [mesh.proxy.counts[pair].cut for pair in [("a", "c"), ("c", "b"), ("a", "b")]] == [1, 1, 1]

    run(body)


def test_one_direction_can_be_cut() -> None:
    async def body(mesh: Mesh) -> None:
        mesh.proxy.cut("a", "b")
        mesh.send("a", "b", b"lost")
        mesh.send("b", "a", b"heard")
        await mesh.ears["a"].hears(lambda ear: ear.messages == [b"heard"])
        await mesh.settles("a", "b", 1)
        mesh.proxy.heal()
        mesh.send("a", "b", LAST)
        await mesh.ears["b"].hears(lambda ear: ear.messages == [LAST])

    run(body)


@pytest.mark.parametrize("what", ["deafen", "silence"])
def test_a_node_can_be_made_deaf_or_silent(what: str) -> None:
    async def body(mesh: Mesh) -> None:
        getattr(mesh.proxy, what)("a")
        lost, heard = ("ba", "ab") if what == "deafen" else ("ab", "ba")
        mesh.send(*lost, b"lost")
        mesh.send(*heard, b"heard")
        mesh.send("b", "c", b"heard")
        for receiver in (heard[1], "c"):
            await mesh.ears[receiver].hears(lambda ear: ear.messages == [b"heard"])
        await mesh.settles(*lost, 1)
        mesh.proxy.heal()
        mesh.send(*lost, LAST)
        await mesh.ears[lost[1]].hears(lambda ear: ear.messages == [LAST])

    run(body)


async def send_numbers(mesh: Mesh, count: int) -> list[int]:
    """Send numbers in portions, so that no buffer overflows; returns those that b received."""
    for number in range(count):
        mesh.send("a", "b", b"%d" % number)
        if number % 20 == 19:
            await mesh.settles("a", "b", number + 1)
    await mesh.settles("a", "b", count)
    mesh.proxy.set_link("a", "b", Link(delay_ms=60.0))
    mesh.send("a", "b", LAST)
    await mesh.ears["b"].hears(lambda ear: LAST in ear.messages)
    return [int(data) for data in mesh.ears["b"].messages if data != LAST]


def test_losses_are_drawn_from_the_seed() -> None:
    heard: list[list[int]] = []

    async def body(mesh: Mesh) -> None:
        mesh.proxy.set_link("a", "b", Link(loss=0.3))
        heard.append(await send_numbers(mesh, 400))
        count = mesh.proxy.counts["a", "b"]
        assert count.lost == 400 - len(heard[-1])
        assert 60 < count.lost < 180

    for seed in (1, 1, 2):
        run(body, seed=seed)
    assert heard[0] == heard[1] != heard[2]


def test_datagrams_are_repeated_and_overtaken() -> None:
    async def body(mesh: Mesh) -> None:
        link = Link(delay_ms=2.0, jitter_ms=2.0, duplicate=0.2, reorder=0.2, hold_ms=5.0)
        mesh.proxy.set_link("a", "b", link)
        heard = await send_numbers(mesh, 300)
        count = mesh.proxy.counts["a", "b"]
        assert set(heard) == set(range(300))
        assert len(heard) == 300 + count.duplicated > 320
        assert heard != sorted(heard)
        assert count.held > 20

    run(body)


def test_a_datagram_of_a_stranger_is_not_relayed() -> None:
    async def body(mesh: Mesh) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind(("127.0.0.1", 0))
            stranger.sendto(b"I am a", mesh.addresses["a"]["b"])
            while not mesh.proxy.counts["a", "b"].strange:
                await asyncio.sleep(0)
            mesh.proxy.move("a", stranger.getsockname())
            stranger.sendto(b"a has moved", mesh.addresses["a"]["b"])
            await mesh.ears["b"].hears(lambda ear: ear.messages == [b"a has moved"])

    run(body)


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ProxyError, match="loss is 2"):
        Link(loss=2.0)
    with pytest.raises(ProxyError, match="must not be negative"):
        Link(delay_ms=-1.0)

    async def body(mesh: Mesh) -> None:
        with pytest.raises(ProxyError, match="no node 'x'"):
            mesh.proxy.partition([["x"]])
        with pytest.raises(ProxyError, match="does not reach itself"):
            mesh.proxy.cut("a", "a")
        with pytest.raises(ProxyError, match="no node 'x'"):
            mesh.proxy.deafen("x")
        with pytest.raises(ProxyError, match="runs already"):
            await mesh.proxy.start(mesh.nodes)

    run(body)

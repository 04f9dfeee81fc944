"""Handshakes that are begun and not ended: whoever begins many of them keeps nobody else out."""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from transport_parts import HOST, ONE, TWO, Inbox, begin_handshake, credentials, make, opened, until

from comesh.core.ids import NodeId
from comesh.runtime.transport.session import Session, Way
from comesh.runtime.transport.settings import (
    MAX_HALF_OPEN,
    MAX_HALF_OPEN_OF_ONE_HOST,
    MAX_HALF_OPEN_OF_ONE_IN_THE_BOOK,
    MAX_HALF_OPEN_OF_ONE_NETWORK,
    TransportSettings,
)
from comesh.runtime.transport.slots import Slots, network
from comesh.runtime.transport.udp import UdpTransport

ELSEWHERE = "127.0.0.2"
FAR = "127.9.0.1"
PATIENT = TransportSettings(handshake_limit_ms=60_000.0, chance_ms=60_000.0)
"""What is begun stays begun for the length of a test, unless it is displaced for somebody else."""


@contextmanager
def sockets(hosts: list[str]) -> Iterator[list[socket.socket]]:
    opened_ones: list[socket.socket] = []
    try:
        for host in hosts:
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            opened_ones.append(one)
            one.bind((host, 0))
            one.setblocking(False)
        yield opened_ones
    finally:
        for one in opened_ones:
            one.close()


async def crowd(hosts: list[str], receiver: UdpTransport, times: int) -> None:
    """From each of these so many handshakes are begun, with valid cookies, and none goes on."""
    with sockets(hosts) as ones:
        for one in ones * times:
            await begin_handshake(one, (HOST, receiver.port))
        last = one.getsockname()[1]
        await until(
            lambda: (
                receiver.counters["dropped: too many handshakes at once"]
                or any(key[0][1] == last for key in receiver._sessions.half_open)
            )
        )


def half_open(receiver: UdpTransport) -> Counter[str]:
    return Counter(str(address[0]) for address, _ in receiver._sessions.half_open)


def node_at(host: str, receiver: UdpTransport) -> UdpTransport:
    return UdpTransport(
        ONE, credentials(ONE), listen=[(host, 0)], addresses={TWO: [(HOST, receiver.port)]}, settings=PATIENT
    )


async def comes_in(host: str, receiver: UdpTransport, inbox: Inbox) -> None:
    async with opened(node_at(host, receiver), Inbox()) as node:
        hello = f"from {host}".encode()
        node.send(TWO, hello)
        await until(lambda: (ONE, hello) in inbox.got, f"a node at {host} gets in")


def test_one_address_keeps_no_other_out() -> None:
    async def story() -> None:
        inbox = Inbox()
        async with opened(make(TWO, settings=PATIENT), inbox) as receiver:
            await crowd([HOST], receiver, 2 * MAX_HALF_OPEN)
            assert half_open(receiver) == {HOST: MAX_HALF_OPEN_OF_ONE_HOST}
            await comes_in(ELSEWHERE, receiver, inbox)

    asyncio.run(story())


def test_one_network_keeps_no_other_out_and_no_neighbour_that_asks_for_less() -> None:
    async def story() -> None:
        inbox = Inbox()
        greedy = [f"127.0.1.{number}" for number in range(1, 9)]
        async with opened(make(TWO, settings=PATIENT), inbox) as receiver:
            await crowd(greedy, receiver, MAX_HALF_OPEN_OF_ONE_NETWORK // len(greedy) + 8)
            assert half_open(receiver).total() == MAX_HALF_OPEN_OF_ONE_NETWORK
            await comes_in(FAR, receiver, inbox)
            await comes_in("127.0.1.99", receiver, inbox)
            assert receiver.counters["handshakes displaced: too many at once"] == 1

    asyncio.run(story())


def test_with_every_slot_taken_the_greediest_make_room() -> None:
    async def story() -> None:
        inbox = Inbox()
        greedy = [f"127.0.{number}.1" for number in range(1, 9)]
        async with opened(make(TWO, settings=PATIENT), inbox) as receiver:
            await crowd(greedy, receiver, MAX_HALF_OPEN // len(greedy) + 8)
            assert half_open(receiver).total() == MAX_HALF_OPEN
            await comes_in(FAR, receiver, inbox)

    asyncio.run(story())


def test_a_host_of_the_address_book_has_slots_that_strangers_cannot_take() -> None:
    async def story() -> None:
        inbox = Inbox()
        many = [f"127.1.{number}.1" for number in range(MAX_HALF_OPEN)]
        async with opened(make(TWO, settings=PATIENT), inbox) as receiver:
            await crowd(many, receiver, 1)
            assert half_open(receiver).total() == MAX_HALF_OPEN
            before = half_open(receiver)
            receiver.set_addresses(NodeId("n3"), [(ELSEWHERE, 1)])
            await comes_in(ELSEWHERE, receiver, inbox)
            assert half_open(receiver) == before
            await crowd([ELSEWHERE], receiver, MAX_HALF_OPEN)
            assert half_open(receiver)[ELSEWHERE] == MAX_HALF_OPEN_OF_ONE_IN_THE_BOOK

    asyncio.run(story())


def slots(chance_ms: float = 1_000.0) -> Slots:
    return Slots(6, of_one_network=4, of_one_host=3, chance_ms=chance_ms)


def taken(where: Slots, host: str, now_ms: float) -> Session:
    session = Session(credentials(ONE).context(), b"", Way(None, ()), initiated=False, now_ms=now_ms)
    session.hello_key = ((host, 1), b"")
    where.add(session)
    return session


def test_the_oldest_goes_only_after_it_had_its_time_if_the_newcomer_has_as_many() -> None:
    some = slots()
    oldest = taken(some, "10.0.0.1", 0.0)
    taken(some, "10.0.0.1", 1.0)
    taken(some, "10.0.0.1", 2.0)
    assert some.make_room("10.0.0.1", 999.0) == (False, None)
    assert some.make_room("10.0.0.1", 1_000.0) == (True, oldest)
    some.discard(oldest)
    assert some.make_room("10.0.0.1", 1_000.0) == (True, None)


def test_of_the_greediest_network_the_greediest_address_makes_room() -> None:
    some = slots()
    taken(some, "10.0.0.9", 0.0)
    victim = taken(some, "10.0.0.1", 1.0)
    taken(some, "10.0.0.1", 2.0)
    taken(some, "10.0.0.1", 3.0)
    assert some.make_room("10.0.0.2", 4.0) == (True, victim), "the network has no more"
    taken(some, "10.0.1.1", 4.0)
    taken(some, "10.0.2.1", 5.0)
    assert some.make_room("10.0.3.1", 6.0) == (True, victim), "there are no more at all"
    assert len(some) == 6


def test_a_crowd_of_equals_does_not_displace_itself() -> None:
    some = slots()
    first, *_ = [taken(some, f"10.0.{number}.1", float(number)) for number in range(6)]
    assert some.make_room("10.0.7.1", 10.0) == (False, None)
    assert some.make_room("10.0.7.1", 1_000.0) == (True, first)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_the_network_of_an_address(host: str, expected: str) -> None:
    assert network(host) == expected

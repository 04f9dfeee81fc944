"""What every transport promises, checked for the one in memory and the one of real nodes."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from memory_network import MemoryNetwork
from OpenSSL import SSL
from transport_parts import HOST, ONE, THREE, TWO, Inbox, make, until

from comesh.core.ids import NodeId
from comesh.runtime.transport import MAX_MESSAGE_BYTES, Transport, TransportError, session
from comesh.runtime.transport.session import Session, Way

Trio = dict[NodeId, tuple[Transport, Inbox]]
NODES = (ONE, TWO, THREE)


def in_memory() -> dict[NodeId, Transport]:
    network = MemoryNetwork()
    return {name: network.transport(name) for name in NODES}


def over_udp() -> dict[NodeId, Transport]:
    return {name: make(name) for name in NODES}


Build = Callable[[], dict[NodeId, Transport]]
both = pytest.mark.parametrize("build", [in_memory, over_udp])


@asynccontextmanager
async def trio(build: Build) -> AsyncIterator[Trio]:
    transports = build()
    inboxes = {name: Inbox() for name in NODES}
    for name, transport in transports.items():
        await transport.open(inboxes[name])
    for transport in transports.values():
        for name, other in transports.items():
            if hasattr(transport, "set_addresses") and other is not transport:
                transport.set_addresses(name, [(HOST, other.port)])  # only UDP has it
    try:
        yield {name: (transports[name], inboxes[name]) for name in NODES}
    finally:
        for transport in transports.values():
            await transport.close()


def run(build: Build, story: Callable[[Trio], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with trio(build) as mesh:
            await story(mesh)
        assert len(asyncio.all_tasks()) == 1, "something was left behind"

    asyncio.run(whole())


def test_a_library_that_is_made_otherwise_inside_is_used_from_outside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Session(_context(), bytes(8), Way(None, ()), initiated=True, now_ms=0.0).connection.is_quick
    monkeypatch.setattr(session, "_INSIDE", ("nothing of the kind",))
    assert not Session(_context(), bytes(8), Way(None, ()), initiated=True, now_ms=0.0).connection.is_quick
    test_messages_come_with_their_sender(over_udp)


def _context() -> SSL.Context:
    return SSL.Context(SSL.DTLS_METHOD)


@both
def test_messages_come_with_their_sender(build: Build) -> None:
    async def story(mesh: Trio) -> None:
        for sender in NODES:
            for receiver in NODES:
                if sender != receiver:
                    mesh[sender][0].send(receiver, f"{sender} to {receiver}".encode())
        for receiver in NODES:
            inbox = mesh[receiver][1]
            await until(lambda inbox=inbox: len(inbox.got) >= 2)
            expected = {
                (sender, f"{sender} to {receiver}".encode()) for sender in NODES if sender != receiver
            }
            assert set(inbox.got) == expected

    run(build, story)


@both
@pytest.mark.parametrize("size", [0, 1, 1152, 1153, 1154, 1155, 2282, 2283, 50_000, MAX_MESSAGE_BYTES])
def test_messages_of_all_sizes_come_whole(build: Build, size: int) -> None:
    async def story(mesh: Trio) -> None:
        message = os.urandom(size)
        mesh[ONE][0].send(TWO, message)
        await until(lambda: mesh[TWO][1].got)
        assert mesh[TWO][1].got == [(ONE, message)]

    run(build, story)


@both
def test_too_long_messages_are_dropped_and_counted(build: Build) -> None:
    async def story(mesh: Trio) -> None:
        mesh[ONE][0].send(TWO, bytes(MAX_MESSAGE_BYTES + 1))
        mesh[ONE][0].send(TWO, b"after")
        await until(lambda: mesh[TWO][1].got)
        assert mesh[TWO][1].messages == [b"after"]
        assert mesh[ONE][0].counters["dropped: message too long"] == 1

    run(build, story)


@both
def test_many_small_messages(build: Build) -> None:
    async def story(mesh: Trio) -> None:
        mesh[ONE][0].send(TWO, b"first")
        await until(lambda: mesh[TWO][1].got)
        messages = [b"%d" % number + bytes(number % 300) for number in range(2_000)]
        for at in range(0, len(messages), 100):
            for message in messages[at : at + 100]:
                mesh[ONE][0].send(TWO, message)
            mesh[ONE][0].flush()
            await until(lambda at=at: len(mesh[TWO][1].got) >= at + 101)
        assert sorted(mesh[TWO][1].messages) == sorted([b"first", *messages])

    run(build, story)


@both
def test_long_messages_both_ways_at_once(build: Build) -> None:
    async def story(mesh: Trio) -> None:
        long = {name: [os.urandom(200_000) for _ in range(4)] for name in NODES}
        for sender in NODES:
            for receiver in NODES:
                if sender != receiver:
                    for message in long[sender]:
                        mesh[sender][0].send(receiver, message)
        for receiver in NODES:
            inbox = mesh[receiver][1]
            await until(lambda inbox=inbox: len(inbox.got) >= 8)
            assert sorted(inbox.messages) == sorted(
                message for sender in NODES if sender != receiver for message in long[sender]
            )

    run(build, story)


@both
def test_a_receiver_may_answer_at_once(build: Build) -> None:
    async def whole() -> None:
        transports = build()
        heard = Inbox()

        def answer(sender: NodeId, message: bytes) -> None:
            transports[TWO].send(sender, message + b", yes")
            transports[TWO].flush()

        await transports[ONE].open(heard)
        await transports[TWO].open(answer)
        if hasattr(transports[ONE], "set_addresses"):
            transports[ONE].set_addresses(TWO, [(HOST, transports[TWO].port)])  # as above
        for number in range(20):
            transports[ONE].send(TWO, b"%d" % number)
        await until(lambda: len(heard.got) == 20)
        assert set(heard.got) == {(TWO, b"%d, yes" % number) for number in range(20)}
        for transport in transports.values():
            await transport.close()

    asyncio.run(whole())


@both
def test_sending_before_opening_after_closing_and_to_nobody_is_harmless(build: Build) -> None:
    async def whole() -> None:
        transports = build()
        one = transports[ONE]
        one.send(TWO, b"too early")
        one.flush()
        await one.open(Inbox())
        one.send(NodeId("nobody"), b"to nobody")
        one.send(ONE, b"to ourselves")
        one.send(TWO, b"to one that is not open")
        one.flush()
        await one.close()
        one.send(TWO, b"too late")
        one.flush()
        assert one.counters["dropped: the transport is not open"] == 2
        assert one.counters["dropped: to ourselves"] == 1
        await one.close()

    asyncio.run(whole())


@both
def test_opening_twice_is_an_error_and_opening_again_is_not(build: Build) -> None:
    async def whole() -> None:
        one = build()[ONE]
        await one.open(Inbox())
        with pytest.raises(TransportError):
            await one.open(Inbox())
        await one.close()
        await one.open(Inbox())
        await one.close()

    asyncio.run(whole())

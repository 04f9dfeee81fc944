"""Somebody records all that two nodes say to each other, and says it again."""

import asyncio
import random

from attacked import drained, stranger
from transport_parts import BOUND_S, HOST, ONE, TWO, Inbox, Relay, make, opened, until, until_sent

from comesh.runtime.transport.packets import DATA
from comesh.runtime.transport.udp import UdpTransport

TIMES = 3


async def talk(one: UdpTransport, inbox: Inbox, count: int = 20) -> None:
    for number in range(count):
        await until_sent(one, TWO, f"message {number}".encode(), inbox)
    await until_sent(one, TWO, b"long " * 2_000, inbox)


async def until_read(two: UdpTransport, sent: int, before: int) -> None:
    await until(lambda: two.counters["datagrams received"] - before >= sent, "all of it was read")


def test_a_whole_session_said_again_from_the_same_address() -> None:
    async def story() -> None:
        inbox = Inbox()
        async with (
            opened(make(TWO), inbox) as two,
            Relay(two.port) as relay,
            opened(make(ONE, {TWO: relay.port}), Inbox()) as one,
        ):
            await talk(one, inbox)
            await asyncio.sleep(0)
            recorded = list(relay.to_target)
            await until(lambda: two.counters["datagrams received"] >= len(recorded))
            count, sessions = len(inbox.got), two.counters["sessions established"]
            chance = random.Random(1)
            for turn in range(TIMES):
                before = two.counters["datagrams received"]
                order = chance.sample(recorded, len(recorded)) if turn else recorded
                for datagram in order:
                    relay.forward(datagram)
                    await asyncio.sleep(0)
                await until_read(two, len(recorded), before)
            assert len(inbox.got) == count, "nothing came twice"
            assert two.counters["sessions established"] == sessions
            assert not two.counters["dropped: the session broke"]
            assert two.counters["dropped: repeated or damaged"] >= TIMES * 20
            assert list(two.peers()) == [ONE]
            await until_sent(one, TWO, b"after", inbox)

    asyncio.run(story())


def test_a_whole_session_said_again_from_elsewhere() -> None:
    async def story() -> None:
        inbox = Inbox()
        async with (
            opened(make(TWO), inbox) as two,
            Relay(two.port) as relay,
            opened(make(ONE, {TWO: relay.port}), Inbox()) as one,
        ):
            await talk(one, inbox)
            recorded = list(relay.to_target)
            await until(lambda: two.counters["datagrams received"] >= len(recorded))
            count, sessions = len(inbox.got), two.counters["sessions established"]
            with stranger() as elsewhere:
                for _ in range(TIMES):
                    before = two.counters["datagrams received"]
                    for datagram in recorded:
                        elsewhere.sendto(datagram, (HOST, two.port))
                        await asyncio.sleep(0)
                    await until_read(two, len(recorded), before)
                said = drained(elsewhere)
            assert all(datagram[0] != DATA for datagram in said), "nothing of the session goes there"
            assert len(inbox.got) == count
            assert two.counters["sessions established"] == sessions
            assert two.counters["dropped: no valid cookie"] >= TIMES
            assert not two.counters["peers followed to another address"]
            await until_sent(one, TWO, b"after", inbox)

    asyncio.run(story())


def test_a_session_said_again_to_a_process_that_started_anew() -> None:
    """With the same keys, name and port, and no memory of what was said before."""

    async def story() -> None:
        inbox = Inbox()
        async with opened(make(TWO), inbox) as two, Relay(two.port) as relay:
            async with opened(make(ONE, {TWO: relay.port}), Inbox()) as one:
                await talk(one, inbox)
            port, recorded = two.port, list(relay.to_target)
        fresh = Inbox()
        async with opened(make(TWO, port=port), fresh) as again:
            with stranger() as elsewhere:
                for datagram in recorded:
                    elsewhere.sendto(datagram, (HOST, again.port))
                    await asyncio.sleep(0)
                await until_read(again, len(recorded), 0)
            assert fresh.got == []
            assert again.peers() == {}
            assert not again._sessions.by_id

    asyncio.run(story())


def test_who_is_first_with_a_copy_gets_no_content_and_loses_the_peer_again() -> None:
    """The one thing that a copy can do (decision 15): it is the peer's own message, so it is taken, once; and
    answers go to the copier, sealed, until the peer says something itself."""

    async def story() -> None:
        inbox = Inbox()
        async with (
            opened(make(TWO), inbox) as two,
            Relay(two.port) as relay,
            opened(make(ONE, {TWO: relay.port}), Inbox()) as one,
        ):
            await until_sent(one, TWO, b"before", inbox)
            await asyncio.sleep(0.05)
            relay.cut = True
            count = len(relay.to_target)
            one.send(TWO, b"held up on the way")
            await until(lambda: len(relay.to_target) > count)
            held = relay.to_target[count]
            with stranger() as copier:
                copier.sendto(held, (HOST, two.port))
                await until(lambda: b"held up on the way" in inbox.messages)
                two.send(ONE, b"a secret")
                two.flush()
                came = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(copier, 2048), BOUND_S)
                assert came[0] == DATA
                assert b"a secret" not in came
                relay.cut = False
                relay.forward(held)
                await until_sent(one, TWO, b"after", inbox)
                assert inbox.messages.count(b"held up on the way") == 1
                drained(copier)
                await until(lambda: two.peers()[ONE].address != f"{HOST}:{copier.getsockname()[1]}")

    asyncio.run(story())

"""How the UDP transport gets over restarts, moves, loss and coincidences."""

import asyncio
import os
import socket

import pytest
from transport_parts import (
    HOST,
    ONE,
    THREE,
    TWO,
    Inbox,
    Relay,
    credentials,
    make,
    opened,
    pair,
    until,
    until_sent,
)

from comesh.runtime.transport import TransportError
from comesh.runtime.transport.frames import PROBE
from comesh.runtime.transport.packets import FLIGHT
from comesh.runtime.transport.settings import MAX_WAITING, TransportSettings
from comesh.runtime.transport.udp import UdpTransport


def test_a_peer_that_restarts_is_found_again() -> None:
    async def story() -> None:
        first, second, again = Inbox(), Inbox(), Inbox()
        async with opened(make(ONE), first) as one:
            async with opened(make(TWO, {ONE: one.port}), second) as two:
                port = two.port
                one.set_addresses(TWO, [(HOST, port)])
                await until_sent(one, TWO, b"before", second)
            async with opened(make(TWO, {ONE: one.port}, port=port), again) as two:
                await until_sent(one, TWO, b"after", again)
                await until_sent(two, ONE, b"and back", first)
                assert one.counters["sessions gone"] == 1
                assert again.got[0][0] == ONE

    asyncio.run(story())


def test_a_peer_that_restarts_and_speaks_first_replaces_its_session() -> None:
    async def story() -> None:
        first, second, again = Inbox(), Inbox(), Inbox()
        async with opened(make(ONE), first) as one:
            async with opened(make(TWO, {ONE: one.port}), second) as two:
                await until_sent(two, ONE, b"before", first)
                await until_sent(one, TWO, b"before", second)
            async with opened(make(TWO, {ONE: one.port}), again) as two:
                await until_sent(two, ONE, b"from another port", first)
                await until_sent(one, TWO, b"found there", again)
                assert one.peers()[TWO].address == f"{HOST}:{two.port}"

    asyncio.run(story())


def test_both_of_two_processes_with_one_name_get_messages() -> None:
    async def story() -> None:
        inbox, older, younger = Inbox(), Inbox(), Inbox()
        async with (
            opened(make(ONE), inbox) as one,
            opened(make(TWO, {ONE: one.port}), older) as first,
            opened(make(TWO, {ONE: one.port}), younger) as second,
        ):
            await until_sent(first, ONE, b"I am n2", inbox)
            await until_sent(second, ONE, b"no, I am", inbox)
            await until_sent(one, TWO, b"to the younger", younger)
            one.send_to_all_of(TWO, b"there are two of you")
            await until(lambda: b"there are two of you" in older.messages)
            await until(lambda: b"there are two of you" in younger.messages)
            assert b"to the younger" not in older.messages

    asyncio.run(story())


def test_a_peer_that_changes_its_address_is_followed() -> None:
    async def story() -> None:
        inbox, back = Inbox(), Inbox()
        async with opened(make(ONE), inbox) as one, opened(make(TWO, {ONE: one.port}), back) as two:
            await until_sent(two, ONE, b"before", inbox)
            old = two._sockets[0]
            loop = asyncio.get_running_loop()
            loop.remove_reader(old.fileno())
            old.close()
            moved = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            moved.setblocking(False)
            moved.bind((HOST, 0))
            two._sockets[0] = moved
            session = two._peers[ONE].session
            assert session is not None
            session.way = session.way._replace(socket=moved)
            loop.add_reader(moved.fileno(), two._on_readable, moved)
            await until_sent(two, ONE, b"from elsewhere", inbox)
            await until_sent(one, TWO, b"there", back)
            assert one.counters["peers followed to another address"] == 1
            assert one.counters["sessions established"] == 1

    asyncio.run(story())


def test_new_addresses_are_used() -> None:
    async def story() -> None:
        inbox = Inbox()
        async with opened(make(TWO), inbox) as two, opened(make(ONE, {TWO: 9}), Inbox()) as one:
            one.send(TWO, b"to nowhere")
            await until(lambda: one.peers()[TWO].why == f"no answer from {HOST}:9")
            one.set_addresses(TWO, [("no.such.host.invalid", 1), (HOST, two.port)])
            await until_sent(one, TWO, b"to the right place", inbox)

    asyncio.run(story())


def test_host_names_are_looked_up() -> None:
    async def story() -> None:
        inbox = Inbox()
        async with opened(make(TWO), inbox) as two, opened(make(ONE), Inbox()) as one:
            one.set_addresses(TWO, [("localhost", two.port)])
            await until_sent(one, TWO, b"by name", inbox)

    asyncio.run(story())


def test_both_begin_at_once() -> None:
    async def story() -> None:
        for _ in range(10):
            async with pair() as (one, two, first, second):
                one.send(TWO, b"from n1")
                two.send(ONE, b"from n2")
                one.flush()
                two.flush()
                await until(lambda first=first, second=second: first.got and second.got)
                for number in range(3):
                    await until_sent(one, TWO, b"%d" % number, second)
                    await until_sent(two, ONE, b"%d" % number, first)
                mine, theirs = one._peers[TWO].session, two._peers[ONE].session
                assert mine is not None
                assert theirs is not None
                assert (mine.own_id, mine.remote_id) == (theirs.remote_id, theirs.own_id), (
                    "one session, not two"
                )

    asyncio.run(story())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_long_messages_over_a_network_that_loses_a_fifth(seed: int) -> None:
    async def story() -> None:
        inbox, back = Inbox(), Inbox()
        async with (
            opened(make(TWO), inbox) as two,
            Relay(two.port, loss=0.2, seed=seed) as relay,
            opened(make(ONE, {TWO: relay.port}), back) as one,
        ):
            await until_sent(one, TWO, b"hello", inbox)
            long = [os.urandom(300_000) for _ in range(3)]
            for message in long:
                one.send(TWO, message)
                two.send(ONE, message)
            await until(lambda: set(long) <= set(inbox.messages) and set(long) <= set(back.messages))
            assert one.counters["fragments sent again"] > 0

    asyncio.run(story())


def test_a_long_message_to_one_that_goes_away_is_given_up() -> None:
    settings = TransportSettings(unheard_ms=10.0, fragment_tries=3, forget_ms=600_000.0)

    async def story() -> None:
        inbox = Inbox()
        async with (
            opened(make(TWO), inbox) as two,
            Relay(two.port) as relay,
            opened(make(ONE, {TWO: relay.port}, settings=settings), Inbox()) as one,
        ):
            await until_sent(one, TWO, b"hello", inbox)
            relay.cut = True
            one.send(TWO, bytes(100_000))
            await until(lambda: one.counters["dropped: long messages given up"] == 1)
            relay.cut = False
            one.send(TWO, bytes(50_000))
            await until(lambda: bytes(50_000) in inbox.messages)

    asyncio.run(story())


def test_half_a_long_message_is_given_up() -> None:
    settings = TransportSettings(stalled_ms=5.0, fragment_tries=3, window=8)

    async def story() -> None:
        inbox = Inbox()
        async with (
            opened(make(TWO, settings=settings), inbox) as two,
            Relay(two.port) as relay,
            opened(make(ONE, {TWO: relay.port}, settings=settings), Inbox()) as one,
        ):
            await until_sent(one, TWO, b"hello", inbox)
            one.send(TWO, bytes(100_000))
            await until(lambda: len(two._peers[ONE].incoming))
            relay.cut = True
            await until(lambda: two.counters["dropped: long messages never completed"] == 1)
            assert two._sessions.memory.bytes == 0

    asyncio.run(story())


def test_messages_wait_for_a_session_and_the_oldest_are_dropped() -> None:
    async def story() -> None:
        inbox = Inbox()
        async with opened(make(TWO), inbox) as two, opened(make(ONE, {TWO: two.port}), Inbox()) as one:
            for number in range(MAX_WAITING + 10):
                one.send(TWO, b"%d" % number)
            await until(lambda: len(inbox.got) == MAX_WAITING)
            assert inbox.messages == [b"%d" % number for number in range(10, MAX_WAITING + 10)]
            assert one.counters["dropped: too many messages wait for a session"] == 10

    asyncio.run(story())


def test_small_messages_share_a_datagram() -> None:
    async def story() -> None:
        async with pair() as (one, _, _, second):
            await until_sent(one, TWO, b"hello", second)
            before, had = one.counters["datagrams sent"], len(second.got)
            for number in range(50):
                one.send(TWO, b"%d" % number)
            one.flush()
            assert one.counters["datagrams sent"] == before + 1
            await until(lambda: len(second.got) == had + 50)

    asyncio.run(story())


@pytest.mark.parametrize(
    "settings",
    [
        TransportSettings(rekey_datagrams=50, idle_tick_ms=20.0),
        TransportSettings(rekey_bytes=5_000, idle_tick_ms=20.0),
        TransportSettings(rekey_ms=100.0, idle_tick_ms=20.0),
    ],
    ids=["datagrams", "bytes", "time"],
)
def test_keys_change_and_nothing_is_lost(settings: TransportSettings) -> None:
    async def story() -> None:
        async with pair(settings) as (one, two, first, second):
            sent: list[bytes] = []

            def more() -> bool:
                sent.append(b"%d" % len(sent))
                one.send(TWO, sent[-1])
                two.send(ONE, sent[-1])
                return one.counters["sessions established"] >= 4

            await until(more)
            await until(lambda: len(second.got) >= len(sent) and len(first.got) >= len(sent))
            assert second.messages == sent
            assert first.messages == sent

    asyncio.run(story())


def test_the_last_flight_of_a_handshake_is_said_again() -> None:
    async def story() -> None:
        inbox = Inbox()
        async with (
            opened(make(TWO), inbox) as two,
            Relay(two.port) as relay,
            opened(make(ONE, {TWO: relay.port}), Inbox()) as one,
        ):
            lost: list[bytes] = []

            def is_last_flight(datagram: bytes) -> bool:
                if datagram[0] != FLIGHT or not two.counters["sessions established"] or lost:
                    return False
                lost.append(datagram)
                return True

            relay.swallows = is_last_flight
            one.send(TWO, b"hello")
            await until(lambda: inbox.got)
            assert lost
            assert one.counters["handshakes given up"] == two.counters["handshakes given up"] == 0

    asyncio.run(story())


def test_a_new_session_is_sent_by_once_the_other_side_surely_has_it() -> None:
    async def story() -> None:
        inbox, back = Inbox(), Inbox()
        async with (
            opened(make(TWO), inbox) as two,
            Relay(two.port) as relay,
            opened(make(ONE, {TWO: relay.port}), back) as one,
        ):
            await until_sent(one, TWO, b"hello", inbox)
            relay.swallows = lambda datagram: (
                datagram[0] == FLIGHT and two.counters["sessions established"] == 2
            )
            one._handshakes.begin(one._peers[TWO], one._clock_ms())
            one._hurry()
            await until(lambda: two.counters["sessions established"] == 2)
            two.send(ONE, b"by the old one")
            await until(lambda: back.got)
            assert one.counters["sessions established"] == 1
            relay.swallows = lambda _: False
            await until(lambda: one.counters["sessions established"] == 2)
            await until_sent(two, ONE, b"by the new one", back)

    asyncio.run(story())


def test_a_replaced_session_is_forgotten_after_its_grace() -> None:
    settings = TransportSettings(rekey_datagrams=20, idle_tick_ms=10.0, grace_ms=50.0)

    async def story() -> None:
        async with pair(settings) as (one, two, _, second):
            number = 0

            def more() -> bool:
                nonlocal number
                number += 1
                one.send(TWO, b"%d" % number)
                return one.counters["sessions established"] >= 4

            await until(more)
            await until(lambda: len(one._sessions.by_id) == 1 and len(two._sessions.by_id) == 1)
            await until_sent(one, TWO, b"last", second)

    asyncio.run(story())


def test_a_silent_peer_is_asked_then_forgotten() -> None:
    settings = TransportSettings(
        probe_ms=20.0, silent_ms=60.0, forget_ms=200.0, idle_tick_ms=10.0, resend_ms=5.0, max_resend_ms=20.0
    )

    async def story() -> None:
        inbox = Inbox()
        async with (
            opened(make(TWO), inbox) as two,
            Relay(two.port) as relay,
            opened(make(ONE, {TWO: relay.port}, settings=settings), Inbox()) as one,
        ):
            await until_sent(one, TWO, b"hello", inbox)
            await until(lambda: one._peers[TWO].session.unanswered_ms == 0.0, "a probe was answered")
            relay.cut = True
            one.send(TWO, b"into the void")
            await until(lambda: not one.peers()[TWO].connected)
            assert one.peers()[TWO].why
            relay.cut = False
            await until_sent(one, TWO, b"there again", inbox)

    asyncio.run(story())


def test_who_answers_a_probe_waits_for_nothing() -> None:
    """Otherwise it would probe back, and be answered, and so on for ever."""

    async def story() -> None:
        inbox = Inbox()
        async with opened(make(TWO), inbox) as two, opened(make(ONE, {TWO: two.port}), Inbox()) as one:
            await until_sent(one, TWO, b"hello", inbox)
            await until(lambda: one._peers[TWO].session.unanswered_ms == 0.0, "the first probe was answered")
            sent = two.counters["datagrams sent"]
            one._seal(one._peers[TWO], one._peers[TWO].session, bytes((PROBE,)))
            await until(lambda: two.counters["datagrams sent"] > sent, "the second one too")
            assert two._peers[ONE].session.unanswered_ms == 0.0

    asyncio.run(story())


def test_ipv6_and_both_families_at_once() -> None:
    async def story() -> None:
        first, second, third = Inbox(), Inbox(), Inbox()
        six = UdpTransport(TWO, credentials(TWO), listen=[("::1", 0)], addresses={})
        four = UdpTransport(THREE, credentials(THREE), listen=[(HOST, 0)], addresses={})
        two_families = UdpTransport(ONE, credentials(ONE), listen=[(HOST, 0), ("::1", 0)], addresses={})
        async with opened(six, second), opened(four, third), opened(two_families, first) as one:
            one.set_addresses(TWO, [("::1", six.port)])
            one.set_addresses(THREE, [(HOST, four.port)])
            await until_sent(one, TWO, b"six", second)
            await until_sent(one, THREE, b"four", third)
            await until_sent(six, ONE, b"back", first)
            assert len(one.ports) == 2
            assert one.peers()[TWO].address == f"[::1]:{six.port}"

    asyncio.run(story())


def test_a_taken_port_is_reported() -> None:
    async def story() -> None:
        async with opened(make(ONE), Inbox()) as one:
            with pytest.raises(TransportError, match=f"cannot listen on {HOST} port {one.port}"):
                await make(TWO, port=one.port).open(Inbox())

    asyncio.run(story())


def test_messages_that_cannot_be_sent_are_counted() -> None:
    async def story() -> None:
        async with opened(make(ONE), Inbox()) as one:
            one.set_addresses(TWO, [("203.0.113.1", 0)])
            one.send(TWO, b"to port 0")
            await until(lambda: any(name.startswith("dropped: cannot send") for name in one.counters))

    asyncio.run(story())

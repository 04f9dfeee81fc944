"""What the UDP transport does with peers that are not who they say, and with datagrams that nobody meant."""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from OpenSSL import SSL
from transport_parts import HOST, ONE, TWO, Inbox, Relay, credentials, make, opened, pair, until, until_sent

from comesh.core.ids import NodeId
from comesh.runtime.credentials import Credentials
from comesh.runtime.transport import TransportError
from comesh.runtime.transport.packets import DATA, KNOCK_BYTES, VERSION, Cookie, Hello, Knock, decode, encode
from comesh.runtime.transport.session import Session, Way
from comesh.runtime.transport.udp import UdpTransport

YEARS_MS = 365 * 86_400_000.0 * 200


async def refused(stranger: UdpTransport, receiver: UdpTransport, inbox: Inbox) -> str:
    """What the stranger is told, after it tried and got nowhere."""
    stranger.set_addresses(TWO, [(HOST, receiver.port)])
    stranger.send(TWO, b"let me in")
    await until(lambda: stranger.counters["handshakes failed"] + receiver.counters["handshakes failed"] >= 2)
    assert inbox.got == []
    assert not any(status.connected for status in receiver.peers().values())
    return stranger.peers()[TWO].why


def test_another_authority_is_refused() -> None:
    async def story() -> None:
        inbox = Inbox()
        shown = credentials(ONE, "theirs")
        async with opened(make(TWO), inbox) as receiver, opened(make(ONE, shown=shown), Inbox()) as stranger:
            assert "certificate was refused" in await refused(stranger, receiver, inbox)

    asyncio.run(story())


class WithoutCertificate(Credentials):
    def context(self) -> SSL.Context:
        context = SSL.Context(SSL.DTLS_METHOD)
        context.set_verify(SSL.VERIFY_NONE, lambda *_: True)
        return context


def test_no_certificate_is_refused() -> None:
    async def story() -> None:
        inbox = Inbox()
        own = credentials(ONE)
        shown = WithoutCertificate(own.name, own.key, own.certificate, own.authorities)
        async with opened(make(TWO), inbox) as receiver, opened(make(ONE, shown=shown), Inbox()) as stranger:
            await refused(stranger, receiver, inbox)

    asyncio.run(story())


def test_a_copied_certificate_without_its_key_is_refused() -> None:
    own = credentials(ONE)
    with pytest.raises(SSL.Error):
        replace(own, key=ec.generate_private_key(ec.SECP256R1())).context()


def test_a_peer_is_whom_its_certificate_names_and_not_whom_it_says() -> None:
    """n1 claims to be n3: what it sends comes as of n1, and who looks for n3 there finds nobody."""

    async def story() -> None:
        inbox = Inbox()
        three = NodeId("n3")
        async with opened(make(TWO), inbox) as receiver, opened(make(ONE), Inbox()) as other:
            other.set_addresses(TWO, [(HOST, receiver.port)])
            other.send(TWO, b"I am n3")
            await until(lambda: inbox.got)
            assert inbox.got == [(ONE, b"I am n3")]
            receiver.set_addresses(three, [(HOST, other.port)])
            receiver.send(three, b"a secret for n3")
            await until(lambda: receiver.counters["dropped: certificate of another name"])
            await until(lambda: receiver.peers()[three].why.endswith("is n1"))
            assert not receiver.peers()[three].connected

    asyncio.run(story())


def test_credentials_of_another_node_cannot_be_opened_with() -> None:
    with pytest.raises(TransportError, match="those of n1"):
        make(TWO, shown=credentials(ONE))


@pytest.mark.parametrize("which", ["initiator", "responder"])
def test_expired_is_refused_and_accepted_without_a_clock(which: str) -> None:
    """Two hundred years from now every certificate has expired; who knows no time does not look."""

    async def story() -> None:
        checks = {"initiator": ONE, "responder": TWO}[which]
        later = {name: credentials(name).with_clock(lambda: YEARS_MS) for name in (ONE, TWO)}
        trusting = {
            name: later[name] if name == checks else credentials(name).with_clock(lambda: None)
            for name in (ONE, TWO)
        }
        inbox = Inbox()
        async with (
            opened(make(TWO, shown=trusting[TWO]), inbox) as two,
            opened(make(ONE, shown=trusting[ONE]), Inbox()) as one,
        ):
            assert "certificate was refused" in await refused(one, two, inbox)
        neither = {name: credentials(name).with_clock(lambda: None) for name in (ONE, TWO)}
        async with (
            opened(make(TWO, shown=neither[TWO]), inbox) as two,
            opened(make(ONE, shown=neither[ONE]), Inbox()) as one,
        ):
            one.set_addresses(TWO, [(HOST, two.port)])
            await until_sent(one, TWO, b"hello", inbox)

    asyncio.run(story())


def test_without_a_clock_another_authority_is_still_refused() -> None:
    async def story() -> None:
        inbox = Inbox()
        shown = credentials(ONE, "theirs").with_clock(lambda: None)
        trusting = credentials(TWO).with_clock(lambda: None)
        async with (
            opened(make(TWO, shown=trusting), inbox) as receiver,
            opened(make(ONE, shown=shown), Inbox()) as stranger,
        ):
            await refused(stranger, receiver, inbox)

    asyncio.run(story())


@contextmanager
def plain_socket() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((HOST, 0))
        one.setblocking(False)
        yield one


async def answer(one: socket.socket) -> bytes:
    return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(one, 2048), 10.0)


def test_strangers_without_a_cookie_leave_nothing_behind() -> None:
    async def story() -> None:
        async with opened(make(TWO), Inbox()) as receiver:
            with plain_socket() as stranger:
                for _ in range(1_000):
                    nonce, session = os.urandom(16), os.urandom(8)
                    stranger.sendto(encode(Knock(VERSION, nonce, session)), (HOST, receiver.port))
                    cookie = decode(await answer(stranger))
                    assert isinstance(cookie, Cookie)
                    made_up = Hello(os.urandom(17), nonce, session, b"\x16\xfe\xfd" + bytes(10))
                    stranger.sendto(encode(made_up), (HOST, receiver.port))
                await until(lambda: receiver.counters["dropped: no valid cookie"] == 1_000)
            assert receiver.peers() == {}
            assert receiver.counters["bytes sent"] <= receiver.counters["bytes received"]
            assert not receiver._sessions.by_id

    asyncio.run(story())


def test_a_cookie_is_good_for_one_address_only() -> None:
    async def story() -> None:
        async with opened(make(TWO), Inbox()) as receiver:
            with plain_socket() as stranger, plain_socket() as elsewhere:
                nonce, session = os.urandom(16), os.urandom(8)
                stranger.sendto(encode(Knock(VERSION, nonce, session)), (HOST, receiver.port))
                cookie = decode(await answer(stranger))
                assert isinstance(cookie, Cookie)
                way = Way(None, ())
                begun = Session(credentials(ONE).context(), session, way, initiated=True, now_ms=0.0)
                _, parts = begun.handshake(b"")
                hello = encode(Hello(cookie.cookie, nonce, session, parts[0]))
                elsewhere.sendto(hello, (HOST, receiver.port))
                await until(lambda: receiver.counters["dropped: no valid cookie"] == 1)
                assert not receiver._sessions.by_id
                stranger.sendto(hello, (HOST, receiver.port))
                await answer(stranger)
                assert len(receiver._sessions.by_id) == 1
                stranger.sendto(hello, (HOST, receiver.port))
                await until(lambda: receiver.counters["datagrams received"] == 4)
                assert len(receiver._sessions.by_id) == 1, "a repeated HELLO begins nothing"

    asyncio.run(story())


def test_another_version_is_refused_politely() -> None:
    async def story() -> None:
        async with opened(make(TWO), Inbox()) as receiver:
            with plain_socket() as stranger:
                stranger.sendto(encode(Knock(99, bytes(16), bytes(8))), (HOST, receiver.port))
                said = await answer(stranger)
                assert decode(said) == (VERSION, bytes(16))
                assert len(said) <= KNOCK_BYTES
            assert receiver.counters["dropped: another version"] == 1

    asyncio.run(story())


def test_garbage_is_dropped_and_counted() -> None:
    async def story() -> None:
        async with pair() as (one, two, _, second):
            await until_sent(one, TWO, b"before", second)
            before = two.counters["datagrams received"]
            garbage = [
                b"",
                b"\0",
                b"\x16" + os.urandom(299),
                bytes((DATA,)),
                bytes((DATA,)) + os.urandom(60),
                bytes(1201),
            ]
            with plain_socket() as stranger:
                for datagram in garbage:
                    stranger.sendto(datagram, (HOST, two.port))
                await until(lambda: two.counters["datagrams received"] - before >= len(garbage))
            assert two.counters["dropped: datagram too long"] == 1
            assert two.counters["dropped: unknown session"] == 1
            assert two.counters["dropped: not a datagram of ours"] == 4
            await until_sent(one, TWO, b"after", second)

    asyncio.run(story())


def test_repeated_truncated_and_changed_datagrams_are_dropped() -> None:
    async def story() -> None:
        inbox = Inbox()
        async with (
            opened(make(TWO), inbox) as two,
            Relay(two.port) as relay,
            opened(make(ONE, {TWO: relay.port}), Inbox()) as one,
        ):
            await until_sent(one, TWO, b"once", inbox)
            sealed = next(one for one in reversed(relay.to_target) if one[0] == DATA)
            assert b"once" not in b"".join(relay.to_target), "nobody on the way can read it"
            count = len(inbox.got)
            for damaged in (
                sealed,
                sealed,
                sealed[:-1],
                sealed[:30],
                sealed[:-1] + b"\0",
                sealed + b"\0",
            ):
                relay.forward(damaged)
            await until(
                lambda: (
                    two.counters["dropped: repeated or damaged"] >= 3
                    and two.counters["dropped: not a datagram of ours"] >= 3
                )
            )
            assert len(inbox.got) == count
            await until_sent(one, TWO, b"still there", inbox)
            assert two.counters["sessions established"] == 1

    asyncio.run(story())


def test_a_forged_gone_costs_a_handshake_at_most() -> None:
    async def story() -> None:
        inbox = Inbox()
        async with (
            opened(make(TWO), inbox) as two,
            Relay(two.port) as relay,
            opened(make(ONE, {TWO: relay.port}), Inbox()) as one,
        ):
            await until_sent(one, TWO, b"before", inbox)
            sealed = next(one for one in reversed(relay.to_target) if one[0] == DATA)
            for _ in range(100):
                relay.replay_to_client(b"\xc7" + sealed[1:9])
            await until_sent(one, TWO, b"during", inbox)
            await until(lambda: one.counters["sessions established"] == 2)
            await until_sent(one, TWO, b"after", inbox)
            assert one.counters["sessions gone"] == 1

    asyncio.run(story())

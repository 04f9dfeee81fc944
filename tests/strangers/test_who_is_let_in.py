"""Peers that cannot prove who they are, at the door of a node that goes on talking to one that can."""

import asyncio
import datetime
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from attacked import attacked, counted, more
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from OpenSSL import SSL
from transport_parts import (
    HOST,
    ONE,
    THREE,
    TWO,
    Inbox,
    credentials,
    key_directory,
    make,
    opened,
    until,
    until_sent,
)

from comesh.core.ids import NodeId
from comesh.runtime.credentials import Authority, Credentials, name_in
from comesh.runtime.revocation import Revocations, sign
from comesh.runtime.transport.guard import NobodyRefused

TRIES = 5


class Stranger(Credentials):
    """Shows what it has, and takes whatever the other side shows."""

    def context(self) -> SSL.Context:
        context = super().context()
        context.set_verify(SSL.VERIFY_NONE, lambda *_: True)
        return context


class Nameless(Stranger):
    def context(self) -> SSL.Context:
        context = SSL.Context(SSL.DTLS_METHOD)
        context.set_verify(SSL.VERIFY_NONE, lambda *_: True)
        return context


class WithItsChain(Stranger):
    """Shows the certificate of who signed for it, too."""

    def context(self) -> SSL.Context:
        context = super().context()
        context.add_extra_chain_cert(credentials(THREE).certificate)
        return context


def as_a(kind: type[Credentials], own: Credentials) -> Credentials:
    return kind(own.name, own.key, own.certificate, own.authorities, own.wall_ms)


def without_a_certificate() -> Credentials:
    return as_a(Nameless, credentials(THREE))


def of_another_deployment() -> Credentials:
    """Its authority has the same name as ours."""
    other = credentials(THREE, "theirs")
    assert other.authorities[0].subject == credentials(THREE).authorities[0].subject
    return as_a(Stranger, other)


def expired() -> Credentials:
    """Signed by our authority, for a time that is over."""
    own = credentials(THREE)
    now = datetime.datetime.now(datetime.UTC)
    dates = now - datetime.timedelta(days=30), now - datetime.timedelta(days=1)
    return as_a(Stranger, replace(own, certificate=_like(own.certificate, _authority_key(), dates=dates)))


def signed_by_a_node() -> Credentials:
    """n3 has a good certificate, and signs with it that it is n1."""
    three, one = credentials(THREE), credentials(ONE)
    made = _like(one.certificate, three.key, key=three.key.public_key(), issuer=three.certificate.subject)
    assert name_in(made) == ONE
    return as_a(WithItsChain, replace(one, key=three.key, certificate=made))


def _authority_key() -> ec.EllipticCurvePrivateKey:
    return Authority.load(key_directory("ours")).key


def _like(
    certificate: x509.Certificate,
    signer: ec.EllipticCurvePrivateKey,
    *,
    dates: tuple[datetime.datetime, datetime.datetime] | None = None,
    key: ec.EllipticCurvePublicKey | None = None,
    issuer: x509.Name | None = None,
) -> x509.Certificate:
    """The same but for this, and signed anew."""
    begins, ends = dates or (certificate.not_valid_before_utc, certificate.not_valid_after_utc)
    shown = certificate.public_key()
    assert isinstance(shown, ec.EllipticCurvePublicKey)
    builder = x509.CertificateBuilder(
        issuer or certificate.issuer,
        certificate.subject,
        key or shown,
        x509.random_serial_number(),
        begins,
        ends,
        list(certificate.extensions),
    )
    return builder.sign(signer, hashes.SHA256())


@pytest.mark.parametrize(
    "shows",
    [without_a_certificate, of_another_deployment, expired, signed_by_a_node],
    ids=lambda one: one.__name__,
)
def test_who_cannot_prove_its_name_stays_outside(shows: Callable[[], Credentials]) -> None:
    async def story() -> None:
        async with attacked() as pair:
            before = counted(pair.two)
            for attempt in range(TRIES):
                shown, inbox = shows(), Inbox()
                async with opened(make(shown.name, {TWO: pair.two.port}, shown=shown), inbox) as stranger:
                    stranger.send(TWO, b"let me in")
                    await until(partial(more, pair.two, before, "handshakes failed", than=attempt))
                    await pair.go_on()
                    assert inbox.got == []
            assert more(pair.two, before, "sessions established") == 0
            pair.nothing_got_in()
            assert pair.two.counters["handshakes failed"] >= TRIES
            assert not pair.two._sessions.half_open

    asyncio.run(story())


def test_the_same_certificates_made_in_time_and_by_the_authority_are_let_in() -> None:
    """So that those above are refused for what they lack, and for nothing else."""

    async def story() -> None:
        inbox = Inbox()
        own = credentials(THREE)
        now = datetime.datetime.now(datetime.UTC)
        dates = now - datetime.timedelta(days=30), now + datetime.timedelta(days=1)
        good = replace(own, certificate=_like(own.certificate, _authority_key(), dates=dates))
        async with (
            opened(make(TWO), inbox) as two,
            opened(make(THREE, {TWO: two.port}, shown=as_a(Stranger, good)), Inbox()) as three,
        ):
            three.send(TWO, b"I am n3")
            await until(lambda: inbox.got == [(THREE, b"I am n3")])

    asyncio.run(story())


def test_who_lies_about_its_name_is_who_its_certificate_says() -> None:
    """n3 sits where n1 looks for n2: it is told nothing. And what it says as n2 comes as of n3."""

    async def story() -> None:
        first, third = Inbox(), Inbox()
        async with opened(make(ONE), first) as one, opened(make(THREE), third) as liar:
            one.set_addresses(TWO, [(HOST, liar.port)])
            for number in range(TRIES):
                one.send(TWO, f"a secret {number} for n2".encode())
            await until(lambda: one.counters["dropped: certificate of another name"] >= 2)
            assert third.got == []
            assert not one.peers()[TWO].connected
            assert one.peers()[TWO].why.endswith("is n3")
            liar.set_addresses(ONE, [(HOST, one.port)])
            await until_sent(liar, ONE, b"I am n2", first)
            assert set(first.got) == {(THREE, b"I am n2")}
            assert third.got == []

    asyncio.run(story())


class Refusing(NobodyRefused):
    """Has the authority's list, as a node that runs."""

    def __init__(self) -> None:
        self.revocations, self.told = Revocations(), Counter[str]()

    def why_refused(self, certificate: x509.Certificate) -> str:
        since = self.revocations.since(certificate, credentials(ONE).authorities)
        return "" if since is None else "shows a revoked certificate"

    def farewell(self, name: NodeId, certificate: x509.Certificate, at: str, why: str) -> bytes:
        self.told[name] += 1
        return b"you are revoked"


def test_who_is_revoked_is_told_so_and_not_let_in() -> None:
    """n3 talks to n2, until its certificate is revoked. Its session ends at once; however often it tries,
    nothing that it says comes in, and n1 and n2 go on."""

    async def story() -> None:
        guard, said = Refusing(), Inbox()
        async with attacked(guard=guard) as pair:
            shown = as_a(Stranger, credentials(THREE))
            async with opened(make(THREE, {TWO: pair.two.port}, shown=shown), said) as three:
                await until_sent(three, TWO, b"before", pair.inbox_two)
                pair.known.add(THREE)
                before, came = counted(pair.two), len(pair.inbox_two.got)
                authority = Authority.load(key_directory("ours"))
                guard.revocations.take(sign(authority, None, [shown.certificate.serial_number]))
                pair.two.end_refused()
                assert not pair.two.peers()[THREE].connected
                assert more(pair.two, before, "sessions ended by the guard") >= 1
                await until(lambda: b"you are revoked" in said.messages)
                for attempt in range(TRIES):
                    three.send(TWO, b"let me in")
                    await until(
                        partial(more, pair.two, before, "handshakes refused by the guard", than=attempt)
                    )
                    await pair.go_on()
                assert [one for one in pair.inbox_two.got[came:] if one[0] == THREE] == []
                assert more(pair.two, before, "sessions established") == 0
                assert "shows a revoked certificate" in pair.two.peers()[THREE].why
                assert guard.told[THREE] > TRIES

    asyncio.run(story())


def test_a_new_certificate_of_the_same_name_is_let_in() -> None:
    async def story() -> None:
        guard, inbox = Refusing(), Inbox()
        authority = Authority.load(key_directory("ours"))
        old = credentials(THREE)
        guard.revocations.take(sign(authority, None, [old.certificate.serial_number]))
        new = replace(old, certificate=_like(old.certificate, authority.key))
        async with (
            opened(make(TWO, guard=guard), inbox) as two,
            opened(make(THREE, {TWO: two.port}, shown=old), Inbox()) as stolen,
            opened(make(THREE, {TWO: two.port}, shown=new), Inbox()) as three,
        ):
            stolen.send(TWO, b"I am the old one")
            await until(lambda: two.counters["handshakes refused by the guard"])
            await until_sent(three, TWO, b"I am the new one", inbox)
            stolen.send(TWO, b"I am the old one")
            await until(lambda: two.counters["handshakes refused by the guard"] > 1)
            assert set(inbox.got) == {(THREE, b"I am the new one")}
            assert two.peers()[THREE].connected

    asyncio.run(story())

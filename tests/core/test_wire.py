"""Tests that bytes from outside are either decoded or refused."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comesh.core.ids import Incarnation, NodeId
from comesh.core.messages import (
    DEFLATED,
    MAX_DATAGRAM_BYTES,
    WIRE_VERSION,
    Ack,
    Announcement,
    Datagram,
    Doubled,
    Exchange,
    Gossip,
    GossipItems,
    MemberState,
    MemberUpdate,
    Message,
    Nack,
    Page,
    Ping,
    PingRequest,
    Span,
    WireError,
    decode,
    encode,
    wire_version,
)
from comesh.core.work_messages import DocumentGiven

counters = st.integers(0, 2**63 - 1)
names = st.text("abcdefghijklmnopqrstuvwxyz_0123456789", min_size=1, max_size=20).map(NodeId)
incarnations = st.builds(Incarnation, counters, counters, counters)
updates = st.builds(MemberUpdate, names, st.sampled_from(MemberState), incarnations, st.none() | names)
announcements = st.builds(Announcement, st.text(max_size=20), counters, st.binary(max_size=30))
gossip = st.builds(
    GossipItems, st.lists(updates, max_size=3).map(tuple), st.lists(announcements, max_size=3).map(tuple)
)
durations = st.floats(0, 1e6)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(Ping, counters, gossip),
    st.builds(Ack, counters, gossip, st.none() | names, st.none() | incarnations),
    st.builds(PingRequest, counters, names, durations, gossip),
    st.builds(Gossip, gossip),
    st.builds(Exchange, counters, st.booleans()),
    st.builds(
        Page,
        st.lists(updates, max_size=5).map(tuple),
        st.lists(announcements, max_size=3).map(tuple),
        st.builds(Span, st.text(max_size=5), st.none() | st.text(max_size=5)),
        st.builds(Span, st.text(max_size=5), st.none() | st.text(max_size=5)),
        st.booleans(),
    ),
    st.builds(Nack, counters),
    st.builds(Doubled, incarnations, durations),
)
datagrams = st.builds(Datagram, incarnations, counters, messages)


@given(datagrams)
def test_encoding_and_decoding_restores_the_message(datagram: Datagram) -> None:
    assert decode(encode(datagram)) == datagram


@given(st.binary(max_size=200))
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        decode(bytes([WIRE_VERSION]) + data if data[:1] != b"\x94" else data)


@given(st.binary(max_size=200))
def test_garbage_marked_as_deflated_is_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        decode(bytes([WIRE_VERSION | DEFLATED]) + data)


LONG = Datagram(Incarnation(1, 1), 1, DocumentGiven(2, "devices:\n" + "  lamp: {place: [1m, 2m]}\n" * 100))


def test_long_repetitive_messages_are_deflated() -> None:
    data = encode(LONG)
    assert len(data) < len(msgspec.msgpack.encode(LONG)) / 10
    assert decode(data) == LONG
    assert wire_version(data) == WIRE_VERSION


def test_membership_is_never_deflated() -> None:
    gossip = Datagram(
        Incarnation(1, 1), 1, Gossip(GossipItems(announcements=(Announcement("key", 1, bytes(1000)),)))
    )
    assert len(encode(gossip)) > 1000


def test_truncated_and_oversized_messages_are_refused() -> None:
    with pytest.raises(WireError, match="cut off"):
        decode(encode(LONG)[:-3])
    bomb = Datagram(Incarnation(1, 1), 1, DocumentGiven(2, "x" * MAX_DATAGRAM_BYTES))
    with pytest.raises(WireError, match="more than"):
        decode(encode(bomb))


@given(datagrams, st.data())
def test_damage_is_refused_or_decodes(datagram: Datagram, data: Any) -> None:
    damaged = bytearray(encode(datagram))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(1, len(damaged))) :]
    try:
        assert isinstance(decode(bytes(damaged)), Datagram)
    except WireError as refusal:
        assert str(refusal)


def test_an_unknown_version_is_named() -> None:
    with pytest.raises(WireError, match=f"wire version 9; this node speaks {WIRE_VERSION}"):
        decode(b"\x09whatever")


def test_empty_and_huge_datagrams_are_refused() -> None:
    with pytest.raises(WireError, match="empty"):
        decode(b"")
    with pytest.raises(WireError, match="more than"):
        decode(bytes(MAX_DATAGRAM_BYTES + 1))


@pytest.mark.parametrize("boot", [-1, 2**63])
def test_counters_out_of_range_are_refused(boot: int) -> None:
    raw = bytes([WIRE_VERSION]) + msgspec.msgpack.encode(["a", [boot, 0, 0], 1, [6, 1]])
    with pytest.raises(WireError):
        decode(raw)


@pytest.mark.parametrize("wait_ms", [float("nan"), float("inf"), -1.0, 1e12])
def test_invalid_durations_are_refused(wait_ms: float) -> None:
    request = Datagram(Incarnation(1, 1), 1, PingRequest(1, NodeId("b"), wait_ms, GossipItems()))
    with pytest.raises(WireError):
        decode(encode(request))


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(WireError):
        decode(bytes([WIRE_VERSION]) + b"\x91" * 100_000 + b"\x90")

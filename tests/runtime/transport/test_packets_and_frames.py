"""The bytes of the transport, and long messages, without sockets. Any bytes decode, or are nothing."""

from hypothesis import given
from hypothesis import strategies as st

from comesh.runtime.transport.cookies import ROTATE_MS, Cookies
from comesh.runtime.transport.fragments import MAX_INCOMING, Incoming, Memory, Outgoing
from comesh.runtime.transport.frames import (
    MAX_FRAGMENTS,
    MAX_MISSING,
    PART_BYTES,
    Report,
    State,
    decode_forgot,
    decode_fragment,
    decode_report,
    encode_forgot,
    encode_fragment,
    encode_report,
    joined,
    separated,
)
from comesh.runtime.transport.packets import (
    COOKIE_BYTES,
    Cookie,
    Flight,
    Gone,
    Hello,
    Knock,
    OtherVersion,
    are_records,
    decode,
    encode,
    split,
)
from comesh.runtime.transport.settings import TransportSettings

of_16, of_8 = st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8)
cookies = st.binary(min_size=COOKIE_BYTES, max_size=COOKIE_BYTES)
record = st.binary(max_size=50).map(
    lambda body: b"\x16\xfe\xfd" + bytes(8) + len(body).to_bytes(2, "big") + body
)
records = st.lists(record, min_size=1, max_size=5).map(b"".join)
packets = st.one_of(
    st.builds(Knock, st.integers(0, 255), of_16, of_8),
    st.builds(Cookie, of_16, cookies),
    st.builds(OtherVersion, st.integers(0, 255), of_16),
    st.builds(Hello, cookies, of_16, of_8, records),
    st.builds(Flight, of_8, of_8, records),
    st.builds(Gone, of_8),
)
indexes = st.integers(0, MAX_FRAGMENTS - 1)


@given(packets)
def test_packets_survive(packet: Knock | Cookie | OtherVersion | Hello | Flight | Gone) -> None:
    again = decode(encode(packet))
    assert again == packet
    assert type(again) is type(packet)


@given(st.binary(max_size=1300), st.integers(0xC0, 0xC8))
def test_any_bytes_decode_to_a_packet_or_nothing(content: bytes, kind: int) -> None:
    for datagram in (content, bytes((kind,)) + content):
        packet = decode(datagram)
        assert packet is None or encode(packet)[0] == datagram[0]


@given(packets, st.data())
def test_truncated_packets_are_nothing_or_shorter(packet: Knock | Hello, data: st.DataObject) -> None:
    whole = encode(packet)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    assert decode(cut) != packet


@given(records, st.integers(70, 200))
def test_records_are_put_together(content: bytes, most: int) -> None:
    parts = split(content, most)
    assert b"".join(parts) == content
    assert all(are_records(part) and len(part) <= most for part in parts)


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=20))
def test_messages_share_a_datagram(messages: list[bytes]) -> None:
    plain = joined(messages)
    assert ([plain[1:]] if len(messages) == 1 else separated(plain)) == messages


@given(st.binary(max_size=1300))
def test_any_inside_decodes_to_something_or_nothing(plain: bytes) -> None:
    separated(b"\x02" + plain)
    decode_fragment(b"\x03" + plain)
    decode_report(b"\x04" + plain)
    decode_forgot(b"\x05" + plain)


@given(st.integers(0, 2**64 - 1), st.sampled_from(State), indexes, st.lists(indexes, max_size=MAX_MISSING))
def test_reports_survive(message: int, state: State, next_index: int, missing: list[int]) -> None:
    report = Report(message, state, next_index, tuple(missing))
    assert decode_report(encode_report(report)) == report
    assert decode_forgot(encode_forgot(message)) == message


def test_fragments_with_impossible_numbers_are_nothing() -> None:
    whole = bytes(PART_BYTES)
    assert decode_fragment(encode_fragment(1, 0, 2, whole)) is not None
    assert decode_fragment(encode_fragment(1, 2, 2, whole)) is None
    assert decode_fragment(encode_fragment(1, 0, 1, whole)) is None
    assert decode_fragment(encode_fragment(1, 0, MAX_FRAGMENTS + 1, whole)) is None
    assert decode_fragment(encode_fragment(1, 0, 2, whole[1:])) is None, "only the last one is shorter"
    assert decode_fragment(encode_fragment(1, 1, 2, whole[1:])) is not None


def test_cookies_are_for_one_address_and_grow_old() -> None:
    ours, nonce, session = Cookies(), bytes(16), bytes(8)
    cookie = ours.bake(("10.0.0.1", 7000), nonce, session, 0.0)
    assert ours.is_ours(cookie, ("10.0.0.1", 7000), nonce, session, 0.0)
    assert not ours.is_ours(cookie, ("10.0.0.1", 7001), nonce, session, 0.0)
    assert not ours.is_ours(cookie, ("10.0.0.1", 7000), nonce, b"x" * 8, 0.0)
    assert not Cookies().is_ours(cookie, ("10.0.0.1", 7000), nonce, session, 0.0)
    assert ours.is_ours(cookie, ("10.0.0.1", 7000), nonce, session, ROTATE_MS)
    assert not ours.is_ours(cookie, ("10.0.0.1", 7000), nonce, session, 2 * ROTATE_MS)


def exchange(content: bytes, lost: set[int]) -> tuple[list[bytes], float]:
    """One long message with these transmissions lost, in virtual time: what came, and when it was over."""
    settings = TransportSettings()
    sender, receiver = Outgoing(settings, 7), Incoming(settings, Memory())
    assert sender.add(content, 0.0)
    came: list[bytes] = []
    now_ms, transmissions = 0.0, 0
    while len(sender) and now_ms < 60_000.0:
        wire = list(sender.due(now_ms))
        reports = list(receiver.on_tick(now_ms))
        while wire or reports:
            for plain in wire:
                transmissions += 1
                fragment = decode_fragment(plain)
                if transmissions in lost or fragment is None:
                    continue
                whole, report = receiver.on_fragment(fragment, now_ms)
                came += [whole] if whole is not None else []
                reports += [report] if report is not None else []
            wire = []
            for report in reports:
                transmissions += 1
                if transmissions not in lost:
                    wire += sender.on_report(report, now_ms)
            reports = []
            wire += sender.due(now_ms)
        now_ms += 10.0
        sender.on_tick(now_ms)
    return came, now_ms


@given(st.integers(PART_BYTES + 1, 200 * PART_BYTES), st.sets(st.integers(1, 400), max_size=120))
def test_a_long_message_comes_once_and_whole_whatever_is_lost(size: int, lost: set[int]) -> None:
    content = bytes(range(256)) * (size // 256 + 1)
    came, _ = exchange(content[:size], lost)
    assert came == [content[:size]]


def test_a_sender_that_hears_nothing_begins_again() -> None:
    content = bytes(10 * PART_BYTES)
    came, over_ms = exchange(content, lost=set(range(1, 11)))
    assert came == [content]
    assert over_ms >= TransportSettings().unheard_ms


def test_memory_for_incomplete_messages_is_bounded() -> None:
    memory = Memory(max_bytes=100 * PART_BYTES)
    one, other = (Incoming(TransportSettings(), memory) for _ in range(2))
    for number in range(1_000):
        for incoming in (one, other):
            fragment = decode_fragment(encode_fragment(number, 0, 500, bytes(PART_BYTES)))
            assert fragment is not None
            incoming.on_fragment(fragment, 0.0)
            assert memory.bytes <= memory.max_bytes
            assert len(incoming) <= MAX_INCOMING + 1
    for now_ms in range(0, 60_000, 10):
        for incoming in (one, other):
            list(incoming.on_tick(float(now_ms)))
    assert (memory.bytes, len(one), len(other)) == (0, 0, 0)


def test_too_much_under_way_is_refused() -> None:
    sender = Outgoing(TransportSettings(), 0)
    accepted = sum(sender.add(bytes(1_000_000), 0.0) for _ in range(100))
    assert accepted == 16

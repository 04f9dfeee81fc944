"""Reads between nodes: they survive loss and other versions, say how old they are, and are bounded."""

import asyncio

import msgspec
import pytest
from small_mesh import LAMP, NAMES, SmallMesh, SmallView

from comesh.queries import peers
from comesh.queries.answers import DeviceSeen, Fresh, News, Silence
from comesh.queries.node_reads import (
    NewerRevocations,
    NodeRead,
    OwnDevice,
    OwnDevices,
    OwnLogs,
    OwnTime,
    answer_type,
    answered,
)
from comesh.queries.peers import FIRST_BYTE, Answers, Ask, Peers, Told, Unsupported
from comesh.queries.view import TimeTold

N1, N2, N3 = NAMES


class FromLater(NodeRead[str], frozen=True, kw_only=True, tag="something of later"):
    """A read that no node of this version knows."""


def test_an_answer_says_who_gave_it_and_when() -> None:
    small = SmallMesh(leader=N2)
    told = asyncio.run(small.peers[N1].ask(N2, OwnDevice(device=LAMP)))
    assert isinstance(told, Fresh)
    assert (told.answered_by, told.as_of_ms, told.reached) == (N2, 2000.0, True), "by the clock of n2"
    assert told.answer is not None
    assert told.answer.readings == {"on": True}


@pytest.mark.parametrize("lost", ["the read", "its answer"])
def test_a_read_whose_first_frame_is_lost_is_answered(lost: str) -> None:
    small = SmallMesh(leader=N2)
    way = (N1, N2) if lost == "the read" else (N2, N1)
    small.lose = lambda sender, to: (sender, to) == way and not small.frames(sender, to)
    told = asyncio.run(small.peers[N1].ask(N2, OwnDevices(), within_s=0.3))
    assert isinstance(told, Fresh)
    first, second = small.frames(N1, N2)
    assert first == second, "the same read, with the same number"


def test_a_read_that_nobody_answers_is_asked_twice_and_given_up() -> None:
    small = SmallMesh()
    small.lose = lambda *_: True
    assert asyncio.run(small.peers[N1].ask(N2, OwnTime(), within_s=0.06)) is Silence.NO_ANSWER
    assert len(small.frames(N1, N2)) == 2
    assert small.peers[N1]._open == {}


def test_a_read_of_a_later_version_is_answered_so() -> None:
    small = SmallMesh()
    told = asyncio.run(small.peers[N1].ask(N2, FromLater(), within_s=10.0))
    assert told is Silence.OTHER_VERSION
    (answer,) = small.frames(N2, N1)
    assert msgspec.msgpack.decode(answer[1:], type=Told | Unsupported) == Unsupported(1, "small 1")


@pytest.mark.parametrize("read", [b"", b"\xff", b"\xc0", msgspec.msgpack.encode({"read": "device"})])
def test_a_read_that_cannot_be_understood_is_none_of_this_version(read: bytes) -> None:
    assert answered(msgspec.Raw(read), SmallView(N1)) is None


def test_unknown_fields_of_a_read_are_ignored_and_missing_ones_have_defaults() -> None:
    view = SmallView(N1)
    later = msgspec.msgpack.encode({"read": "device", "device": "lamp", "since": 7})
    told = msgspec.msgpack.decode(answered(msgspec.Raw(later), view) or b"", type=DeviceSeen | None)
    assert told is not None
    assert told.device == LAMP
    earlier = msgspec.msgpack.encode({"read": "revocations"})
    assert answered(msgspec.Raw(earlier), view) == msgspec.msgpack.encode(())


def test_unknown_fields_of_an_answer_are_ignored_and_missing_ones_have_defaults() -> None:
    assert msgspec.convert({}, OwnLogs) == OwnLogs()
    later = {"wall_ms": 1.0, "valid": True, "leap_seconds": 27}
    assert msgspec.convert(later, TimeTold) == TimeTold(wall_ms=1.0, valid=True)


def test_an_answer_of_another_shape_is_of_another_version() -> None:
    told: list[Ask] = []

    async def story() -> object:
        asks = Peers(lambda _, frame: told.append(_ask(frame)), _no_answers(), lambda: 0.0)
        asking = asyncio.ensure_future(asks.ask(N2, OwnTime(), within_s=10.0))
        await asyncio.sleep(0)
        reply = Told(told[0].number, 5.0, msgspec.Raw(msgspec.msgpack.encode({"wall_ms": "noon"})))
        assert asks.on_frame(N2, bytes([FIRST_BYTE]) + msgspec.msgpack.encode(reply))
        return await asking

    assert asyncio.run(story()) is Silence.OTHER_VERSION


def test_only_the_node_that_was_asked_answers() -> None:
    told: list[Ask] = []

    async def story() -> object:
        asks = Peers(lambda _, frame: told.append(_ask(frame)), _no_answers(), lambda: 0.0)
        asking = asyncio.ensure_future(asks.ask(N2, OwnTime(), within_s=0.06))
        await asyncio.sleep(0)
        time = msgspec.Raw(msgspec.msgpack.encode(TimeTold(wall_ms=1.0, valid=True)))
        asks.on_frame(N3, bytes([FIRST_BYTE]) + msgspec.msgpack.encode(Told(told[0].number, 5.0, time)))
        return await asking

    assert asyncio.run(story()) is Silence.NO_ANSWER


def test_open_reads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "MAX_OPEN", 2)
    small = SmallMesh(leader=N2)

    async def story() -> list[object]:
        asks = [small.peers[N1].ask(N2, OwnDevices(), within_s=10.0) for _ in range(3)]
        return list(await asyncio.gather(*asks))

    told = asyncio.run(story())
    assert [isinstance(one, Fresh) for one in told] == [True, True, False]
    assert told[2] is Silence.NO_ANSWER


def test_news_are_a_lease_and_its_holders_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "MAX_WATCHERS", 1)
    small, news = SmallMesh(), News(1.0, N2, "leader", "c1", "serving")
    heard: list[str] = []
    small.peers[N1].on_news.append(lambda told: heard.append(f"n1 {told.about}"))
    small.peers[N3].on_news.append(lambda told: heard.append(f"n3 {told.about}"))

    async def story() -> None:
        for asks in (N1, N3):
            small.peers[asks].ask_for_news([N2])
            await asyncio.sleep(0)
        small.peers[N2].tell_news(news)
        await asyncio.sleep(0)
        small.views[N2].now_ms += peers.WATCH_MS + 1.0
        small.peers[N2].tell_news(news)
        await asyncio.sleep(0)

    asyncio.run(story())
    assert heard == ["n1 c1"]


@pytest.mark.parametrize("frame", [b"", b"\xff", b"\x91\x07", b"[" * 5000])
def test_what_is_no_frame_is_refused(frame: bytes) -> None:
    assert not SmallMesh().peers[N1].on_frame(N2, bytes([FIRST_BYTE]) + frame)


def test_the_type_of_an_answer_is_that_of_its_read() -> None:
    assert answer_type(OwnTime) is TimeTold
    assert answer_type(NewerRevocations) == tuple[bytes, ...]


def _ask(frame: bytes) -> Ask:
    return msgspec.msgpack.decode(frame[1:], type=Ask)


def _no_answers() -> Answers:
    return Answers(lambda read: None, lambda: 0.0, "small 1")

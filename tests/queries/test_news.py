"""News for those who follow: asked of other nodes only while somebody does, bounded for each."""

import asyncio
from collections.abc import Callable

import pytest
from small_mesh import NAMES, SmallMesh

from comesh.queries import news
from comesh.queries.answers import Lost, News
from comesh.queries.news import NewsDesk

N1, N2, N3 = NAMES


def told(number: int) -> News:
    return News(float(number), N2, "run", f"a#{number}", "fired")


def test_other_nodes_are_asked_only_while_somebody_follows() -> None:
    small = SmallMesh()
    own: list[Callable[[News], None]] = []

    async def story() -> None:
        desk = NewsDesk(small.mesh(N1), small.peers[N1], own)
        assert own == []
        one, other = desk.follow(), desk.follow()
        await asyncio.sleep(0.01)
        small.peers[N2].tell_news(told(1))
        assert await one.take() == await other.take() == [told(1)]
        own[0](told(2))
        assert await one.take() == [told(2)]
        desk.leave(one)
        desk.leave(one)
        assert (desk.followers, len(own)) == (1, 1)
        desk.leave(other)
        assert (desk.followers, own, small.peers[N1].on_news) == (0, [], [])

    asyncio.run(story())


def test_who_does_not_read_loses_the_oldest_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "MAX_WAITING", 2)
    small = SmallMesh()
    own: list[Callable[[News], None]] = []

    async def story() -> None:
        desk = NewsDesk(small.mesh(N1), small.peers[N1], own)
        slow = desk.follow()
        for number in range(5):
            own[0](told(number))
        assert await slow.take() == [Lost(lost=3), told(3), told(4)]
        own[0](told(5))
        assert await slow.take() == [told(5)]
        desk.leave(slow)
        assert desk.lost == 3

    asyncio.run(story())

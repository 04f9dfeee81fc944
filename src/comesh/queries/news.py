"""News: what happens in the whole mesh, for everybody who follows it at this node.

Rules: other nodes are asked for their news only while somebody follows here. Each follower has room for so
many; one that does not read loses the oldest, is told how many, and holds up nobody.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from comesh.queries.answers import Lost, News
from comesh.queries.mesh import Mesh
from comesh.queries.peers import WATCH_MS, Peers

MAX_WAITING: Final = 1000
"""For one follower that does not read as fast as they come."""
RENEW_S: Final = WATCH_MS / 2000


class Follower:
    """What one follower has still to be told."""

    def __init__(self) -> None:
        self.lost_ever = 0
        self._lost = 0
        self._waiting: deque[News] = deque()
        self._some = asyncio.Event()

    def tell(self, news: News) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._waiting.popleft()
            self._lost += 1
            self.lost_ever += 1
        self._waiting.append(news)
        self._some.set()

    async def take(self) -> list[News | Lost]:
        """All that waits, once something does. What was lost comes first, as it would have."""
        await self._some.wait()
        told: list[News | Lost] = [*self._waiting]
        self._waiting.clear()
        self._some.clear()
        if self._lost:
            told.insert(0, Lost(lost=self._lost))
            self._lost = 0
        return told


class NewsDesk:
    """Tells everything that happens to all followers of this node."""

    def __init__(self, mesh: Mesh, peers: Peers, own_news: list[Callable[[News], None]]) -> None:
        """own_news: told what happens at this node."""
        self._mesh = mesh
        self._peers = peers
        self._sources = (own_news, peers.on_news)
        self._followers: set[Follower] = set()
        self._renewing: asyncio.Task[None] | None = None
        self._lost_by_former = 0

    @property
    def followers(self) -> int:
        return len(self._followers)

    @property
    def lost(self) -> int:
        return self._lost_by_former + sum(one.lost_ever for one in self._followers)

    def follow(self) -> Follower:
        """From now on, until `leave`."""
        if not self._followers:
            for source in self._sources:
                source.append(self._on_news)
            self._renewing = asyncio.create_task(self._renew())
        follower = Follower()
        self._followers.add(follower)
        return follower

    def leave(self, follower: Follower) -> None:
        if follower not in self._followers:
            return
        self._followers.discard(follower)
        self._lost_by_former += follower.lost_ever
        if not self._followers:
            for source in self._sources:
                source.remove(self._on_news)
            if self._renewing is not None:
                self._renewing.cancel()

    def _on_news(self, news: News) -> None:
        for follower in self._followers:
            follower.tell(news)

    async def _renew(self) -> None:
        """Other nodes tell their news for a while only."""
        while True:
            self._peers.ask_for_news(self._mesh.others)
            await asyncio.sleep(RENEW_S)

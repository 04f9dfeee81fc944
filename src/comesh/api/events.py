"""What happens in the whole mesh, as server-sent events.

    event: news          a `News` as its data
    event: lost          a `Lost`: so many were dropped, because this client did not read them in time
    : still here         nothing happened for a while

Rules: a client is cut off once its token is not valid any more. `comesh.queries.news` has the bounds.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from comesh.api.errors import HEADERS
from comesh.api.limits import HEARTBEAT_S, MAX_EVENT_CLIENTS
from comesh.queries.answers import Lost, News, UnavailableError
from comesh.queries.news import Follower, NewsDesk

TOKEN_S = 5.0
"""How often the token of a client is looked at again."""
STILL_HERE = b": still here\n\n"


class Events:
    def __init__(self, news: NewsDesk) -> None:
        self._news = news
        self._streams: set[Stream] = set()

    @property
    def clients(self) -> int:
        return len(self._streams)

    async def follow(self, request: Request) -> Response:
        """Until the client goes, or its token is not valid any more."""
        if len(self._streams) >= MAX_EVENT_CLIENTS:
            raise UnavailableError(
                f"{MAX_EVENT_CLIENTS} clients follow the events of this node already; ask another node"
            )
        stream = Stream(self._news.follow(), request.state.may_ask, self._leave)
        self._streams.add(stream)
        return stream

    def _leave(self, stream: "Stream") -> None:
        self._streams.discard(stream)
        self._news.leave(stream.follower)


class Stream(StreamingResponse):
    """Gives the client's place back, however the stream ends."""

    def __init__(
        self, follower: Follower, may_follow: Callable[[], bool], leave: Callable[["Stream"], None]
    ) -> None:
        super().__init__(told(follower, may_follow), headers=HEADERS, media_type="text/event-stream")
        self.follower = follower
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave(self)


async def told(follower: Follower, may_follow: Callable[[], bool]) -> AsyncIterator[bytes]:
    yield STILL_HERE
    told_s = looked_s = time.monotonic()
    while True:
        try:
            async with asyncio.timeout(min(TOKEN_S, HEARTBEAT_S)):
                events = await follower.take()
        except TimeoutError:
            events = []
        now_s = time.monotonic()
        if now_s - looked_s >= TOKEN_S:
            if not may_follow():
                return
            looked_s = now_s
        if events:
            yield b"".join(map(_event, events))
            told_s = now_s
        elif now_s - told_s >= HEARTBEAT_S:
            yield STILL_HERE
            told_s = now_s


def _event(one: News | Lost) -> bytes:
    name = "lost" if isinstance(one, Lost) else "news"
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(one) + b"\n\n"

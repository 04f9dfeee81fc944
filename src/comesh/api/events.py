"""What happens in the whole mesh, as server-sent events.

    event: news          a `News` as its data
    event: lost          {"lost": n}: so many were dropped, because this client did not read them in time
    : still here         nothing happened for a while

Rules: other nodes are asked for their news only while somebody follows here. Each client has a queue of its
own with a bound; one that does not read loses the oldest, and holds up nobody.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from comesh.api.errors import HEADERS, RefusedError
from comesh.api.limits import HEARTBEAT_S, MAX_EVENT_CLIENTS, MAX_EVENTS_WAITING
from comesh.queries.answers import News
from comesh.runtime.assembly import Assembly
from comesh.runtime.questions import WATCH_MS

RENEW_S = WATCH_MS / 2000
STILL_HERE = b": still here\n\n"


class Client:
    """What one client has still to be told."""

    def __init__(self, may_follow: Callable[[], bool]) -> None:
        self.may_follow = may_follow
        self.ended = False
        self.waiting: deque[bytes] = deque()
        self.lost = 0
        self.lost_ever = 0
        self.some = asyncio.Event()

    def tell(self, event: bytes) -> None:
        if len(self.waiting) >= MAX_EVENTS_WAITING:
            self.waiting.popleft()
            self.lost += 1
            self.lost_ever += 1
        self.waiting.append(event)
        self.some.set()

    def end(self) -> None:
        self.ended = True
        self.some.set()

    def take(self) -> bytes:
        """All that waits, in one piece; what was lost is told first, as it would have come before."""
        told = b"".join(self.waiting)
        self.waiting.clear()
        self.some.clear()
        if self.lost:
            told = _event("lost", {"lost": self.lost}) + told
            self.lost = 0
        return told


class Events:
    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._clients: set[Client] = set()
        self._renewing: asyncio.Task[None] | None = None
        self._lost_by_former = 0

    @property
    def clients(self) -> int:
        return len(self._clients)

    @property
    def lost(self) -> int:
        return self._lost_by_former + sum(one.lost_ever for one in self._clients)

    async def follow(self, request: Request) -> Response:
        """Until the client goes, or its token is not valid any more."""
        if len(self._clients) >= MAX_EVENT_CLIENTS:
            raise RefusedError(
                503,
                f"{MAX_EVENT_CLIENTS} clients follow the events of this node already; ask another node",
                headers={"retry-after": "10"},
            )
        client = Client(request.state.may_ask)
        self._enter(client)
        return Stream(self, client)

    async def told(self, client: Client) -> AsyncIterator[bytes]:
        yield STILL_HERE
        while not client.ended:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await client.some.wait()
            except TimeoutError:
                yield STILL_HERE
            else:
                yield client.take()

    def _enter(self, client: Client) -> None:
        if not self._clients:
            self._assembly.view.watchers.append(self._on_news)
            self._assembly.questions.on_news.append(self._on_news)
            self._renewing = asyncio.create_task(self._renew())
        self._clients.add(client)

    def leave(self, client: Client) -> None:
        if client not in self._clients:
            return
        self._clients.discard(client)
        self._lost_by_former += client.lost_ever
        if not self._clients:
            self._assembly.view.watchers.remove(self._on_news)
            self._assembly.questions.on_news.remove(self._on_news)
            if self._renewing is not None:
                self._renewing.cancel()

    def _on_news(self, news: News) -> None:
        event = _event("news", news)
        for client in self._clients:
            client.tell(event)

    async def _renew(self) -> None:
        """Other nodes tell their news for a while only; and tokens are looked at again."""
        own = self._assembly.node.id
        while True:
            living = self._assembly.node.membership.living
            self._assembly.questions.ask_for_news([node for node in living if node != own])
            await asyncio.sleep(RENEW_S)
            for client in self._clients:
                if not client.may_follow():
                    client.end()


class Stream(StreamingResponse):
    """Gives the client's place back, however the stream ends."""

    def __init__(self, events: Events, client: Client) -> None:
        super().__init__(events.told(client), headers=HEADERS, media_type="text/event-stream")
        self._events = events
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._events.leave(self._client)


def _event(kind: str, data: object) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"

"""Questions between nodes on behalf of people: any node can be asked about the whole mesh.

They go over the node's transport, beside the messages of the core, which knows nothing of them. Who does not
answer in time is left out; nothing is repeated.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Final, TypeVar, assert_never

import msgspec

from comesh.core.ids import NodeId
from comesh.queries.answers import News

FIRST_BYTE: Final = 0xA1
"""Tells these frames from the core's, which begin with their wire version. Another version of them gets
another byte."""
MAX_OPEN: Final = 256
"""Questions that wait for their answers."""
MAX_WATCHERS: Final = 32
WATCH_MS: Final = 10_000.0
"""How long a peer is told the news, unless it asks again."""


class Question(msgspec.Struct, frozen=True, array_like=True, tag=1):
    number: int
    ask: str
    about: str


class Reply(msgspec.Struct, frozen=True, array_like=True, tag=2):
    number: int
    body: bytes


class WatchAsked(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Tell me the news for a while."""


class NewsTold(msgspec.Struct, frozen=True, array_like=True, tag=4):
    news: News


_T = TypeVar("_T")
Frame = Question | Reply | WatchAsked | NewsTold
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Frame).decode


def question(ask: str, about: str) -> bytes:
    """One that no answer is waited for: its number is nobody's."""
    return bytes([FIRST_BYTE]) + _encode(Question(0, ask, about))


def decoded(answer: bytes | None, kind: type[_T]) -> _T | None:
    """What another node answered; None: nothing, or, being of another version, something else."""
    try:
        return None if answer is None else msgspec.json.decode(answer, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class Questions:
    def __init__(
        self,
        send: Callable[[NodeId, bytes], None],
        answer: Callable[[str, str], bytes],
        now_ms: Callable[[], float],
    ) -> None:
        self._send = send
        self._answer = answer
        self._now_ms = now_ms
        self._number = 0
        self._open: dict[int, tuple[NodeId, asyncio.Future[bytes]]] = {}
        """Who was asked, and who waits."""
        self._watchers: dict[NodeId, float] = {}
        """Who is told the news, and until when."""
        self.on_news: list[Callable[[News], None]] = []
        """Told the news of other nodes."""

    def on_frame(self, sender: NodeId, data: bytes) -> bool:
        """False: it cannot be read."""
        try:
            frame = _decode(memoryview(data)[1:])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        match frame:
            case Question():
                self._tell(sender, Reply(frame.number, self._answer(frame.ask, frame.about)))
            case Reply():
                asked, waiting = self._open.get(frame.number, (None, None))
                if waiting is not None and asked == sender and not waiting.done():
                    waiting.set_result(frame.body)
            case WatchAsked():
                if sender in self._watchers or len(self._watchers) < MAX_WATCHERS:
                    self._watchers[sender] = self._now_ms() + WATCH_MS
            case NewsTold():
                for told in list(self.on_news):
                    told(frame.news)
            case _:
                assert_never(frame)
        return True

    async def ask(
        self, nodes: Collection[NodeId], ask: str, about: str = "", *, within_s: float = 1.0
    ) -> dict[NodeId, bytes | None]:
        """What these nodes answer; None: nothing in time."""
        waiting: dict[NodeId, tuple[int, asyncio.Future[bytes]]] = {}
        for node in nodes:
            if len(self._open) >= MAX_OPEN:
                break
            self._number += 1
            future = asyncio.get_running_loop().create_future()
            self._open[self._number] = (node, future)
            waiting[node] = (self._number, future)
            self._tell(node, Question(self._number, ask, about))
        if waiting:
            await asyncio.wait([future for _, future in waiting.values()], timeout=within_s)
        answers: dict[NodeId, bytes | None] = dict.fromkeys(nodes)
        for node, (number, future) in waiting.items():
            self._open.pop(number, None)
            if future.done():
                answers[node] = future.result()
            else:
                future.cancel()
        return answers

    def ask_for_news(self, nodes: Collection[NodeId]) -> None:
        for node in nodes:
            self._tell(node, WatchAsked())

    def tell_news(self, news: News) -> None:
        """To the peers that asked for it."""
        if not self._watchers:
            return
        now_ms = self._now_ms()
        for node, until_ms in list(self._watchers.items()):
            if until_ms < now_ms:
                del self._watchers[node]
            else:
                self._tell(node, NewsTold(news))

    def _tell(self, node: NodeId, frame: Frame) -> None:
        self._send(node, bytes([FIRST_BYTE]) + _encode(frame))

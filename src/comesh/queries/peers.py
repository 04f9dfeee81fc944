"""Reads between nodes: any node can be asked about the whole mesh, so nodes ask each other.

    Ask(number, read)                  what one node wants to know of another
    Told(number, as_of_ms, answer)     the answer, and the time of the node that gave it
    Unsupported(number, software)      the node is of a version that does not know this read
    WatchAsked, NewsTold               a lease: what happens is told for a while

They go over the node's transport, beside the messages of the core, which knows nothing of them.

Rules:
1. A read changes nothing, so it may be asked twice. One that is not answered within a third of its time is
   asked once more, with the same number. Orders never go this way: the core's router repeats them.
2. Reads and answers are maps: unknown fields are ignored, and every new field has a default.
3. Open reads and watching peers are bounded; what finds no room is not answered.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, TypeVar, assert_never

import msgspec

from comesh.core.ids import NodeId
from comesh.queries.answers import Fresh, News, Silence
from comesh.queries.node_reads import NodeRead, answer_type

FIRST_BYTE: Final = 0xA2
"""Tells these frames from the core's, which begin with their wire version. Another version of them gets
another byte."""
MAX_OPEN: Final = 256
"""Reads that wait for their answers."""
MAX_WATCHERS: Final = 32
WATCH_MS: Final = 10_000.0
"""How long a peer is told the news, unless it asks again."""
ANSWER_S: Final = 1.0
"""How long an answer is waited for, unless a read says otherwise."""

A = TypeVar("A")
_UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Ask(msgspec.Struct, frozen=True, array_like=True, tag=1):
    number: int
    """0: no answer is wanted."""
    read: msgspec.Raw


class Told(msgspec.Struct, frozen=True, array_like=True, tag=2):
    number: int
    as_of_ms: float
    answer: msgspec.Raw


class Unsupported(msgspec.Struct, frozen=True, array_like=True, tag=3):
    number: int
    software: str


class WatchAsked(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Tell me the news for a while."""


class NewsTold(msgspec.Struct, frozen=True, array_like=True, tag=5):
    news: News


Frame = Ask | Told | Unsupported | WatchAsked | NewsTold
Reply = Told | Unsupported
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Frame).decode


class Answers(msgspec.Struct, frozen=True):
    """What a node answers other nodes with."""

    read: Callable[[msgspec.Raw], bytes | None]
    """None: it does not know such a read."""
    wall_ms: Callable[[], float]
    software: str


def unasked(read: NodeRead[Any]) -> bytes:
    """A frame that tells another node something, and wants no answer."""
    return _framed(Ask(0, msgspec.Raw(_encode(read))))


class Peers:
    """The reads of one node: those that it asks, and those that it answers."""

    def __init__(
        self, send: Callable[[NodeId, bytes], None], answers: Answers, monotonic_ms: Callable[[], float]
    ) -> None:
        self._send = send
        self._answers = answers
        self._now_ms = monotonic_ms
        self._number = 0
        self._open: dict[int, tuple[NodeId, asyncio.Future[Reply]]] = {}
        """The node that was asked, and the future that waits."""
        self._watchers: dict[NodeId, float] = {}
        """The nodes that are told the news, and until when."""
        self.on_news: list[Callable[[News], None]] = []
        """Told the news of other nodes."""

    # -- frames ------------------------------------------------------------------------------------------

    def on_frame(self, sender: NodeId, data: bytes) -> bool:
        """False: it cannot be read."""
        try:
            frame = _decode(memoryview(data)[1:])
        except _UNDECODABLE:
            return False
        match frame:
            case Ask():
                self._answer(sender, frame)
            case Told() | Unsupported():
                asked, waiting = self._open.get(frame.number, (None, None))
                if waiting is not None and asked == sender and not waiting.done():
                    waiting.set_result(frame)
            case WatchAsked():
                if sender in self._watchers or len(self._watchers) < MAX_WATCHERS:
                    self._watchers[sender] = self._now_ms() + WATCH_MS
            case NewsTold():
                for told in list(self.on_news):
                    told(frame.news)
            case _:
                assert_never(frame)
        return True

    def _answer(self, sender: NodeId, ask: Ask) -> None:
        answer = self._answers.read(ask.read)
        if ask.number == 0:
            return
        if answer is None:
            self._tell(sender, Unsupported(ask.number, self._answers.software))
        else:
            self._tell(sender, Told(ask.number, self._answers.wall_ms(), msgspec.Raw(answer)))

    def _tell(self, node: NodeId, frame: Frame) -> None:
        self._send(node, _framed(frame))

    # -- reads -------------------------------------------------------------------------------------------

    async def ask(self, node: NodeId, read: NodeRead[A], *, within_s: float = ANSWER_S) -> Fresh[A] | Silence:
        """What a node answers, or why it has not."""
        if len(self._open) >= MAX_OPEN:
            return Silence.NO_ANSWER
        self._number += 1
        number, waiting = self._number, asyncio.get_running_loop().create_future()
        self._open[number] = (node, waiting)
        ask = Ask(number, msgspec.Raw(_encode(read)))
        try:
            for wait_s in (within_s / 3, within_s * 2 / 3):
                self._tell(node, ask)
                await asyncio.wait((waiting,), timeout=wait_s)
                if waiting.done():
                    return _read(node, read, waiting.result())
        finally:
            del self._open[number]
        return Silence.NO_ANSWER

    async def ask_each(
        self, nodes: Iterable[NodeId], read: NodeRead[A], *, within_s: float = ANSWER_S
    ) -> dict[NodeId, Fresh[A] | Silence]:
        """What each of these nodes answers."""
        asked = tuple(dict.fromkeys(nodes))
        answers = await asyncio.gather(*(self.ask(node, read, within_s=within_s) for node in asked))
        return dict(zip(asked, answers, strict=True))

    # -- news --------------------------------------------------------------------------------------------

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


def _framed(frame: Frame) -> bytes:
    return bytes([FIRST_BYTE]) + _encode(frame)


def _read(node: NodeId, read: NodeRead[A], reply: Reply) -> Fresh[A] | Silence:
    if isinstance(reply, Unsupported):
        return Silence.OTHER_VERSION
    try:
        answer = msgspec.msgpack.decode(reply.answer, type=answer_type(type(read)))
    except _UNDECODABLE:
        return Silence.OTHER_VERSION
    return Fresh(answer=answer, answered_by=node, as_of_ms=reply.as_of_ms)

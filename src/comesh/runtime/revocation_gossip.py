"""Spreads lists of revoked certificates from the node that was given one to all others.

A node with a new list posts an announcement, which gossip brings to everybody: the list's digest, nothing
else. A node without that list asks other nodes for newer ones than its own, and checks the signature of each.
Now and then it asks without an announcement, too: so a spoiled announcement costs time, and hides nothing. A
node that is refused because it is revoked gets the list that says so.
"""

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Final

import msgspec

from comesh.core.effects import AnnouncementLearned, Observation
from comesh.core.events import AnnouncementPosted
from comesh.core.ids import NodeId
from comesh.runtime.questions import question
from comesh.runtime.revocation import Rank, RevocationList
from comesh.runtime.transport.frames import MAX_ALONE_BYTES

if TYPE_CHECKING:
    from comesh.runtime.assembly import Assembly

KEY: Final = "revoked/"
"""Prefix of the announcements' keys; the digest of a list follows."""
ASK: Final = "revoked"
TELL: Final = "you are revoked"
ASKED_AT_ONCE: Final = 3
LOOK_S: Final = 1.0
"""How often files are looked at."""
AGAIN_S: Final = 1.0
"""Between questions for a list that an announcement tells of."""
SWEEP_S: Final = 60.0
"""How often others are asked although no announcement tells of a list."""
MAX_WANTED: Final = 64
"""Digests of lists that are known of and not there."""
MAX_ASKED_ROUNDS: Final = 100
"""For one announcement: then nobody who answers has it."""

_Ranks = dict[str, Rank]
"""What a node has of each authority."""


class RevocationGossip:
    def __init__(self, assembly: "Assembly") -> None:
        self._assembly = assembly
        self._trust = assembly.trust
        self._wanted: dict[str, int] = {}
        """Digests of lists that announcements tell of, and how often they were asked for."""
        self._news = asyncio.Event()
        self._next = 0
        self._trust.on_revoked.append(self.post)
        self._trust.last_words = last_words

    def post(self) -> None:
        """Tell everybody which lists there are."""
        for one in self._trust.revocations.lists:
            self._assembly.host.give(AnnouncementPosted(key=KEY + one.digest, version=one.number, value=b""))

    def on_observation(self, told: Observation) -> None:
        if isinstance(told, AnnouncementLearned) and told.key.startswith(KEY):
            digest = told.key.removeprefix(KEY)
            if digest not in self._held() and len(self._wanted) < MAX_WANTED:
                self._wanted[digest] = 0
                self._news.set()

    def _held(self) -> set[str]:
        return {one.digest for one in self._trust.revocations.lists}

    # -- questions of other nodes ------------------------------------------------------------------------

    def answer_peer(self, ask: str, about: str) -> bytes | None:
        """None: it is no question of these."""
        if ask == ASK:
            return self._newer(about)
        if ask == TELL:
            self._on_told(about)
            return b""
        return None

    def _newer(self, about: str) -> bytes:
        """The lists that count more than those of these ranks."""
        try:
            ranks = msgspec.json.decode(about, type=_Ranks)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return b""
        return msgspec.msgpack.encode([one.der for one in self._trust.newer_than(ranks)])

    def _on_told(self, about: str) -> None:
        """Another node refuses this one, and shows why."""
        if not about:
            self._trust.hear_of_revocation()
            return
        try:
            self._trust.take(base64.b64decode(about, validate=True))
        except (binascii.Error, ValueError):
            self._trust.counters["revocation lists refused: cannot be read"] += 1

    # -- for ever ----------------------------------------------------------------------------------------

    async def look_after_files(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self._trust.look()

    async def ask_others(self) -> None:
        while True:
            try:
                async with asyncio.timeout(AGAIN_S if self._wanted else SWEEP_S):
                    await self._news.wait()
            except TimeoutError:
                pass
            self._news.clear()
            await self._ask()
            held = self._held()
            self._wanted = {
                digest: rounds + 1
                for digest, rounds in self._wanted.items()
                if digest not in held and rounds < MAX_ASKED_ROUNDS
            }

    async def _ask(self) -> None:
        own = self._assembly.node.id
        others = [node for node in self._assembly.node.membership.living if node != own]
        if not others:
            return
        asked: list[NodeId] = []
        for _ in range(min(ASKED_AT_ONCE, len(others))):
            self._next = (self._next + 1) % len(others)
            asked.append(others[self._next])
        ranks: _Ranks = {one.authority: one.rank for one in self._trust.revocations.lists}
        about = msgspec.json.encode(ranks).decode()
        asking = [self._assembly.questions.ask([node], ASK, about) for node in asked]
        for answers in asyncio.as_completed(asking):  # one that is gone must not delay the others
            for answer in filter(None, (await answers).values()):
                self._take(answer)

    def _take(self, answer: bytes) -> None:
        try:
            lists = msgspec.msgpack.decode(answer, type=list[bytes])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return
        for der in lists:
            self._trust.take(der)


def last_words(proof: RevocationList) -> bytes:
    """To a node that is on the list: the list itself, or, if that is too long for a datagram, that it is."""
    shown = question(TELL, base64.b64encode(proof.der).decode())
    return shown if len(shown) <= MAX_ALONE_BYTES else question(TELL, "")

"""Spreads lists of revoked certificates from the node that was given one to all others.

A node with a new list posts an announcement, which gossip brings to everybody: the list's digest, nothing
else. A node without that list asks other nodes for newer ones than its own, and checks the signature of each.
Now and then it asks without an announcement, too: so a spoiled announcement costs time, and hides nothing. A
node that is refused because it is revoked gets the list that says so.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from comesh.core.effects import AnnouncementLearned, Observation
from comesh.core.events import AnnouncementPosted
from comesh.core.ids import NodeId
from comesh.queries.answers import Silence
from comesh.queries.node_reads import NewerRevocations, YouAreRevoked
from comesh.queries.peers import Peers, unasked
from comesh.runtime.revocation import RevocationList
from comesh.runtime.transport.frames import MAX_ALONE_BYTES
from comesh.runtime.trust import Trust

KEY: Final = "revoked/"
"""Prefix of the announcements' keys; the digest of a list follows."""
ASKED_AT_ONCE: Final = 3
LOOK_S: Final = 1.0
"""Interval at which files are looked at."""
AGAIN_S: Final = 1.0
"""Time between requests for a list that an announcement names."""
SWEEP_S: Final = 60.0
"""Interval at which others are asked although no announcement names a list."""
MAX_WANTED: Final = 64
"""Digests of lists that are known of and not there."""
MAX_ASKED_ROUNDS: Final = 100
"""Maximum rounds of requests per announcement: after them nobody who answers has the list."""


class RevocationGossip:
    def __init__(
        self,
        trust: Trust,
        peers: Peers,
        others: Callable[[], list[NodeId]],
        post: Callable[[AnnouncementPosted], None],
    ) -> None:
        """others: the other nodes that live. post: has the core gossip an announcement."""
        self._trust = trust
        self._peers = peers
        self._others = others
        self._post = post
        self._wanted: dict[str, int] = {}
        """Digests of lists that announcements tell of, and how often they were asked for."""
        self._news = asyncio.Event()
        self._next = 0
        self._trust.on_revoked.append(self.post)
        self._trust.last_words = last_words

    def post(self) -> None:
        """Tell everybody which lists there are."""
        for one in self._trust.revocations.lists:
            self._post(AnnouncementPosted(key=KEY + one.digest, version=one.number, value=b""))

    def on_observation(self, told: Observation) -> None:
        if isinstance(told, AnnouncementLearned) and told.key.startswith(KEY):
            digest = told.key.removeprefix(KEY)
            if digest not in self._held() and len(self._wanted) < MAX_WANTED:
                self._wanted[digest] = 0
                self._news.set()

    def _held(self) -> set[str]:
        return {one.digest for one in self._trust.revocations.lists}

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
        others = self._others()
        if not others:
            return
        asked: list[NodeId] = []
        for _ in range(min(ASKED_AT_ONCE, len(others))):
            self._next = (self._next + 1) % len(others)
            asked.append(others[self._next])
        read = NewerRevocations(than={one.authority: one.rank for one in self._trust.revocations.lists})
        asking = [self._peers.ask(node, read) for node in asked]
        for told in asyncio.as_completed(asking):  # one that is gone must not delay the others
            lists = await told
            if not isinstance(lists, Silence):
                for der in lists.answer:
                    self._trust.take(der)


def last_words(proof: RevocationList) -> bytes:
    """Returns the last message to a node that is on the list: the list, or a note if it is too long."""
    shown = unasked(YouAreRevoked(proof=proof.der))
    return shown if len(shown) <= MAX_ALONE_BYTES else unasked(YouAreRevoked())

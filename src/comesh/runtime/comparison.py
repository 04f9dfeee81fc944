"""Compares this node with others, for ever: what time it is, and by which document each goes."""

import asyncio
from typing import Final

from comesh.core.ids import NodeId
from comesh.queries.answers import Silence
from comesh.queries.mesh import Mesh
from comesh.queries.node_reads import OwnTime
from comesh.queries.peers import Peers
from comesh.queries.reads import other_document_words
from comesh.queries.view import TimeTold
from comesh.runtime.clock import MeshClock

ASKED_AT_ONCE: Final = 5
EVERY_S: Final = 60.0
SOON_S: Final = 1.0
"""As long as this node does not know the time, or nobody answered yet."""


class Comparison:
    def __init__(self, mesh: Mesh, peers: Peers, clock: MeshClock) -> None:
        self._mesh = mesh
        self._peers = peers
        self._clock = clock
        self._differing: set[NodeId] = set()
        """Nodes that go by another document of the same version."""

    async def go_on(self) -> None:
        """Ask some others, now and then others of them."""
        clock = self._clock
        answered = False
        while True:
            others = self._mesh.others
            first = 0 if len(others) <= ASKED_AT_ONCE else int(clock.monotonic_ms()) % len(others)
            for node in (others + others)[first : first + min(ASKED_AT_ONCE, len(others))]:
                began_ms = clock.monotonic_ms()
                told = await self._peers.ask(node, OwnTime())
                if not isinstance(told, Silence):
                    answered = True
                    self._compare_documents(node, told.answer)
                    took_ms = clock.monotonic_ms() - began_ms
                    clock.heard(node, told.answer.wall_ms, took_ms, valid=told.answer.valid)
            await asyncio.sleep(EVERY_S if clock.valid and answered else SOON_S)

    def _compare_documents(self, node: NodeId, told: TimeTold) -> None:
        """A mesh has one document; a node that began with another would plan other groups."""
        own = self._mesh.view.time_told()
        same_first = told.first in ("", own.first)
        same_now = told.version != own.version or told.document in ("", own.document)
        if same_first and same_now:
            self._differing.discard(node)
        elif node not in self._differing:
            self._differing.add(node)
            self._mesh.view.warn(other_document_words(self._mesh.view.own, sorted(self._differing)))

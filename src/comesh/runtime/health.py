"""What a node says of its machine, and of how it hears each other node: for `comesh doctor`.

The node that is asked asks each other one by itself, and so measures how far their clocks are from its own.
"""

import asyncio
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from comesh import __version__
from comesh.core.ids import NodeId
from comesh.queries.answers import Checked, Hears, MeshHealth, NodeHealth
from comesh.runtime.journal.files import JOURNAL

if TYPE_CHECKING:
    from comesh.runtime.assembly import Assembly

ASK: Final = "health"
"""The question to another node."""
ANSWER_S: Final = 2.0
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class Healths:
    def __init__(self, assembly: "Assembly") -> None:
        self._assembly = assembly

    def own(self) -> NodeHealth:
        assembly = self._assembly
        node, options, credentials = assembly.node, assembly.options, assembly.credentials
        disk = shutil.disk_usage(options.data)
        return NodeHealth(
            node=node.id,
            software=__version__,
            version=node.deployment,
            document=assembly.document_digest,
            machine_wall_ms=assembly.machine_clock.wall_ms(),
            clock_source=assembly.clock.source,
            listens=assembly.transport.listens,
            certificate_ends_ms=1000.0 * credentials.certificate.not_valid_after_utc.timestamp(),
            authority_ends_ms=1000.0 * credentials.authorities[0].not_valid_after_utc.timestamp(),
            data=str(options.data.absolute()),
            data_free_bytes=disk.free,
            data_disk_bytes=disk.total,
            journal_bytes=_size(options.data / JOURNAL),
            memory_kb=resident_kb(),
            memory_free_kb=_available_kb(),
            hears=self._hears(),
        )

    def _hears(self) -> dict[NodeId, Hears]:
        assembly = self._assembly
        membership, peers = assembly.node.membership, assembly.transport.peers()
        living = set(membership.living)
        found: dict[NodeId, Hears] = {}
        for other in sorted(assembly.deployment.nodes.keys() - {assembly.node.id}):
            peer = peers.get(other)
            found[other] = Hears(
                living=other in living,
                connected=peer is not None and peer.connected,
                address="" if peer is None else peer.address,
                round_trip_ms=membership.round_trip_ms(other),
                why="" if peer is None else peer.why,
            )
        return found

    async def mesh(self) -> MeshHealth:
        """Of all nodes, each asked by itself."""
        assembly = self._assembly
        own, living = assembly.node.id, set(assembly.node.membership.living)
        others = sorted(assembly.deployment.nodes.keys() - {own})
        asked = await asyncio.gather(*(self._ask(node) for node in others if node in living))
        found: dict[NodeId, Checked | None] = dict.fromkeys(sorted(assembly.deployment.nodes))
        found[own] = Checked(said=self.own(), offset_ms=0.0, within_ms=0.0)
        found |= {one.said.node: one for one in asked if one is not None}
        silent = {node: assembly.inquiries.why_silent(node) for node, one in found.items() if one is None}
        return MeshHealth(asked=own, as_of_ms=assembly.clock.wall_ms(), nodes=found, silent=silent)

    async def _ask(self, node: NodeId) -> Checked | None:
        clock = self._assembly.machine_clock
        began_ms = clock.monotonic_ms()
        answer = (await self._assembly.questions.ask([node], ASK, within_s=ANSWER_S))[node]
        took_ms = clock.monotonic_ms() - began_ms
        try:
            said = None if answer is None else msgspec.json.decode(answer, type=NodeHealth | None)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if said is None or said.node != node:
            return None  # it is of a version that does not know the question
        offset_ms = said.machine_wall_ms + took_ms / 2 - clock.wall_ms()
        return Checked(said=said, offset_ms=offset_ms, within_ms=took_ms / 2)


def resident_kb() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES // 1024


def _available_kb() -> int:
    """0: the system does not say."""
    with open("/proc/meminfo", "rb") as file:
        for line in file:
            if line.startswith(b"MemAvailable:"):
                return int(line.split()[1])
    return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

"""What a node without a journal asks before it begins: by which chain of documents does this mesh run?

The file that it was started with may be the newest document, or the first one, or any: only the others know
what was planned upon what. They are asked for a while; if nobody answers, the node begins with what it has,
as after an outage of all, and asks again when it next starts, unless it took part in the mesh meanwhile.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from comesh import __version__
from comesh.core.ids import NodeId
from comesh.queries.answers import Fresh, Silence
from comesh.queries.node_reads import OwnChain
from comesh.queries.peers import Answers, Peers
from comesh.runtime.clock import Clock
from comesh.runtime.documents import Chain, DocumentError, Documents, parsed
from comesh.runtime.journal.files import JOURNAL
from comesh.runtime.transport.udp import UdpTransport

WITHIN_S: Final = 5.0
"""How long the others are asked in all."""
ROUND_S: Final = 1.0
UNTOLD: Final = "untold"
"""The file in the data directory of a node that began without an answer, and was not ready since."""


def should_ask(data: Path, *, initialise: bool) -> bool:
    """It has no journal, or none of a time in which it was told; and it does not begin the mesh."""
    return not initialise and (not (data / JOURNAL).exists() or (data / UNTOLD).exists())


async def chain_of_others(
    make_transport: Callable[[], UdpTransport], clock: Clock, own: Documents, name: NodeId, data: Path
) -> Chain:
    """The chain of the first other node that answers; the own one, if nobody does."""
    others = [node for node in own.deployment.nodes if node != name]
    if not others:
        return own.chain()
    transport = make_transport()
    peers = Peers(transport.send, Answers(lambda read: None, clock.wall_ms, __version__), clock.monotonic_ms)

    def deliver(sender: NodeId, message: bytes) -> None:
        peers.on_frame(sender, message)

    await transport.open(deliver)
    try:
        found = await _asked(peers, others, own.chain(), name)
    finally:
        await transport.close()
    if found is None:
        (data / UNTOLD).touch()
        return own.chain()
    took_part(data)
    return found


def took_part(data: Path) -> None:
    """What it goes by is what the mesh goes by."""
    (data / UNTOLD).unlink(missing_ok=True)


async def _asked(peers: Peers, others: list[NodeId], own: Chain, name: NodeId) -> Chain | None:
    for _ in range(int(WITHIN_S / ROUND_S)):
        asking = [asyncio.ensure_future(peers.ask(one, OwnChain(), within_s=ROUND_S)) for one in others]
        try:
            for told in asyncio.as_completed(asking):
                found = _chain(await told)
                if found is not None and name in parsed(found.text, "another node").nodes:
                    return own if own.extends(found) else found
        finally:
            for task in asking:
                task.cancel()
    return None


def _chain(told: Fresh[str] | Silence) -> Chain | None:
    """None: it has said nothing, or nothing of use, as a node of another version does."""
    if isinstance(told, Silence):
        return None
    try:
        return Chain.load(told.answer, "another node")
    except DocumentError:
        return None

"""What a node without a journal asks before it begins: by which chain of documents does this mesh run?

The file that it was started with may be the newest document, or the first one, or any: only the others know
what was planned upon what. They are asked for a while; if nobody answers, the node begins with what it has,
as after an outage of all, and asks again when it next starts, unless it took part in the mesh meanwhile.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from comesh.core.ids import NodeId
from comesh.runtime.documents import Chain, DocumentError, parsed
from comesh.runtime.journal.files import JOURNAL
from comesh.runtime.questions import Questions

if TYPE_CHECKING:
    from comesh.runtime.assembly import Assembly

ASK: Final = "chain"
WITHIN_S: Final = 5.0
"""How long the others are asked in all."""
ROUND_S: Final = 1.0
UNTOLD: Final = "untold"
"""The file in the data directory of a node that began without an answer, and was not ready since."""


def should_ask(assembly: "Assembly") -> bool:
    """It has no journal, or none of a time in which it was told."""
    data = assembly.options.data
    untold = not (data / JOURNAL).exists() or (data / UNTOLD).exists()
    return untold and not assembly.options.initialise


async def chain_of_others(assembly: "Assembly", own: Chain) -> Chain:
    """The chain of the first other node that answers; the own one, if nobody does."""
    name = assembly.options.name
    others = [node for node in assembly.deployment.nodes if node != name]
    if not others:
        return own
    found = await _ask(assembly, others, own, name)
    if found is None:
        (assembly.options.data / UNTOLD).touch()
        return own
    took_part(assembly)
    return found


def took_part(assembly: "Assembly") -> None:
    """What it goes by is what the mesh goes by."""
    (assembly.options.data / UNTOLD).unlink(missing_ok=True)


async def _ask(assembly: "Assembly", others: list[NodeId], own: Chain, name: NodeId) -> Chain | None:
    transport = assembly.make_transport()
    questions = Questions(transport.send, lambda ask, about: b"null", assembly.clock.monotonic_ms)

    def deliver(sender: NodeId, message: bytes) -> None:
        questions.on_frame(sender, message)

    await transport.open(deliver)
    try:
        return await _asked(questions, others, own, name)
    finally:
        await transport.close()


async def _asked(questions: Questions, others: list[NodeId], own: Chain, name: NodeId) -> Chain | None:
    for _ in range(int(WITHIN_S / ROUND_S)):
        asking = [asyncio.ensure_future(questions.ask([one], ASK, within_s=ROUND_S)) for one in others]
        try:
            for done in asyncio.as_completed(asking):
                for answer in (await done).values():
                    found = _chain(answer)
                    if found is not None and name in parsed(found.text, "another node").nodes:
                        return own if own.extends(found) else found
        finally:
            for task in asking:
                task.cancel()
    return None


def _chain(answer: bytes | None) -> Chain | None:
    """None: it has said nothing, or nothing of use, as a node of an older version does."""
    if answer is None or answer == b"null":
        return None
    try:
        return Chain.load(answer.decode(), "another node")
    except (DocumentError, UnicodeDecodeError):
        return None

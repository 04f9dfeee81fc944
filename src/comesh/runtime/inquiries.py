"""Answers what people and other nodes ask a node: how it and the mesh are, what a run did; fires routines."""

import asyncio
import os
import resource
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from comesh import __version__
from comesh.core.events import FireAsked
from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.deployment.problems import did_you_mean
from comesh.queries.answers import FIRE_WAIT_S, Fired, Mesh, News, NodeStatus
from comesh.runtime import applying, entities, health, operations
from comesh.runtime.health import resident_kb
from comesh.runtime.questions import WATCH_MS, decoded
from comesh.runtime.reading import NotReachedError, Reading, UnknownError
from comesh.runtime.virtual_input import touch

if TYPE_CHECKING:
    from comesh.runtime.assembly import Assembly

MAX_NEWS_WAITING: Final = 1000
"""Of one watcher that does not read; the oldest are dropped."""
CLOCKS_ASKED: Final = 5
CLOCKS_EVERY_S: Final = 60.0
CLOCKS_SOON_S: Final = 1.0

KNOWN: Final = (
    "this node knows the questions status, mesh, doctor, names, nodes, node, groups, group, devices, device, "
    "routines, routine, runs, run, fire, watch, pause, resume, maintain, set, unlock, audit, "
    "versions, version, chain, preview, apply, reach, recover"
)


class Said(msgspec.Struct, frozen=True, array_like=True):
    """What time it is, valid: by the node's own clock; and by which document the node goes."""

    wall_ms: float
    valid: bool
    version: int = 0
    document: str = ""
    """The digest of the deployment with this version."""
    first: str = ""
    """The digest of the deployment with version 1: everything is planned upon it."""


class Inquiries:
    def __init__(self, assembly: "Assembly") -> None:
        self._assembly = assembly
        self.entities = entities.Entities(assembly)
        self.reading = Reading(assembly, self.entities)
        self.operations = operations.Operations(assembly)
        self.health = health.Healths(assembly)
        self.applying = applying.Applying(assembly)
        self._differing: set[NodeId] = set()
        """Nodes that go by another document of the same version."""

    # -- of other nodes ----------------------------------------------------------------------------------

    def answer_peer(self, ask: str, about: str) -> bytes:
        view = self._assembly.view
        match ask:
            case "status":
                return msgspec.json.encode(self.status())
            case "trace":
                return msgspec.json.encode(view.trace(about))
            case "runs":
                return msgspec.json.encode(view.runs())
            case entities.ASK:
                return self.entities.answer_peer(about)
            case operations.AUDIT:
                return self.operations.answer_peer()
            case _ if ask in applying.PEER_ASKS:
                return self.applying.answer_peer(ask)
            case health.ASK:
                return msgspec.json.encode(self.health.own())
            case "clock":
                clock = self._assembly.clock
                version, document = self._assembly.node.deployment, self._assembly.document_digest
                first = self._assembly.first_digest
                return msgspec.json.encode(Said(clock.wall_ms(), clock.valid, version, document, first))
            case _:
                return b"null"

    async def compare_clocks(self) -> None:
        """Ask some others what time it is and by which document they go, for ever: often as long as this
        node does not know the time, or nobody answered yet."""
        clock = self._assembly.clock
        answered = False
        while True:
            others = self._others()
            first = 0 if len(others) <= CLOCKS_ASKED else int(clock.monotonic_ms()) % len(others)
            for node in (others + others)[first : first + min(CLOCKS_ASKED, len(others))]:
                began_ms = clock.monotonic_ms()
                answer = (await self._assembly.questions.ask([node], "clock"))[node]
                said = decoded(answer, Said)
                if said is not None:
                    answered = True
                    self._compare_documents(node, said)
                    took_ms = clock.monotonic_ms() - began_ms
                    clock.heard(node, said.wall_ms, took_ms, valid=said.valid)
            await asyncio.sleep(CLOCKS_EVERY_S if clock.valid and answered else CLOCKS_SOON_S)

    def _compare_documents(self, node: NodeId, said: Said) -> None:
        """A mesh has one document; who began with another would plan other groups."""
        assembly = self._assembly
        same_first = said.first in ("", assembly.first_digest)
        same_now = said.version != assembly.node.deployment or said.document in ("", assembly.document_digest)
        if same_first and same_now:
            self._differing.discard(node)
        elif node not in self._differing:
            self._differing.add(node)
            assembly.log.warn(self.other_documents())

    def other_documents(self) -> str:
        """What to do about nodes that go by another document; empty: none is known."""
        return other_document_words(self._assembly.node.id, sorted(self._differing))

    # -- of people ---------------------------------------------------------------------------------------

    async def answer(self, asked: dict[str, Any]) -> object:
        match asked:
            case {"ask": "status"}:
                return self.status()
            case {"ask": "mesh"}:
                return await self._mesh()
            case {"ask": "doctor"}:
                return await self.health.mesh()
            case {"ask": "fire", "routine": str(routine)}:
                return await self._fire(RoutineId(routine), asked.get("request"), str(asked.get("by", "")))
            case {"ask": "audit"}:
                return await self.operations.audit()
            case {"ask": str(ask)} if ask in operations.ASKS:
                try:
                    return await self.operations.answer(asked)
                except (UnknownError, ValueError) as wrong:
                    return operations.in_words(wrong)
            case {"ask": str(ask)} if ask in applying.ASKS:
                try:
                    return await self.applying.answer(asked)
                except (UnknownError, NotReachedError, ValueError) as wrong:
                    return {"error": str(wrong), "no": True}
            case {"ask": "device", "device": str(device), "be": str(be)}:
                return self._misbehave(DeviceId(device), be, asked.get("ms", 0.0))
            case {"ask": "device", "device": str(), "readings": dict()}:
                return await touch(self._assembly, asked)
            case {"ask": "device", "device": str(), "press": dict()}:
                return await touch(self._assembly, asked)
            case _:
                return await self._read(asked)

    async def _read(self, asked: dict[str, Any]) -> object:
        """no True: the question was understood, and there is no such thing, or it is not reached."""
        try:
            answer = await self.reading.answer(asked)
        except (UnknownError, NotReachedError) as wrong:
            return {"error": str(wrong), "no": True}
        return {"error": KNOWN} if answer is None else answer

    async def stream(self, asked: dict[str, Any]) -> AsyncIterator[object]:
        """News of the whole mesh; who does not read loses the oldest."""
        waiting: asyncio.Queue[News] = asyncio.Queue(MAX_NEWS_WAITING)

        def take(news: News) -> None:
            if waiting.full():
                waiting.get_nowait()
            waiting.put_nowait(news)

        assembly = self._assembly
        assembly.view.watchers.append(take)
        assembly.questions.on_news.append(take)
        try:
            while True:
                assembly.questions.ask_for_news(self._others())
                ends = asyncio.get_running_loop().time() + WATCH_MS / 2000
                while (left := ends - asyncio.get_running_loop().time()) > 0:
                    try:
                        yield await asyncio.wait_for(waiting.get(), left)
                    except TimeoutError:
                        break
        finally:
            assembly.view.watchers.remove(take)
            assembly.questions.on_news.remove(take)

    def status(self) -> NodeStatus:
        assembly = self._assembly
        view, node = assembly.view, assembly.node
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return NodeStatus(
            node=node.id,
            software=__version__,
            pid=os.getpid(),
            wall_ms=assembly.clock.wall_ms(),
            boot=assembly.journal.boot,
            deployment=assembly.deployment.name or "",
            version=node.deployment,
            ready=view.ready,
            joined=node.membership.joined,
            document=assembly.document_digest,
            trouble=assembly.trouble(),
            living=node.membership.living,
            groups=view.groups(),
            devices=view.devices(),
            routines=view.routines(),
            memory_kb=resident_kb(),
            cpu_s=usage.ru_utime + usage.ru_stime,
            counters={
                **assembly.transport.counters,
                **assembly.host.counters,
                **assembly.devices.traffic(),
                **view.refused,
            },
        )

    async def _mesh(self) -> Mesh:
        own = self._assembly.node.id
        answers = await self._assembly.questions.ask(self._others(), "status")
        nodes: dict[NodeId, NodeStatus | None] = {own: self.status()}
        silent: dict[NodeId, str] = {}
        for node in self._assembly.deployment.nodes.keys() - {own}:
            answer = answers.get(node)
            status = nodes[node] = decoded(answer, NodeStatus)
            if status is None:
                silent[node] = self.why_silent(node) if answer is None else "answers in another version"
        nodes = dict(sorted(nodes.items()))
        statuses = [one for one in nodes.values() if one is not None]
        unreached = [f"{node}: {why}" for node, why in self.unreached().items() if node in silent]
        return Mesh(
            asked=own, nodes=nodes, silent=silent, trouble=(*unreached, *_odd_documents(own, statuses))
        )

    def why_silent(self, node: NodeId) -> str:
        """Of a node that said nothing."""
        membership = self._assembly.node.membership
        if node in membership.living:
            return "no answer"
        return "dead" if membership.is_dead(node) else "never heard of"

    def unreached(self) -> dict[NodeId, str]:
        """Nodes that this one has no way to, and why."""
        peers = self._assembly.transport.peers()
        return {node: peer.why for node, peer in sorted(peers.items()) if not peer.connected}

    async def _fire(self, routine: RoutineId, request: object, by: str) -> Fired:
        assembly = self._assembly
        known = assembly.deployment.routines
        if routine not in known:
            hint = did_you_mean(routine, known)
            return Fired(run=None, why_not=f"there is no routine {routine!r}" + (f"; {hint}" if hint else ""))
        if not isinstance(request, str):
            request = self.operations.new_request()
        told = await self.operations.ask(FireAsked(routine=routine, request=request, by=by), FIRE_WAIT_S)
        if told is None:
            return Fired(run=None, why_not=f"no answer within {FIRE_WAIT_S:.0f} s; is its group served?")
        return Fired(run=None if told.run is None else str(told.run), why_not=told.why_not)

    def _misbehave(self, device: DeviceId, be: str, ms: object) -> object:
        try:
            self._assembly.devices.set_fault(device, be, float(ms) if isinstance(ms, int | float) else 0.0)
        except (KeyError, ValueError) as wrong:
            return {"error": str(wrong)}
        return {"device": device, "be": be}

    def _others(self) -> list[NodeId]:
        own = self._assembly.node.id
        return [node for node in self._assembly.node.membership.living if node != own]


def other_document_words(own: NodeId, others: list[NodeId]) -> str:
    if not others:
        return ""
    names = ", ".join(others)
    return (
        f"{names} began with another document than {own}. A mesh has one: compare deployment-1.yaml in their "
        "data directories. Which one do most nodes have? Stop the few others, remove the data directories of "
        "these only, and start them again"
    )


def _odd_documents(own: NodeId, statuses: Sequence[NodeStatus]) -> tuple[str, ...]:
    """Of nodes that are at one version: who goes by another document than most, or than the one asked."""
    found: list[str] = []
    for version in sorted({one.version for one in statuses}):
        same = [one for one in statuses if one.version == version]
        counts = Counter(one.document for one in same)
        asked = next((one.document for one in same if one.node == own), "")
        usual = max(sorted(counts), key=lambda document: (counts[document], document == asked))
        odd = [one.node for one in same if one.document != usual]
        if odd:
            with_usual = next(one.node for one in same if one.document == usual)
            found.append(other_document_words(with_usual, odd))
    return tuple(found)

"""How people change the document of a mesh that runs: versions, what a new one would mean, applying it, and
having a member of a lost group go on alone.

The group `deployment` decides which version follows which; every node has the texts. What a node says of who
applied what, it asks of the leader of that group; which group works by which version is in the directory.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from comesh.core.events import ApplyAsked, RecoverAsked
from comesh.core.ids import GroupId, NodeId
from comesh.core.orders.part import PAUSED
from comesh.core.plan import DEPLOYMENT
from comesh.core.program import Program
from comesh.core.records import VersionRecord
from comesh.core.work_messages import Reach, Remember
from comesh.deployment.changes import Orders, changes, consequences
from comesh.queries.answers import (
    ApplyDone,
    ChainText,
    DeviceSeen,
    Preview,
    Reaching,
    Recovered,
    RoutineSeen,
    Versions,
    VersionSeen,
    VersionText,
)
from comesh.runtime.documents import Compiler
from comesh.runtime.entities import Known
from comesh.runtime.operations import WAIT_S
from comesh.runtime.reading import NotReachedError, UnknownError, unknown

if TYPE_CHECKING:
    from comesh.runtime.assembly import Assembly

ASKS: Final = ("versions", "version", "chain", "preview", "apply", "reach", "recover")
PEER_ASKS: Final = ("versions", "chain")
MAX_VERSION: Final = 1_000_000_000
"""No mesh is changed so often."""
RECOVER_S: Final = 30.0
"""How long a member that goes on alone may take until it serves."""
LEARN_S: Final = 5.0
"""How long a node that had a version applied waits to have it itself."""
LOOK_S: Final = 0.05
MAX_READ: Final = 4
"""Documents that wait to be compared: each takes the processor from the node for a while."""


class Applying:
    def __init__(self, assembly: "Assembly") -> None:
        self._assembly = assembly
        self._reaching: dict[GroupId, asyncio.Task[None]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._compared: set[asyncio.Task[Preview]] = set()

    async def answer(self, asked: Mapping[str, Any]) -> object:
        """A question of the control socket or of HTTP. UnknownError, ValueError: what is wrong."""
        by = str(asked.get("by") or "somebody")
        match asked:
            case {"ask": "versions"}:
                return await self.versions()
            case {"ask": "version", "version": int(number)}:
                return self.text(number)
            case {"ask": "chain"}:
                return self.chain()
            case {"ask": "preview", "text": str(text)}:
                return await self.preview(text)
            case {"ask": "apply", "base": int(base), "text": str(text)}:
                request = str(asked.get("request") or self._assembly.inquiries.operations.new_request())
                return await self.apply(base, text, request=request, by=by, why=str(asked.get("why") or ""))
            case {"ask": "reach", "version": int(number)}:
                return self.reach(number, by)
            case {"ask": "recover", "group": str(group)}:
                return await self.recover(group, by)
            case _:
                raise ValueError("such a question needs more: a version, or the text of a document")

    # -- versions ----------------------------------------------------------------------------------------

    def answer_peer(self, ask: str) -> bytes:
        if ask == "chain":
            return self._assembly.chain().dump().encode()
        return msgspec.json.encode(self._own_records())

    def _own_records(self) -> tuple[VersionRecord, ...] | None:
        """Who applied what, if this node leads the group that knows."""
        groups = self._assembly.node.groups
        serving = None if groups is None else groups.serving(DEPLOYMENT)
        return None if serving is None else tuple(serving.all(VersionRecord))

    async def _records(self) -> tuple[VersionRecord, ...] | None:
        """None: nobody who leads the group `deployment` is reached."""
        own = self._own_records()
        if own is not None:
            return own
        seen = self._assembly.inquiries.entities.directory()[DEPLOYMENT]
        others = [node for node in (seen.leader, *seen.members) if node not in (None, self._assembly.node.id)]
        for node in dict.fromkeys(others):
            assert node is not None
            answer = (await self._assembly.questions.ask([node], "versions"))[node]
            found = None if answer is None else _records(answer)
            if found is not None:
                return found
        return None

    async def versions(self) -> Versions:
        records = await self._records()
        known = {one.version: one for one in records or ()}
        groups = Counter(one.version for one in self._assembly.inquiries.entities.directory().values())
        newest = self._newest.version
        return Versions(
            answered_by=self._assembly.node.id,
            newest=newest,
            reached=records is not None,
            versions=tuple(
                VersionSeen(
                    version=number,
                    at_ms=known[number].at_ms if number in known else None,
                    by=known[number].by if number in known else "",
                    why=known[number].why if number in known else "",
                    groups=groups[number],
                )
                for number in range(newest, 0, -1)
            ),
        )

    def text(self, number: int) -> VersionText:
        texts = self._assembly.chain().texts
        if number not in texts:
            raise UnknownError(
                f"there is no version {number} here; {self._assembly.node.id} is at {max(texts)}"
            )
        return VersionText(version=number, text=texts[number])

    def chain(self) -> ChainText:
        chain = self._assembly.chain()
        return ChainText(newest=chain.newest, chain=chain.dump())

    # -- a new one ---------------------------------------------------------------------------------------

    @property
    def _newest(self) -> Program:
        groups = self._assembly.node.groups
        assert groups is not None
        return groups.versions.newest

    async def preview(self, text: str) -> Preview:
        """NotReachedError: too many others want that now."""
        if len(self._compared) >= MAX_READ:
            raise NotReachedError(f"{MAX_READ} documents are being compared here already; ask again")
        task = asyncio.create_task(self._compare_with_orders(text))
        self._compared.add(task)
        task.add_done_callback(self._compared.discard)
        return await asyncio.shield(task)  # a thread cannot be stopped: its place is taken until it ends

    async def _compare_with_orders(self, text: str) -> Preview:
        return await self._compare(text, await self._orders())

    async def _orders(self) -> Orders:
        """What is paused and maintained: of all groups that are reached."""
        entities, groups = self._assembly.inquiries.entities, self._assembly.node.groups
        routines, devices = await entities.survey("routine"), await entities.survey("device")
        announcement = None if groups is None else groups.announcement(PAUSED)
        all_paused = announcement is not None and bool(announcement.value)  # whatever is new will be, too
        return Orders(paused={} if all_paused else _orders(routines), maintained=_orders(devices))

    async def _compare(self, text: str, orders: Orders | None = None) -> Preview:
        """Beside the loop, for reading a document takes longer than a lease may wait for; and one at a time,
        for many threads would leave the loop little of the processor."""
        async with self._one_at_a_time:
            return await asyncio.to_thread(_preview, self._assembly.compiler, self._newest, text, orders)

    async def apply(self, base: int, text: str, *, request: str, by: str, why: str) -> ApplyDone:
        newest = self._newest
        if not 0 < base <= MAX_VERSION:
            raise ValueError(f"there is no version {base} that something could follow")
        if base == newest.version:
            preview = await self._compare(text)
            if preview.problems:
                why_not = "the document cannot be used"
                return ApplyDone(request=request, version=None, why_not=why_not, problems=preview.problems)
        missing = self._no_quorum()
        if missing:
            return ApplyDone(request=request, version=None, why_not=missing, newest=newest.version)
        event = ApplyAsked(base=base, text=text, request=request, by=by, why=why)
        told = await self._assembly.inquiries.operations.ask(event)
        if told is None:
            why_not = (
                f"the group deployment did not answer within {WAIT_S:.0f} s. Nothing can be applied where "
                "its quorum is not reached: `comesh status` says who is missing. If it is back within half a "
                "minute the version may still be applied: `comesh versions` will say"
            )
            return ApplyDone(
                request=request, version=None, why_not=why_not, newest=newest.version, unanswered=True
            )
        if told.why_not:
            at = told.version or newest.version
            stale = at != base
            return ApplyDone(request=request, version=None, why_not=told.why_not, newest=at, stale=stale)
        version = told.version or 0
        await self._becomes(lambda: self._newest.version >= version, LEARN_S)
        return ApplyDone(request=request, version=version)

    def _no_quorum(self) -> str:
        """Why nothing can be applied from here; empty: it may be."""
        seen = self._assembly.inquiries.entities.directory()[DEPLOYMENT]
        living = {*self._assembly.node.membership.living, self._assembly.node.id}
        lost = [node for node in seen.members if node not in living]
        if not seen.number or seen.leader in living or len(lost) <= len(seen.members) // 2:
            return ""
        return (
            f"{self._assembly.node.id} does not reach a quorum of the group deployment ("
            f"{', '.join(seen.members)}): {', '.join(lost)} {'is' if len(lost) == 1 else 'are'} not there. A "
            "version is applied on the side that has most of them, or when they are back. If they are lost "
            "for good: docs/changes.md, `comesh recover`"
        )

    # -- at once -----------------------------------------------------------------------------------------

    def reach(self, number: int, by: str) -> Reaching:
        """Have every group that works by an older version hand off now; each is asked until it does."""
        behind = [
            group
            for group, seen in self._assembly.inquiries.entities.directory().items()
            if seen.version < number
        ]
        for group in behind:
            if group not in self._reaching:
                self._reaching[group] = asyncio.create_task(self._reach(group, number, by))
        return Reaching(version=number, groups=tuple(behind))

    async def _reach(self, group: GroupId, number: int, by: str) -> None:
        operations = self._assembly.inquiries.operations
        try:
            await operations.order(group, Reach(number), operations.new_request(), by)
        finally:
            del self._reaching[group]

    # -- recovery ----------------------------------------------------------------------------------------

    async def recover(self, name: str, by: str) -> Recovered:
        """Go on alone with a group whose quorum is lost for good, from what this node has."""
        assembly = self._assembly
        directory = assembly.inquiries.entities.directory()
        if name not in directory:
            raise unknown("group", name, directory)
        group = GroupId(name)
        seen = directory[group]
        if not seen.role:
            why = f"{assembly.node.id} has no seat in {group}: ask one of {', '.join(seen.members)}"
            return Recovered(group=group, why_not=why)
        if self._quorum_lives(group):
            why = f"a quorum of {group} lives ({', '.join(seen.members)}): it needs no recovery"
            return Recovered(group=group, why_not=why)
        assembly.log.warn(f"{group}: {by} has {assembly.node.id} go on alone")
        # Whoever led it gives up first, if that was this node.
        if await self._becomes(lambda: self._leader(group) is None, RECOVER_S):
            if self._quorum_lives(group):
                why = f"a quorum of {group} is back meanwhile: it needs no recovery"
                return Recovered(group=group, why_not=why)
            assembly.host.give(RecoverAsked(group=group, by=by))
            if await self._becomes(lambda: self._leader(group) is not None, RECOVER_S):
                return await self._remember(group, by)
        why = f"{group} is not served after {RECOVER_S:.0f} s; the log of {assembly.node.id} may say why"
        return Recovered(group=group, why_not=why)

    def _quorum_lives(self, group: GroupId) -> bool:
        living = {*self._assembly.node.membership.living, self._assembly.node.id}
        members = self._assembly.inquiries.entities.directory()[group].members
        return sum(node in living for node in members) > len(members) // 2

    def _leader(self, group: GroupId) -> NodeId | None:
        return self._assembly.inquiries.entities.directory()[group].leader

    async def _becomes(self, condition: Callable[[], bool], within_s: float) -> bool:
        for _ in range(int(within_s / LOOK_S)):
            if condition():
                return True
            await asyncio.sleep(LOOK_S)
        return False

    async def _remember(self, group: GroupId, by: str) -> Recovered:
        operations = self._assembly.inquiries.operations
        what = f"recover: {self._assembly.node.id} goes on alone"
        done = await operations.order(group, Remember(what), operations.new_request(), by)
        return Recovered(group=group, why_not=done.why_not)


def _records(answer: bytes) -> tuple[VersionRecord, ...] | None:
    try:
        return msgspec.json.decode(answer, type=tuple[VersionRecord, ...] | None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _orders(found: Mapping[str, Known | None]) -> dict[str, str | None]:
    """Who ordered it, of those that are paused or maintained; None: it was not reached."""
    orders: dict[str, str | None] = {}
    for name, known in found.items():
        match None if known is None or not known.reached else known.entity:
            case RoutineSeen(paused_by=by) | DeviceSeen(maintained_by=by):
                if by is not None:
                    orders[name] = by
            case _:
                orders[name] = None
    return orders


def _preview(compiler: Compiler, base: Program, text: str, orders: Orders | None) -> Preview:
    try:
        program = compiler(text, base.version + 1, base)
    except ValueError as wrong:
        return Preview(base=base.version, problems=tuple(str(wrong).splitlines()))
    found = changes(compiler.deployment(base.text), compiler.deployment(text))
    return Preview(base=base.version, changes=found, means=consequences(base, program, found, orders))

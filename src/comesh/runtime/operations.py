"""What people have a mesh do: pause, maintenance, commands by hand, broken locks; and who did what.

Each is an order to the group that looks after the device or routine, wherever it is led; a pause of
everything is one to every group. The same request is carried out once. What is not answered in time may
still be carried out: who asks again with the same request is told the same.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from comesh.core.effects import Answered
from comesh.core.events import ApplyAsked, FireAsked, OrderAsked
from comesh.core.group.post import MAX_REQUESTS
from comesh.core.ids import DeviceId, GroupId, RoutineId
from comesh.core.plan import DEPLOYMENT
from comesh.core.values import Value
from comesh.core.work_messages import BreakLock, Maintain, Pause, Restore, Resume, SetDevice, Wish
from comesh.deployment.model import Deployment
from comesh.deployment.program import step_by_hand
from comesh.queries.answers import Audit, AuditSeen, Done
from comesh.runtime.questions import decoded
from comesh.runtime.reading import UnknownError, unknown
from comesh.runtime.virtual_input import parse_value

if TYPE_CHECKING:
    from comesh.runtime.assembly import Assembly

WAIT_S: Final = 35.0
"""How long a person waits for the answer of a group."""
ASKS: Final = ("pause", "resume", "maintain", "set", "unlock")
MAX_AT_ONCE: Final = MAX_REQUESTS // 2
"""Groups that one order to all asks at once: the core takes no more requests than it has places for."""
MAX_REQUEST: Final = 256
"""Characters of an id, which groups keep in their logs; with the name of a group in an order to all."""
IN_USE: Final = "the request id is in use for another order that waits here; take another one"
AUDIT: Final = "audit"
"""The question to another node for the logs of the groups that it serves."""

Request = FireAsked | ApplyAsked | OrderAsked
Logs = tuple[AuditSeen, ...]


class OwnLogs(msgspec.Struct, frozen=True):
    """The groups that a node serves, and their logs."""

    groups: tuple[GroupId, ...]
    logs: Logs


class Operations:
    def __init__(self, assembly: "Assembly") -> None:
        self._assembly = assembly
        self._requests = 0
        self._open: dict[str, Request] = {}
        """What waits for an answer, by its request id: two must not take each other's."""

    # -- questions of people -----------------------------------------------------------------------------

    async def answer(self, asked: Mapping[str, Any]) -> Done | Audit:
        """A question of the control socket or of HTTP. UnknownError, ValueError: in words what is wrong."""
        request = asked.get("request")
        if not isinstance(request, str):
            request = self.new_request()
        by = str(asked.get("by") or "somebody")
        match asked:
            case {"ask": "pause" | "resume" as ask, "routine": str(routine)}:
                group = self._group_of("routine", routine)
                kind = Pause if ask == "pause" else Resume
                return await self.order(group, kind(RoutineId(routine)), request, by)
            case {"ask": "pause" | "resume" as ask}:
                return await self._order_all(Pause(None) if ask == "pause" else Resume(None), request, by)
            case {"ask": "maintain", "device": str(device), "on": bool(on)}:
                group = self._group_of("device", device)
                maintain = Maintain(DeviceId(device)) if on else Restore(DeviceId(device))
                return await self.order(group, maintain, request, by)
            case {"ask": "set", "device": str(device), "command": str(command)}:
                return await self._set(DeviceId(device), command, asked.get("argument"), request, by)
            case {"ask": "unlock", "device": str(device)}:
                return await self._unlock(DeviceId(device), asked.get("run"), request, by)
            case {"ask": "audit"}:
                return await self.audit()
            case _:
                raise ValueError("an order names what it is about: a device, a routine, or nothing for all")

    async def _set(
        self, device: DeviceId, command: str, argument: Value | None, request: str, by: str
    ) -> Done:
        group = self._group_of("device", device)
        deployment = self._assembly.deployment
        step = step_by_hand(deployment, device, command, argument_of(deployment, device, command, argument))
        wish = SetDevice(device, step.action)
        return await self.order(group, wish, request, by)

    async def _unlock(self, device: DeviceId, run: object, request: str, by: str) -> Done:
        """run: the holder that is meant, as people write it; None: whoever it is."""
        group = self._group_of("device", device)
        wish = BreakLock(device, run if isinstance(run, str) else None)
        return await self.order(group, wish, request, by)

    def _group_of(self, kind: str, name: str) -> GroupId:
        names = self._assembly.inquiries.entities.names(kind)
        if name not in names:
            raise unknown(kind, name, names)
        return names[name]

    # -- orders ------------------------------------------------------------------------------------------

    def new_request(self) -> str:
        self._requests += 1
        return f"{self._assembly.node.id}.{self._assembly.journal.boot}.o{self._requests}"

    async def order(self, group: GroupId, wish: Wish, request: str, by: str) -> Done:
        told = await self.ask(OrderAsked(group=group, request=request, by=by, wish=wish))
        if told is None:
            why = f"{group} did not answer within {WAIT_S:.0f} s; is it served? `comesh status` says"
            return Done(request=request, why_not=why, unanswered=True)
        return Done(request=request, run=None if told.run is None else str(told.run), why_not=told.why_not)

    async def _order_all(self, wish: Wish, request: str, by: str) -> Done:
        names = self._assembly.inquiries.entities.names("group")
        groups = [GroupId(one) for one in names if one != DEPLOYMENT]
        at_once = asyncio.Semaphore(MAX_AT_ONCE)

        async def one_order(group: GroupId) -> Done:
            async with at_once:
                return await self.order(group, wish, f"{request}/{group}", by)

        done = dict(zip(groups, await asyncio.gather(*map(one_order, groups)), strict=True))
        failed = {group: one.why_not for group, one in done.items() if one.why_not}
        why_not = f"{len(failed)} of {len(groups)} groups did not" if failed else ""
        unanswered = any(one.unanswered for one in done.values())
        return Done(
            request=request, why_not=why_not, unanswered=unanswered, failed=failed, groups=len(groups)
        )

    async def ask(self, event: Request, within_s: float = WAIT_S) -> Answered | None:
        """Give the core a person's request, and wait for its answer; None: there was none in time."""
        if len(event.request) > MAX_REQUEST:
            return Answered(event.request, None, None, f"a request id has {MAX_REQUEST} characters at most")
        open_now = self._open.setdefault(event.request, event)
        if msgspec.structs.replace(open_now, by=event.by) != event:
            return Answered(event.request, None, None, IN_USE)
        answered: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()

        def take(told: Answered) -> None:
            if not answered.done():
                answered.set_result(told)

        waiting = self._assembly.view.answers.setdefault(event.request, [])
        waiting.append(take)
        self._assembly.host.give(event)
        try:
            return await asyncio.wait_for(answered, within_s)
        except TimeoutError:
            return None
        finally:
            waiting.remove(take)
            if not waiting:
                self._assembly.view.answers.pop(event.request, None)
                self._open.pop(event.request, None)

    # -- the log -----------------------------------------------------------------------------------------

    def answer_peer(self) -> bytes:
        return msgspec.json.encode(self._own())

    def _own(self) -> OwnLogs:
        groups = self._assembly.node.groups
        return OwnLogs(() if groups is None else groups.served, self._assembly.view.audit())

    async def audit(self) -> Audit:
        assembly = self._assembly
        others = [node for node in assembly.node.membership.living if node != assembly.node.id]
        answers = await assembly.questions.ask(others, AUDIT)
        heard = [self._own(), *filter(None, (decoded(one, OwnLogs) for one in answers.values()))]
        entries = {(one.group, one.number): one for said in heard for one in said.logs}
        served = {group for said in heard for group in said.groups}
        names = map(GroupId, assembly.inquiries.entities.names("group"))
        return Audit(
            entries=tuple(sorted(entries.values(), key=lambda one: (-one.wall_ms, one.group, -one.number))),
            unheard=tuple(sorted(group for group in names if group not in served)),
        )


def argument_of(
    deployment: Deployment, device: DeviceId, command: str, argument: Value | None
) -> Value | None:
    """What a person wrote, as the command takes it: `on` may be a word or a truth."""
    known = deployment.devices[device].commands.get(command)
    if known is None or known.argument is None or not isinstance(argument, str):
        return argument
    meant = parse_value(known.argument, argument)
    return argument if meant is None else meant


def in_words(wrong: UnknownError | ValueError) -> dict[str, object]:
    """As the control socket answers it. no True: there is no such thing."""
    return {"error": str(wrong), "no": True}

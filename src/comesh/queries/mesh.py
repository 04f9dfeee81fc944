"""The mesh, as the handlers of requests see it: who is asked for what, how fresh it is, and who was silent.

    @answers(ShowDevice)
    async def show_device(query: ShowDevice, mesh: Mesh) -> DeviceAnswer: ...

    @carries_out(PauseRoutine)
    async def pause_routine(order: PauseRoutine, mesh: Mesh, asker: Asker) -> Done: ...

Rules:
1. A group is asked of the node that leads it, and of the other members only where that one does not answer.
2. Only `Mesh` keeps what it last heard, of names that the document has. Such an answer has `reached=False`.
3. An order is given to the core, which brings it to the group and repeats it; this waits for the answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from comesh.core.effects import Answered
from comesh.core.events import OrderAsked
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.plan import DEPLOYMENT
from comesh.core.work_messages import Wish
from comesh.deployment.problems import did_you_mean, nearest, shorten
from comesh.queries.answers import (
    ConflictError,
    Done,
    ForbiddenError,
    Fresh,
    GroupSeen,
    RefusedError,
    Silence,
    UnansweredError,
    UnknownNameError,
)
from comesh.queries.node_reads import NodeRead
from comesh.queries.peers import ANSWER_S, Peers
from comesh.queries.requests import ORDER_WAIT_S, Order, Query, Role
from comesh.queries.view import Command, NodeView

IN_USE: Final = "the request id is in use for another order that waits here; take another one"
MAX_ORDERED_AT_ONCE: Final = 128
"""Groups that one order to all asks at once: half of what the core has places for."""

A = TypeVar("A")
Kind = Literal["device", "routine", "group"]


# -- handlers ------------------------------------------------------------------------------------------------


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """The sender of a request, as the adapter knows it: no request says it."""

    by: str
    """For the audit log: `ann (token)`, `pi@hall`."""
    role: Role = Role.VIEWER

    def check(self, needed: Role) -> None:
        if not self.role.may(needed):
            name = self.by.removesuffix(" (token)")
            raise ForbiddenError(
                f"{name} is a {self.role}, and this needs an {needed}: make a token with `comesh keys token "
                f"NAME --role {needed}`"
            )


QueryHandler = Callable[[Any, "Mesh"], Awaitable[Any]]
OrderHandler = Callable[[Any, "Mesh", Asker], Awaitable[Any]]
QUERY_HANDLERS: Final[dict[type[Query[Any]], QueryHandler]] = {}
ORDER_HANDLERS: Final[dict[type[Order[Any]], OrderHandler]] = {}


def answers(
    kind: type[Query[A]],
) -> Callable[[Callable[[Any, "Mesh"], Awaitable[A]]], Callable[[Any, "Mesh"], Awaitable[A]]]:
    """Declares the function that answers a query."""

    def declare(handler: Callable[[Any, "Mesh"], Awaitable[A]]) -> Callable[[Any, "Mesh"], Awaitable[A]]:
        assert kind not in QUERY_HANDLERS, kind
        QUERY_HANDLERS[kind] = handler
        return handler

    return declare


def carries_out(
    kind: type[Order[A]],
) -> Callable[[Callable[[Any, "Mesh", Asker], Awaitable[A]]], Callable[[Any, "Mesh", Asker], Awaitable[A]]]:
    """Declares the function that carries out an order."""

    def declare(
        handler: Callable[[Any, "Mesh", Asker], Awaitable[A]],
    ) -> Callable[[Any, "Mesh", Asker], Awaitable[A]]:
        assert kind not in ORDER_HANDLERS, kind
        ORDER_HANDLERS[kind] = handler
        return handler

    return declare


# -- the mesh ------------------------------------------------------------------------------------------------


class Gathered(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """What several nodes answered, and why the others did not."""

    told: dict[NodeId, Fresh[A]]
    silent: dict[NodeId, Silence]

    @property
    def answers(self) -> tuple[A, ...]:
        return tuple(one.answer for one in self.told.values())


class ChangesUnderWay:
    """What `changes` has begun and not ended: documents that are compared, groups that are to hand off."""

    def __init__(self) -> None:
        self.one_at_a_time = asyncio.Lock()
        self.compared: set[asyncio.Task[Any]] = set()
        self.reaching: dict[GroupId, asyncio.Task[None]] = {}


class Mesh:
    def __init__(self, view: NodeView, peers: Peers) -> None:
        self.view = view
        self.under_way = ChangesUnderWay()
        self._peers = peers
        self._last: dict[tuple[str, NodeRead[Any]], Fresh[Any]] = {}
        """The last answer heard, by the group or node that was asked."""
        self._open: dict[str, Command] = {}
        """Commands that wait for an answer, by request id: two must not take each other's."""

    # -- names -------------------------------------------------------------------------------------------

    def names(self, kind: Kind) -> Mapping[str, GroupId]:
        """All names of a kind in the document, with the group of each."""
        program = self.view.program
        match kind:
            case "device":
                of_device: dict[DeviceId, GroupId] = program.group_of_device
                return {str(name): group for name, group in of_device.items()}
            case "routine":
                of_routine: dict[RoutineId, GroupId] = program.group_of_routine
                return {str(name): group for name, group in of_routine.items()}
            case "group":
                return {group: group for group in program.plan.genesis}

    def group_of(self, kind: Kind, name: str) -> GroupId:
        """UnknownNameError: the document has no such thing."""
        names = self.names(kind)
        if name not in names:
            raise unknown(kind, name, names)
        return names[name]

    def directory(self) -> dict[GroupId, GroupSeen]:
        """All groups as this node knows them, without asking anybody."""
        return {one.group: one for one in self.view.groups()}

    @property
    def others(self) -> list[NodeId]:
        """The other nodes that live."""
        return [node for node in self.view.living if node != self.view.own]

    # -- reads -------------------------------------------------------------------------------------------

    async def ask_leader(self, group: GroupId, read: NodeRead[A | None]) -> Fresh[A] | None:
        """What the leader of a group says, or who took its place; None: nobody ever said anything."""
        found = _known(self._own(read))
        if found is None:
            seen = self.directory()[group]
            first = () if seen.leader is None else (seen.leader,)
            for nodes in (first, [node for node in seen.members if node != seen.leader]):
                told = (await self.ask_nodes(nodes, read)).told.values()
                for one in told:
                    found = found or _known(one)
                if found is not None:
                    break
        return self._remembered((group, read), found)

    async def ask_leaders(
        self,
        names: Mapping[str, GroupId],
        every: NodeRead[tuple[A, ...]],
        one_read: Callable[[str], NodeRead[A | None]],
        name_of: Callable[[A], str],
    ) -> dict[str, Fresh[A] | None]:
        """What the leaders of all these names say of them; each node is asked once.

        every: asks a node for all that it serves. one_read: asks for one of them, as `ask_leader` would.
        name_of: the name of an answer.
        """
        directory = self.directory()
        found: dict[str, Fresh[A]] = {}

        def take(told: Iterable[Fresh[tuple[A, ...]]]) -> None:
            for one in told:
                for answer in one.answer:
                    if name_of(answer) in names:
                        found[name_of(answer)] = one.of(answer)

        take([self._own(every)])
        for leaders_only in (True, False):
            groups = [directory[group] for group in {names[name] for name in names.keys() - found}]
            leaders = {seen.leader for seen in groups if seen.leader is not None}
            members = {node for seen in groups for node in seen.members}
            take((await self.ask_nodes(sorted(leaders if leaders_only else members), every)).told.values())
        return {
            name: self._remembered((names[name], one_read(name)), found.get(name)) for name in sorted(names)
        }

    async def ask_members(self, group: GroupId, read: NodeRead[A]) -> Gathered[A]:
        """What the members of a group say, with its leader before the others."""
        seen = self.directory()[group]
        first = () if seen.leader is None else (seen.leader,)
        return await self.ask_nodes(dict.fromkeys((*first, *seen.members)), read)

    async def ask_living(self, read: NodeRead[A]) -> Gathered[A]:
        """What all nodes say that live, this one first."""
        return await self.ask_nodes((self.view.own, *self.others), read)

    async def ask_all(self, read: NodeRead[A]) -> Gathered[A]:
        """What all nodes of the document say."""
        return await self.ask_nodes((self.view.own, *sorted(self.view.deployment.nodes)), read)

    async def ask_node(self, node: NodeId, read: NodeRead[A]) -> Fresh[A] | None:
        """What a node says, now or the last time."""
        gathered = await self.ask_nodes((node,), read)
        return self._remembered((node, read), gathered.told.get(node))

    def why_silent(self, node: NodeId) -> Silence:
        """Why a node said nothing."""
        if node in self.view.living:
            return Silence.NO_ANSWER
        return Silence.DEAD if self.view.is_dead(node) else Silence.NEVER_HEARD_OF

    def _own(self, read: NodeRead[A]) -> Fresh[A]:
        view = self.view
        return Fresh(answer=read.answer(view), answered_by=view.own, as_of_ms=view.wall_ms())

    async def ask_nodes(
        self, nodes: Iterable[NodeId], read: NodeRead[A], *, within_s: float = ANSWER_S
    ) -> Gathered[A]:
        """What these nodes say; those that do not live are not asked."""
        own, living = self.view.own, set(self.view.living)
        asked = list(dict.fromkeys(nodes))
        others = [node for node in asked if node != own and node in living]
        said = await self._peers.ask_each(others, read, within_s=within_s)
        if own in asked:
            said[own] = self._own(read)
        told: dict[NodeId, Fresh[A]] = {}
        silent: dict[NodeId, Silence] = {}
        for node in asked:
            match said.get(node):
                case Fresh() as fresh:
                    told[node] = fresh
                case Silence.OTHER_VERSION as why:
                    silent[node] = why
                case _:
                    silent[node] = self.why_silent(node)
        return Gathered(told=told, silent=silent)

    def _remembered(self, key: tuple[str, NodeRead[Any]], found: Fresh[A] | None) -> Fresh[A] | None:
        """What was found now, or the last that was heard, marked so."""
        if found is not None:
            self._last[key] = found
            return found
        last = self._last.get(key)
        return None if last is None else msgspec.structs.replace(last, reached=False)

    # -- orders ------------------------------------------------------------------------------------------

    async def order(self, group: GroupId, wish: Wish, request: str, asker: Asker) -> Done:
        """Have a group carry out an order. RefusedError, UnansweredError: it did not."""
        told = await self.command(
            OrderAsked(group=group, request=request, by=asker.by, wish=wish), of=f"{group} did not answer"
        )
        return Done(request=request, run=None if told.run is None else str(told.run))

    async def order_all(self, wish: Wish, request: str, asker: Asker) -> Done:
        """The same order to every group, so that it depends on no quorum but their own."""
        groups = [GroupId(one) for one in self.names("group") if one != DEPLOYMENT]
        at_once = asyncio.Semaphore(MAX_ORDERED_AT_ONCE)

        async def ordered(group: GroupId) -> RefusedError | UnansweredError | None:
            async with at_once:
                try:
                    await self.order(group, wish, f"{request}/{group}", asker)
                except (RefusedError, UnansweredError) as why:
                    return why
                return None

        failed = dict(zip(groups, await asyncio.gather(*map(ordered, groups)), strict=True))
        reasons = {group: why for group, why in failed.items() if why is not None}
        if reasons:
            unanswered = any(isinstance(why, UnansweredError) for why in reasons.values())
            raise (UnansweredError if unanswered else RefusedError)(
                f"{len(reasons)} of {len(groups)} groups did not",
                problems=tuple(f"{group}: {why}" for group, why in sorted(reasons.items())),
            )
        return Done(request=request, groups=len(groups))

    async def command(self, command: Command, *, of: str) -> Answered:
        """Give the core a command, and wait for its answer. RefusedError, UnansweredError: it has none.

        of: who did not answer, in words.
        """
        request = command.request
        known = self._open.setdefault(request, command)
        if known is not command:
            raise ConflictError(IN_USE, request=request)
        answered: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()

        def take(told: Answered) -> None:
            if not answered.done():
                answered.set_result(told)

        forget = self.view.on_answer(request, take)
        self.view.give(command)
        try:
            told = await asyncio.wait_for(answered, ORDER_WAIT_S)
        except TimeoutError:
            raise UnansweredError(
                f"{of} within {ORDER_WAIT_S:.0f} s. It may still be carried out: ask again with the request "
                f"id {request}. `comesh status` says whether its group is served",
                request=request,
            ) from None
        finally:
            forget()
            del self._open[request]
        if told.why_not:
            raise RefusedError(told.why_not, request=request)
        return told


def _known(fresh: Fresh[A | None]) -> Fresh[A] | None:
    """None: who answered does not serve it."""
    return None if fresh.answer is None else fresh.of(fresh.answer)


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """There is no such thing here; with the name that may be meant."""
    return misnamed(f"there is no {kind} '{shorten(name)}' here", name, known)


def misnamed(what: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """What is wrong with a name, and the name that may be meant."""
    names = list(known)
    hint = did_you_mean(name, names)
    return UnknownNameError(f"{what}; {hint}" if hint else what, did_you_mean=nearest(name, names))

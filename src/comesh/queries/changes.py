"""Changes of the document of a mesh that runs: its versions, what a new one would mean, applying it, and
having a member of a lost group go on alone.

The group `deployment` decides which version follows which; every node has the texts. Who applied what is
asked of the leader of that group; which group works by which version is in the directory.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from comesh.core.events import ApplyAsked, RecoverAsked
from comesh.core.ids import GroupId, NodeId
from comesh.core.plan import DEPLOYMENT
from comesh.core.program import Program
from comesh.core.work_messages import Reach, Remember
from comesh.deployment.changes import Orders, changes, consequences
from comesh.queries.answers import (
    Applied,
    ChainText,
    Fresh,
    InvalidDocumentError,
    Preview,
    QueryError,
    Reaching,
    Recovered,
    RefusedError,
    UnavailableError,
    UnknownNameError,
    UnreachedError,
    Versions,
    VersionSeen,
    VersionText,
)
from comesh.queries.mesh import Asker, Mesh, answers, carries_out
from comesh.queries.node_reads import OwnVersions
from comesh.queries.reads import devices_known, routines_known
from comesh.queries.requests import (
    ApplyDocument,
    ListVersions,
    PreviewDocument,
    ReachVersion,
    RecoverGroup,
    ShowChain,
    ShowVersion,
)
from comesh.queries.view import Compiler

RECOVER_S: Final = 30.0
"""How long a member that goes on alone may take until it serves."""
LEARN_S: Final = 5.0
"""How long a node that had a version applied waits to have it itself."""
LOOK_S: Final = 0.05
MAX_READ: Final = 4
"""Documents that wait to be compared: each takes the processor from the node for a while."""


A = TypeVar("A")


# -- versions ------------------------------------------------------------------------------------------------


@answers(ListVersions)
async def list_versions(query: ListVersions, mesh: Mesh) -> Versions:
    records = await mesh.ask_leader(DEPLOYMENT, OwnVersions())
    known = {} if records is None else {one.version: one for one in records.answer}
    groups = Counter(one.version for one in mesh.directory().values())
    newest = mesh.view.program.version
    return Versions(
        answered_by=mesh.view.own,
        newest=newest,
        reached=records is not None and records.reached,
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


@answers(ShowVersion)
async def show_version(query: ShowVersion, mesh: Mesh) -> VersionText:
    return VersionText(version=query.version, text=_text(query.version, mesh))


@answers(ShowChain)
async def show_chain(query: ShowChain, mesh: Mesh) -> ChainText:
    return ChainText(newest=max(mesh.view.texts()), chain=mesh.view.chain())


def _text(number: int, mesh: Mesh) -> str:
    texts = mesh.view.texts()
    if number not in texts:
        raise UnknownNameError(f"there is no version {number} here; {mesh.view.own} is at {max(texts)}")
    return texts[number]


# -- a new one -----------------------------------------------------------------------------------------------


@answers(PreviewDocument)
async def preview_document(query: PreviewDocument, mesh: Mesh) -> Preview:
    compared = mesh.under_way.compared
    if len(compared) >= MAX_READ:
        raise UnavailableError(f"{MAX_READ} documents are being compared here already; ask again")
    task = asyncio.create_task(_compare_with_orders(query.text, mesh))
    compared.add(task)
    task.add_done_callback(compared.discard)
    return await asyncio.shield(task)  # a thread cannot be stopped: its place is taken until it ends


async def _compare_with_orders(text: str, mesh: Mesh) -> Preview:
    return await _compare(text, mesh, await _orders(mesh))


async def _orders(mesh: Mesh) -> Orders:
    """What is paused and maintained, of all groups that are reached."""
    paused = _ordered(await routines_known(mesh), lambda seen: seen.paused_by)
    maintained = _ordered(await devices_known(mesh), lambda seen: seen.maintained_by)
    return Orders(paused={} if mesh.view.all_paused() else paused, maintained=maintained)


def _ordered(known: Mapping[str, Fresh[A] | None], by: Callable[[A], str | None]) -> dict[str, str | None]:
    """The people who paused or maintain what is so; None: it was not reached."""
    orders: dict[str, str | None] = {}
    for name, one in known.items():
        if one is None or not one.reached:
            orders[name] = None
        elif (who := by(one.answer)) is not None:
            orders[name] = who
    return orders


async def _compare(text: str, mesh: Mesh, orders: Orders | None = None) -> Preview:
    """Beside the loop, for reading a document takes longer than a lease may wait for; and one at a time, for
    many threads would leave the loop little of the processor."""
    async with mesh.under_way.one_at_a_time:
        return await asyncio.to_thread(_preview, mesh.view.compiler, mesh.view.program, text, orders)


def _preview(compiler: Compiler, base: Program, text: str, orders: Orders | None) -> Preview:
    try:
        program = compiler(text, base.version + 1, base)
    except ValueError as wrong:
        return Preview(base=base.version, problems=tuple(str(wrong).splitlines()))
    found = changes(compiler.deployment(base.text), compiler.deployment(text))
    return Preview(base=base.version, changes=found, means=consequences(base, program, found, orders))


@carries_out(ApplyDocument)
async def apply_document(order: ApplyDocument, mesh: Mesh, asker: Asker) -> Applied:
    request = order.request or ""
    if order.base == mesh.view.program.version:
        preview = await _compare(order.text, mesh)
        if preview.problems:
            raise InvalidDocumentError("the document cannot be used", problems=preview.problems)
    missing = _no_quorum(mesh)
    if missing:
        raise UnreachedError(missing)
    event = ApplyAsked(base=order.base, text=order.text, request=request, by=asker.by, why=order.why)
    told = await mesh.command(event, of="the group deployment did not answer")
    version = told.version or 0
    await _becomes(lambda: mesh.view.program.version >= version, LEARN_S)
    if order.now:
        reach(version, mesh, asker)
    return Applied(request=request, version=version)


def _no_quorum(mesh: Mesh) -> str:
    """Why nothing can be applied from here; empty: it may be."""
    seen, living = mesh.directory()[DEPLOYMENT], set(mesh.view.living)
    lost = [node for node in seen.members if node not in living]
    if not seen.number or seen.leader in living or len(lost) <= len(seen.members) // 2:
        return ""
    return (
        f"{mesh.view.own} does not reach a quorum of the group deployment ({', '.join(seen.members)}): "
        f"{', '.join(lost)} {'is' if len(lost) == 1 else 'are'} not there. A version is applied on the side "
        "that has most of them, or when they are back. If they are lost for good: docs/changes.md, `comesh "
        "recover`"
    )


# -- at once -------------------------------------------------------------------------------------------------


@carries_out(ReachVersion)
async def reach_version(order: ReachVersion, mesh: Mesh, asker: Asker) -> Reaching:
    _text(order.version, mesh)
    return reach(order.version, mesh, asker)


def reach(version: int, mesh: Mesh, asker: Asker) -> Reaching:
    """Have every group that works by an older version hand off now; each is asked until it does."""
    behind = [group for group, seen in mesh.directory().items() if seen.version < version]
    for group in behind:
        if group not in mesh.under_way.reaching:
            task = asyncio.create_task(_reach(group, version, mesh, asker))
            mesh.under_way.reaching[group] = task
    return Reaching(version=version, groups=tuple(behind))


async def _reach(group: GroupId, version: int, mesh: Mesh, asker: Asker) -> None:
    try:
        await mesh.order(group, Reach(version), mesh.view.new_request(), asker)
    except QueryError as wrong:
        mesh.view.warn(f"{group} was not told to work by version {version}: {wrong}")
    finally:
        del mesh.under_way.reaching[group]


# -- recovery ------------------------------------------------------------------------------------------------


@carries_out(RecoverGroup)
async def recover_group(order: RecoverGroup, mesh: Mesh, asker: Asker) -> Recovered:
    """Go on alone with a group whose quorum is lost for good, from what this node has."""
    group, own = mesh.group_of("group", order.group), mesh.view.own
    seen = mesh.directory()[group]
    if not seen.role:
        raise RefusedError(f"{own} has no seat in {group}: ask one of {', '.join(seen.members)}")
    if _quorum_lives(group, mesh):
        raise RefusedError(f"a quorum of {group} lives ({', '.join(seen.members)}): it needs no recovery")
    mesh.view.warn(f"{group}: {asker.by} has {own} go on alone")
    # Whoever led it gives up first, if that was this node.
    if await _becomes(lambda: _leader(group, mesh) is None, RECOVER_S):
        if _quorum_lives(group, mesh):
            raise RefusedError(f"a quorum of {group} is back meanwhile: it needs no recovery")
        mesh.view.give(RecoverAsked(group=group, by=asker.by))
        if await _becomes(lambda: _leader(group, mesh) is not None, RECOVER_S):
            what = f"recover: {own} goes on alone"
            await mesh.order(group, Remember(what), order.request or "", asker)
            return Recovered(group=group)
    raise UnreachedError(f"{group} is not served after {RECOVER_S:.0f} s; the log of {own} may say why")


def _quorum_lives(group: GroupId, mesh: Mesh) -> bool:
    living, members = set(mesh.view.living), mesh.directory()[group].members
    return sum(node in living for node in members) > len(members) // 2


def _leader(group: GroupId, mesh: Mesh) -> NodeId | None:
    return mesh.directory()[group].leader


async def _becomes(condition: Callable[[], bool], within_s: float) -> bool:
    for _ in range(int(within_s / LOOK_S)):
        if condition():
            return True
        await asyncio.sleep(LOOK_S)
    return False

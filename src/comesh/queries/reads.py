"""Reads: how nodes, groups, devices, routines and runs are. Nothing here changes anything."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.traces import Fired
from comesh.deployment.problems import shorten
from comesh.queries.answers import (
    Audit,
    Checked,
    DeviceAnswer,
    Devices,
    DeviceSeen,
    Fresh,
    GroupAnswer,
    Groups,
    MeshHealth,
    MeshStatus,
    NodeAnswer,
    NodeHealth,
    NodeListed,
    Nodes,
    NodeStatus,
    RoutineAnswer,
    Routines,
    RoutineSeen,
    RunAnswer,
    Runs,
    Silence,
    TraceLine,
    UnknownNameError,
    UnreachedError,
)
from comesh.queries.mesh import Gathered, Kind, Mesh, answers, unknown
from comesh.queries.node_reads import (
    OwnAudit,
    OwnDevice,
    OwnDevices,
    OwnGroup,
    OwnHealth,
    OwnRoutine,
    OwnRoutines,
    OwnRuns,
    OwnStatus,
    OwnTrace,
)
from comesh.queries.requests import (
    ListAudit,
    ListDevices,
    ListGroups,
    ListNames,
    ListNodes,
    ListRoutines,
    ListRuns,
    ShowDevice,
    ShowGroup,
    ShowHealth,
    ShowMesh,
    ShowNode,
    ShowRoutine,
    ShowRun,
    ShowStatus,
)

KEPT: Final = "nodes keep the latest runs of the groups that they led, since their start"
HEALTH_S: Final = 2.0
"""How long a node is waited for that looks at its machine."""


# -- nodes ---------------------------------------------------------------------------------------------------


@answers(ShowStatus)
async def show_status(query: ShowStatus, mesh: Mesh) -> NodeStatus:
    return mesh.view.status()


@answers(ListNames)
async def list_names(query: ListNames, mesh: Mesh) -> tuple[str, ...]:
    if query.kind == "node":
        return tuple(sorted(mesh.view.deployment.nodes))
    return tuple(sorted(mesh.names(query.kind)))


@answers(ListNodes)
async def list_nodes(query: ListNodes, mesh: Mesh) -> Nodes:
    view = mesh.view
    listed = tuple(_listed(node, mesh) for node in sorted(view.deployment.nodes))
    return Nodes(as_of_ms=view.wall_ms(), answered_by=view.own, nodes=listed, time_zone=_zone(mesh))


@answers(ShowNode)
async def show_node(query: ShowNode, mesh: Mesh) -> NodeAnswer:
    if query.node not in mesh.view.deployment.nodes:
        raise unknown("node", query.node, mesh.view.deployment.nodes)
    known = await mesh.ask_node(query.node, OwnStatus())
    return NodeAnswer(
        about=_listed(query.node, mesh),
        reached=known is not None and known.reached,
        as_of_ms=None if known is None else known.as_of_ms,
        answered_by=None if known is None else known.answered_by,
        status=None if known is None else known.answer,
    )


def _listed(node: NodeId, mesh: Mesh) -> NodeListed:
    entry = mesh.view.deployment.nodes[node]
    life = "living" if node in mesh.view.living else str(mesh.why_silent(node))
    return NodeListed(node=node, name=entry.name, power_domain=entry.power_domain, life=life)


# -- groups --------------------------------------------------------------------------------------------------


@answers(ListGroups)
async def list_groups(query: ListGroups, mesh: Mesh) -> Groups:
    view = mesh.view
    return Groups(as_of_ms=view.wall_ms(), answered_by=view.own, groups=view.groups())


@answers(ShowGroup)
async def show_group(query: ShowGroup, mesh: Mesh) -> GroupAnswer:
    group, view = mesh.group_of("group", query.group), mesh.view
    known = await mesh.ask_leader(group, OwnGroup(group=group))
    if known is None:  # its leader is not reached: what the directory says
        seen = mesh.directory()[group]
        known = Fresh(answer=seen, answered_by=view.own, as_of_ms=view.wall_ms(), reached=False)
    return GroupAnswer(
        group=group,
        devices=tuple(DeviceId(name) for name in _of_group("device", group, mesh)),
        routines=tuple(RoutineId(name) for name in _of_group("routine", group, mesh)),
        state=known.answer,
        reached=known.reached,
        as_of_ms=known.as_of_ms,
        answered_by=known.answered_by,
    )


def _of_group(kind: Kind, group: GroupId, mesh: Mesh) -> list[str]:
    return sorted(name for name, of in mesh.names(kind).items() if of == group)


# -- devices and routines ------------------------------------------------------------------------------------


@answers(ListDevices)
async def list_devices(query: ListDevices, mesh: Mesh) -> Devices:
    known = await devices_known(mesh)
    return Devices(devices=tuple(_device(DeviceId(name), one, mesh) for name, one in known.items()))


@answers(ShowDevice)
async def show_device(query: ShowDevice, mesh: Mesh) -> DeviceAnswer:
    group = mesh.group_of("device", query.device)
    known = await mesh.ask_leader(group, OwnDevice(device=query.device))
    if known is None:
        raise _never_heard("device", query.device, group, mesh)
    return _device(query.device, known, mesh)


@answers(ListRoutines)
async def list_routines(query: ListRoutines, mesh: Mesh) -> Routines:
    known = await routines_known(mesh)
    return Routines(routines=tuple(_routine(RoutineId(name), one, mesh) for name, one in known.items()))


@answers(ShowRoutine)
async def show_routine(query: ShowRoutine, mesh: Mesh) -> RoutineAnswer:
    group = mesh.group_of("routine", query.routine)
    known = await mesh.ask_leader(group, OwnRoutine(routine=query.routine))
    if known is None:
        raise _never_heard("routine", query.routine, group, mesh)
    return _routine(query.routine, known, mesh)


async def devices_known(mesh: Mesh) -> dict[str, Fresh[DeviceSeen] | None]:
    """All devices, as their leaders see them now or were last heard to."""
    return await mesh.ask_leaders(
        mesh.names("device"),
        OwnDevices(),
        lambda name: OwnDevice(device=DeviceId(name)),
        lambda seen: seen.device,
    )


async def routines_known(mesh: Mesh) -> dict[str, Fresh[RoutineSeen] | None]:
    """All routines, as their leaders see them now or were last heard to."""
    return await mesh.ask_leaders(
        mesh.names("routine"),
        OwnRoutines(),
        lambda name: OwnRoutine(routine=RoutineId(name)),
        lambda seen: seen.routine,
    )


def _device(device: DeviceId, known: Fresh[DeviceSeen] | None, mesh: Mesh) -> DeviceAnswer:
    entry = mesh.view.deployment.devices.get(device)
    return DeviceAnswer(
        device=device,
        name=None if entry is None else entry.name,
        group=mesh.names("device")[device],
        state=None if known is None else known.answer,
        reached=known is not None and known.reached,
        as_of_ms=None if known is None else known.as_of_ms,
        answered_by=None if known is None else known.answered_by,
    )


def _routine(routine: RoutineId, known: Fresh[RoutineSeen] | None, mesh: Mesh) -> RoutineAnswer:
    entry = mesh.view.deployment.routines.get(routine)
    steps = () if entry is None else entry.do
    return RoutineAnswer(
        routine=routine,
        name=None if entry is None else entry.name,
        group=mesh.names("routine")[routine],
        commands=tuple(sorted({DeviceId(step.device) for step in steps})),
        state=None if known is None else known.answer,
        reached=known is not None and known.reached,
        as_of_ms=None if known is None else known.as_of_ms,
        answered_by=None if known is None else known.answered_by,
    )


def _never_heard(kind: str, name: str, group: GroupId, mesh: Mesh) -> UnreachedError:
    return UnreachedError(
        f"nothing is known of {kind} {name}: no node that leads its group {group} is reached from "
        f"{mesh.view.own}; look at the group {group} and at the nodes, or ask another node"
    )


# -- runs ----------------------------------------------------------------------------------------------------


def _zone(mesh: Mesh) -> str:
    return mesh.view.deployment.settings.time_zone


@answers(ListRuns)
async def list_runs(query: ListRuns, mesh: Mesh) -> Runs:
    lines, silent = await _latest_runs(mesh)
    return Runs(
        as_of_ms=mesh.view.wall_ms(),
        answered_by=mesh.view.own,
        silent=silent,
        runs=lines[: query.limit],
        truncated=len(lines) > query.limit,
        time_zone=_zone(mesh),
    )


@answers(ShowRun)
async def show_run(query: ShowRun, mesh: Mesh) -> RunAnswer:
    """A run; of a routine's name: its latest run."""
    routine, number, _ = query.run.partition("#")
    run = query.run if number else await _latest_of(query.run, mesh)
    lines, silent = await _trace(run, mesh)
    if not lines:
        raise UnknownNameError(f"no node that answers knows the run '{shorten(query.run)}'; {KEPT}")
    return RunAnswer(
        run=run,
        routine=RoutineId(routine),
        as_of_ms=mesh.view.wall_ms(),
        answered_by=mesh.view.own,
        silent=silent,
        ended=lines[-1].ends,
        trace=lines,
        time_zone=_zone(mesh),
    )


async def _trace(run: str, mesh: Mesh) -> tuple[tuple[TraceLine, ...], dict[NodeId, Silence]]:
    """What a run did. The leader of its routine is asked, and all others only where it does not know the
    whole of it: runs outlive leaders."""
    group = mesh.names("routine").get(run.partition("#")[0])
    leader = None if group is None else mesh.directory()[group].leader
    if leader is not None:
        known = await mesh.ask_nodes((mesh.view.own, leader), OwnTrace(run=run))
        lines = _in_order(known)
        if lines and isinstance(lines[0].trace, Fired) and lines[-1].ends:
            return lines, {}
    gathered = await mesh.ask_living(OwnTrace(run=run))
    return _in_order(gathered), gathered.silent


async def _latest_runs(mesh: Mesh) -> tuple[tuple[TraceLine, ...], dict[NodeId, Silence]]:
    """The last line of each run, newest first."""
    gathered = await mesh.ask_living(OwnRuns())
    latest = {line.run: line for line in _in_order(gathered)}
    return tuple(sorted(latest.values(), key=lambda line: -line.wall_ms)), gathered.silent


async def _latest_of(routine: str, mesh: Mesh) -> str:
    known = mesh.names("routine")
    if routine not in known:
        raise unknown("run or routine", routine, known)
    lines, _ = await _latest_runs(mesh)
    latest = next((line.run for line in lines if line.run.partition("#")[0] == routine), None)
    if latest is None:
        raise UnknownNameError(f"no node that answers knows a run of {routine}; {KEPT}")
    return latest


def _in_order(gathered: Gathered[tuple[TraceLine, ...]]) -> tuple[TraceLine, ...]:
    return tuple(sorted((line for told in gathered.answers for line in told), key=lambda line: line.wall_ms))


# -- the audit log -------------------------------------------------------------------------------------------


@answers(ListAudit)
async def list_audit(query: ListAudit, mesh: Mesh) -> Audit:
    gathered = await mesh.ask_living(OwnAudit())
    entries = {(one.group, one.number): one for logs in gathered.answers for one in logs.entries}
    served = {group for logs in gathered.answers for group in logs.groups}
    newest = sorted(entries.values(), key=lambda one: (-one.wall_ms, one.group, -one.number))
    return Audit(
        entries=tuple(newest[: query.limit]),
        unheard=tuple(sorted(group for group in mesh.directory() if group not in served)),
        silent=gathered.silent,
        truncated=len(newest) > query.limit,
    )


# -- the whole mesh ------------------------------------------------------------------------------------------


@answers(ShowMesh)
async def show_mesh(query: ShowMesh, mesh: Mesh) -> MeshStatus:
    own, gathered = mesh.view.own, await mesh.ask_all(OwnStatus())
    nodes = {node: _status(gathered, node) for node in sorted({*mesh.view.deployment.nodes, own})}
    unreached = [f"{node}: {why}" for node, why in mesh.view.unreached().items() if node in gathered.silent]
    odd = _odd_documents(own, gathered.answers)
    return MeshStatus(asked=own, nodes=nodes, silent=gathered.silent, trouble=(*unreached, *odd))


def _status(gathered: Gathered[NodeStatus], node: NodeId) -> NodeStatus | None:
    told = gathered.told.get(node)
    return None if told is None else told.answer


def _odd_documents(own: NodeId, statuses: Sequence[NodeStatus]) -> tuple[str, ...]:
    """Nodes at one version whose document is another than most have, or than the asked one has."""
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


def other_document_words(own: NodeId, others: list[NodeId]) -> str:
    """What to do about nodes that go by another document; empty: there are none."""
    if not others:
        return ""
    names = ", ".join(others)
    return (
        f"{names} began with another document than {own}. A mesh has one: compare deployment-1.yaml in their "
        "data directories. Which one do most nodes have? Stop the few others, remove the data directories of "
        "these only, and start them again"
    )


@answers(ShowHealth)
async def show_health(query: ShowHealth, mesh: Mesh) -> MeshHealth:
    """How all nodes are, each asked by itself, so that the time of its answer tells how far its clock is."""
    view = mesh.view
    nodes = sorted(view.deployment.nodes)
    found = dict(zip(nodes, await asyncio.gather(*(_checked(node, mesh) for node in nodes)), strict=True))
    silent = {node: one for node, one in found.items() if isinstance(one, Silence)}
    checked = {node: None if isinstance(one, Silence) else one for node, one in found.items()}
    return MeshHealth(asked=view.own, as_of_ms=view.wall_ms(), nodes=checked, silent=silent)


async def _checked(node: NodeId, mesh: Mesh) -> Checked | Silence:
    view = mesh.view
    began_ms = view.monotonic_ms()
    gathered: Gathered[NodeHealth] = await mesh.ask_nodes((node,), OwnHealth(), within_s=HEALTH_S)
    took_ms = view.monotonic_ms() - began_ms
    if node not in gathered.told:
        return gathered.silent[node]
    said = gathered.told[node].answer
    if node == view.own:
        return Checked(said=said, offset_ms=0.0, within_ms=0.0)
    offset_ms = said.machine_wall_ms + took_ms / 2 - view.machine_wall_ms()
    return Checked(said=said, offset_ms=offset_ms, within_ms=took_ms / 2)

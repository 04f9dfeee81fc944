"""Draws the case of a seed for the swarm of operations: mesh and faults as in the usual swarm, and
operations.

The first version has not all nodes and devices: some come with later ones. A version's text says what is
other; with the version before it gives the same program on every node, as a document does. What a deployment
refuses is refused here, too: a device that would come back in another group, a node that is not there.

Disks that are lost for good (wiped, revoked, of a node that died) are few enough that some member of every
group is left for an operator to go on from.
"""

import dataclasses
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.membership import MembershipSettings
from comesh.core.plan import SelectionSettings
from comesh.core.program import Program, ProtocolSettings, RoutineProgram
from comesh.core.streams import stream
from comesh.drivers.virtual.devices import DeviceSpec
from comesh.sim.fault_model import Fault
from comesh.sim.fault_schedules import RandomFaults, Schedule, draw_rates, random_schedule
from comesh.sim.faults import CopyCard, Crash
from comesh.sim.operations import Operation, What
from comesh.sim.swarm_case import (
    QUIET_MS,
    RARE,
    Case,
    Drawn,
    Ground,
    draw_protocol,
    draw_routine,
    draw_selection,
    draw_topology,
    draw_world,
    first_program,
    make_program,
    one_copy,
    touches,
)
from comesh.sim.topology import Topology

OPERATING_MS = 90_000.0
"""Duration of the phase in which anything may break while people work on the mesh."""
FEWEST_NODES = 3
MAX_ORDERS = 24
MAX_APPLIED = 6
MAX_LOST = 2
"""Maximum number of disks that are lost for good."""


def draw(seed: int) -> Drawn:
    """Draw the case of a seed; the same seed always gives the same case."""
    draws = stream(seed, "operations swarm")
    topology = draw_topology(draws, seed)
    nodes = sorted(topology.nodes)
    joiners = draws.sample(nodes, draws.below(1 + min(2, max(0, len(nodes) - FEWEST_NODES))))
    founders = [node for node in nodes if node not in joiners]
    devices = sorted(topology.devices)
    later = draws.sample(devices, draws.below(1 + len(devices) // 3))
    protocol = draw_protocol(draws)
    selection = draw_selection(draws, len(founders), seed)
    first = only(topology, founders)
    program, specs = first_program(
        seed,
        first,
        selection,
        protocol,
        devices=[device for device in devices if device not in later],
        until_ms=OPERATING_MS,
    )
    operations = _draw_operations(seed, founders, joiners, selection)
    events = tuple(sorted(name for name in program.devices if program.devices[name].event))
    lost = sum(one.what in _LOSES for one in operations)
    faults = random_schedule(first, _wanted(draws, seed, lost, selection), seed, events)
    case = Case(
        seed=seed,
        settings=draw_world(draws, strict=protocol.strict),
        membership=MembershipSettings(),
        protocol=protocol,
        selection=selection,
        faults=_without_lost(faults, lost),
        askings=(),
        event_devices=events,
        operations=operations,
    )
    return case, topology, program, specs


def only(topology: Topology, nodes: list[NodeId]) -> Topology:
    """Returns the same stations with only these nodes."""
    left = set(nodes)
    domains = {
        name: tuple(node for node in members if node in left)
        for name, members in topology.power_domains.items()
    }
    return dataclasses.replace(
        topology,
        nodes={node: station for node, station in topology.nodes.items() if node in left},
        power_domains={name: members for name, members in domains.items() if members},
    )


def _wanted(draws: Draws, seed: int, lost: int, selection: SelectionSettings) -> RandomFaults:
    rare, usual = [0.0, 0.0, 0.0, 0.7], [0.0, 0.0, 0.7, 1.5, 3.0]
    per_minute = draw_rates(draws, seed, lambda name: rare if name in RARE else usual)
    if selection.f == 0 or lost >= MAX_LOST:
        per_minute["wipe"] = per_minute["copy-card"] = 0.0
    per_minute["outage"] = draws.choice([0.0, 0.0, 0.7, 1.4])
    per_minute["press"] = draws.choice([0.0, 5.0, 10.0])
    return RandomFaults(run_ms=OPERATING_MS + QUIET_MS, quiet_ms=QUIET_MS, per_minute=per_minute)


def _without_lost(faults: Schedule, lost: int) -> Schedule:
    """Returns the schedule with at most as many wiped disks as may still be lost, and no copied card if any
    is."""
    kept: list[Fault] = []
    for fault in one_copy(faults).faults:
        if isinstance(fault, Crash) and fault.wipes_at_ms is not None:
            lost += 1
            kept.append(replace(fault, keep_disk=lost > MAX_LOST))
        elif not (lost and isinstance(fault, CopyCard)):
            kept.append(fault)
    return Schedule(tuple(kept))


# -- what people do ----------------------------------------------------------------------------------------

_ORDERS = (
    *[What.FIRE] * 5,
    *[What.PAUSE] * 3,
    What.PAUSE_ALL,
    *[What.RESUME] * 2,
    What.RESUME_ALL,
    *[What.MAINTAIN] * 3,
    *[What.RESTORE] * 2,
    *[What.SET] * 5,
    *[What.BREAK_LOCK] * 3,
    What.REMEMBER,
)
_UNDONE = {What.PAUSE_ALL: What.RESUME_ALL, What.PAUSE: What.RESUME, What.MAINTAIN: What.RESTORE}
_LOSES = (What.REVOKE, What.LEAVE_DEAD, What.LEAVE_NOW)


def _draw_operations(
    seed: int, founders: list[NodeId], joiners: list[NodeId], selection: SelectionSettings
) -> tuple[Operation, ...]:
    draws = stream(seed, "operations swarm people")
    drawn = [
        *_draw_orders(draws, founders),
        *_draw_versions(draws, founders),
        *_draw_machines(draws, founders, joiners, selection),
    ]
    return tuple(sorted(drawn, key=lambda one: (one.at_ms, one.request)))


def _at(draws: Draws, first_ms: float = 3000.0) -> float:
    return round(draws.between(first_ms, OPERATING_MS), 3)


def _draw_orders(draws: Draws, nodes: list[NodeId]) -> list[Operation]:
    orders: list[Operation] = []
    at_ms = 0.0
    for number in range(draws.below(MAX_ORDERS + 1)):
        at_ms = at_ms if at_ms and draws.chance(0.2) else _at(draws)
        order = Operation(
            at_ms=at_ms,
            what=draws.choice(_ORDERS),
            node=draws.choice(nodes),
            request=f"order {number}",
            by=draws.choice(["ann", "bob"]),
            pick=draws.below(1 << 16),
        )
        orders.append(order)
        if draws.chance(0.25):
            again_ms = round(at_ms + draws.choice([0.0, draws.between(1.0, 15_000.0)]), 3)
            orders.append(replace(order, at_ms=again_ms, node=draws.choice(nodes)))
        undone = _UNDONE.get(order.what)
        if undone is not None and draws.chance(0.8):
            end_ms = round(at_ms + draws.between(500.0, 15_000.0), 3)
            request = f"{order.request} undone"
            orders.append(replace(order, at_ms=end_ms, what=undone, request=request))
    return orders


def _draw_versions(draws: Draws, nodes: list[NodeId]) -> list[Operation]:
    applied: list[Operation] = []
    for number in range(draws.below(MAX_APPLIED + 1)):
        version = Operation(
            at_ms=_at(draws),
            what=What.APPLY,
            node=draws.choice(nodes),
            request=f"apply {number}",
            by="ann",
            pick=draws.below(1 << 16),
            stale=1 if draws.chance(0.15) else 0,
        )
        applied.append(version)
        if draws.chance(0.3):  # another person has the same idea, or the request is repeated
            same = draws.chance(0.4)
            request = version.request if same else f"{version.request} rival"
            pick = version.pick if same else draws.below(1 << 16)
            rival = replace(version, node=draws.choice(nodes), request=request, pick=pick, by="bob")
            applied.append(rival)
        if draws.chance(0.4):
            at_ms = round(version.at_ms + draws.between(100.0, 3000.0), 3)
            applied.append(replace(version, at_ms=at_ms, what=What.REACH, request=f"reach {number}"))
    return applied


def _draw_machines(
    draws: Draws, founders: list[NodeId], joiners: list[NodeId], selection: SelectionSettings
) -> list[Operation]:
    """Draw machine operations, at most one per node. With f = 0 no disk may be lost."""
    done: list[Operation] = []

    def add(what: What, of: NodeId | None, later_ms: float = 0.0) -> None:
        request = what if of is None else f"{what} {of}"
        one = Operation(
            at_ms=_at(draws, 8000.0), what=what, node=draws.choice(founders), request=request, by="ann", of=of
        )
        done.append(replace(one, pick=draws.below(1 << 16), later_ms=round(later_ms, 3)))

    for node in joiners:
        add(What.JOIN, node, draws.between(0.0, 15_000.0))
    spare = list(founders)
    draws.shuffle(spare)
    leaving = draws.below(1 + min(2, max(0, len(founders) - FEWEST_NODES)))
    lost = 0
    for node in spare[:leaving]:
        kinds = [What.LEAVE, What.LEAVE, What.LEAVE_DEAD, What.LEAVE_NOW]
        what = draws.choice(kinds) if selection.f else What.LEAVE
        if what in _LOSES and lost >= MAX_LOST - 1:
            what = What.LEAVE
        lost += what in _LOSES
        add(what, node)
    if selection.f and draws.chance(0.4):
        add(What.REVOKE, spare[leaving], draws.between(1000.0, 20_000.0))
    if draws.chance(0.25):
        add(What.RESTART_ALL, None)
    return done


# -- versions ----------------------------------------------------------------------------------------------


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a version: its changes. pick: chooses among the alternatives."""

    seed: int
    base: int
    pick: int
    add: NodeId | None = None
    remove: NodeId | None = None

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()


class Compiler:
    """Compiles the versions after the first, each from its text and the version before."""

    def __init__(self, case: Case, topology: Topology, specs: dict[DeviceId, DeviceSpec]) -> None:
        self._seed = case.seed
        self._topology = topology
        self._specs = specs
        self._made = lru_cache(maxsize=None)(self._make)

    def __call__(self, text: str, version: int, previous: Program) -> Program:
        if previous.version != version - 1:
            raise ValueError(f"version {version} follows {version - 1}, not {previous.version}")
        return self._made(text, version, previous)

    def _make(self, text: str, version: int, previous: Program) -> Program:
        edit = msgspec.json.decode(text, type=Edit)
        draws = stream(self._seed, f"operations swarm version {text}")
        nodes = self._nodes(edit, previous)
        devices, routines = sorted(previous.devices), dict(previous.routines)
        settings, selection = previous.settings, previous.plan.settings
        if edit.add is None and edit.remove is None:
            devices = self._devices(previous, devices, draws)
            routines = self._routines(routines, devices, draws, version)
            settings = _settings(settings, draws)
            selection = _selection(selection, draws, len(nodes))
        ground = Ground(self._seed, only(self._topology, nodes), self._specs, selection, settings)
        program = make_program(ground, version, previous, devices, routines, text=text)
        _check(program, previous)
        reborn = {
            name: replace(routine, birth=version)
            for name, routine in routines.items()
            if program.group_of_routine[name] != previous.group_of_routine.get(name)
        }
        if all(reborn[name].birth == routines[name].birth for name in reborn):
            return program
        return make_program(ground, version, previous, devices, routines | reborn, text=text)

    def _nodes(self, edit: Edit, previous: Program) -> list[NodeId]:
        nodes = [node.id for node in previous.plan.nodes]
        if edit.add is not None:
            if edit.add in nodes:
                raise ValueError(f"there is a node {edit.add} already")
            return sorted([*nodes, edit.add])
        if edit.remove is not None and edit.remove not in nodes:
            raise ValueError(f"there is no node {edit.remove}")
        if edit.remove is not None and len(nodes) <= FEWEST_NODES:
            raise ValueError(f"{len(nodes)} nodes are left: {edit.remove} stays")
        return [node for node in nodes if node != edit.remove]

    def _devices(self, previous: Program, devices: list[DeviceId], draws: Draws) -> list[DeviceId]:
        if draws.chance(0.3):
            # The group of a cluster goes with its last device; one cluster must be left.
            first = 0 if len(previous.plan.clusters) > 1 and draws.chance(0.5) else 1
            spare = [one for cluster in previous.plan.clusters for one in cluster.devices[first:]]
            if spare:
                devices.remove(draws.choice(spare))
        absent = sorted(set(self._topology.devices) - set(previous.devices))
        if absent and draws.chance(0.5):
            devices.append(draws.choice(absent))
        return sorted(devices)

    def _routines(
        self,
        routines: dict[RoutineId, RoutineProgram],
        devices: list[DeviceId],
        draws: Draws,
        version: int,
    ) -> dict[RoutineId, RoutineProgram]:
        known = set(devices)
        left = {name: one for name, one in routines.items() if touches(one) <= known}
        if len(left) > 1 and draws.chance(0.4):
            del left[draws.choice(sorted(left))]
        number = 100 * version + draws.below(100)
        drawn = draw_routine(number, version, devices, self._specs, self._seed, until_ms=OPERATING_MS)
        if left and draws.chance(0.4):
            changed = draws.choice(sorted(left))
            left[changed] = replace(drawn, id=changed, birth=left[changed].birth)
        else:
            left[drawn.id] = drawn
        return left


def _settings(settings: ProtocolSettings, draws: Draws) -> ProtocolSettings:
    if not draws.chance(0.3):
        return settings
    return replace(
        settings,
        lease_ms=draws.choice([500, 1000]),
        epoch_ms=draws.choice([8000, 15_000, 60_000]),
        monitoring_ms=draws.choice([500.0, 1000.0]),
    )


def _selection(selection: SelectionSettings, draws: Draws, nodes: int) -> SelectionSettings:
    if not draws.chance(0.3):
        return selection
    wider = [f for f in (1, 2) if nodes > 2 * f]
    return replace(
        selection, f=draws.choice(wider or [selection.f]), cluster_size=draws.choice([2, 3, 5, 25])
    )


def _check(program: Program, previous: Program) -> None:
    """Check a version as a deployment does: everything of an earlier version keeps its place."""
    for device, group in program.group_of_device.items():
        home = previous.homes.get(device, group)
        if home != group:
            raise ValueError(f"{device} was looked after by {home}; here it would be in {group}")

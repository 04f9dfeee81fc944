"""Draws the case of a seed for the swarm: a mesh, its devices and routines, its settings, and its faults.

Small meshes on purpose: three to a dozen nodes in a few clusters meet every interleaving that large ones do,
and a seed takes a second. Waits of the protocol (cold_wait, replace_after, ...) are drawn short, so that what
comes after them happens within a run; leases and resends are as in a deployment.
"""

import dataclasses
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from comesh.core.actions import Action, RoutineStep
from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.membership import MembershipSettings
from comesh.core.plan import Locality, PlannedRoutine, SelectionSettings
from comesh.core.program import (
    DeviceProgram,
    Instants,
    Program,
    ProtocolSettings,
    RoutineProgram,
)
from comesh.core.selection import make_plan
from comesh.core.strategies import Batch, LockOrder, Strategy
from comesh.core.streams import stream
from comesh.core.values import Value
from comesh.drivers.virtual.devices import CommandSpec, DeviceSpec
from comesh.drivers.virtual.sources import Constant, Script, Source
from comesh.sim.fault_schedules import (
    RandomFaults,
    Schedule,
    draw_rates,
    random_schedule,
    without_copies,
)
from comesh.sim.faults import Crash
from comesh.sim.operations import Operation
from comesh.sim.predicates import Comparison, Joined
from comesh.sim.radio import RadioSettings
from comesh.sim.topology import Shape, Topology, make_topology
from comesh.sim.world_settings import WorldSettings

BREAKING_MS = 45_000.0
QUIET_MS = 240_000.0
"""Maximum duration of the quiet phase; it ends sooner when everything has settled."""
FLIGHT_MS = 3000.0
"""Maximum time that a command may stay in the air; the checkers know which ones a fault delays further."""
MAX_ROUTINES = 8
RARE = frozenset({"outage", "copy-card", "wipe", "leave"})
"""Classes of faults that happen less often than the others."""
MAX_VERSIONS = 3


class Asking(msgspec.Struct, frozen=True):
    """A request of a person to a node: fire a routine or, if routine is None, apply the next deployment
    version."""

    at_ms: float
    node: NodeId
    routine: RoutineId | None
    request: str
    base: int = 0


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The case that a seed draws."""

    seed: int
    settings: WorldSettings
    membership: MembershipSettings
    protocol: ProtocolSettings
    selection: SelectionSettings
    faults: Schedule
    askings: tuple[Asking, ...]
    event_devices: tuple[DeviceId, ...]
    operations: tuple[Operation, ...] = ()
    """Further operations of people, in the swarm of operations."""


Drawn = tuple[Case, Topology, Program, dict[DeviceId, DeviceSpec]]
Drawing = Callable[[int], Drawn]


def draw(seed: int) -> Drawn:
    """Draw the case of a seed; the same seed always gives the same case."""
    draws = stream(seed, "group swarm")
    topology = draw_topology(draws, seed)
    protocol = draw_protocol(draws)
    selection = draw_selection(draws, len(topology.nodes), seed)
    program, specs = first_program(seed, topology, selection, protocol)
    events = tuple(sorted(name for name, device in program.devices.items() if device.event))
    rare, usual = [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 2.0, 4.0]
    per_minute = draw_rates(draws, seed, lambda name: rare if name in RARE else usual)
    if selection.f == 0:  # one disk holds the whole group: a fault that takes the disk takes the group
        per_minute["wipe"] = per_minute["copy-card"] = 0.0
    per_minute["outage"] = draws.choice([0.0, 0.0, 1.0, 2.0])
    per_minute["press"] = draws.choice([0.0, 5.0, 15.0])
    wanted = RandomFaults(run_ms=BREAKING_MS + QUIET_MS, quiet_ms=QUIET_MS, per_minute=per_minute)
    case = Case(
        seed=seed,
        settings=draw_world(draws, strict=protocol.strict),
        membership=MembershipSettings(),
        protocol=protocol,
        selection=selection,
        faults=one_copy(random_schedule(topology, wanted, seed, events)),
        askings=_draw_askings(topology, program, seed),
        event_devices=events,
    )
    return case, topology, program, specs


def one_copy(faults: Schedule) -> Schedule:
    """Returns a schedule with at most one copied card (the membership swarm tries many), and none if a disk
    is wiped: a journal on another machine is a stranger's, so both together could destroy a group."""
    wiped = any(isinstance(fault, Crash) and fault.wipes_at_ms is not None for fault in faults.faults)
    return without_copies(faults, 0 if wiped else 1)


def draw_topology(draws: Draws, seed: int) -> Topology:
    shape = draws.choice([Shape.GRID, Shape.RANDOM, Shape.CLUSTERED, Shape.LINE])
    topology = make_topology(
        shape, devices=4 + draws.below(9), smart=draws.choice([0.75, 0.9, 1.0]), seed=seed
    )
    domains = _draw_domains(topology, seed)
    return dataclasses.replace(topology, power_domains=domains)


def _draw_domains(topology: Topology, seed: int) -> dict[str, tuple[NodeId, ...]]:
    draws = stream(seed, "group swarm power")
    if draws.chance(0.4):
        return {}
    names = [f"p{number}" for number in range(1 + draws.below(4))]
    drawn = {node: draws.choice(["", *names]) for node in sorted(topology.nodes)}
    domains = {name: tuple(node for node in drawn if drawn[node] == name) for name in names}
    return {name: nodes for name, nodes in domains.items() if nodes}


def draw_world(draws: Draws, *, strict: bool) -> WorldSettings:
    return WorldSettings(
        radio=RadioSettings(
            hop_ms=draws.choice([1.0, 5.0, 20.0]),
            loss_per_message=draws.choice([0.0, 0.0, 0.01, 0.05]),
            duplicate=draws.choice([0.0, 0.0, 0.02]),
            reorder=draws.choice([0.0, 0.0, 0.05]),
        ),
        skew_ms=draws.choice([0.0, 0.0, 60_000.0]),
        drift_ppm=draws.choice([0.0, 100.0, 10_000.0]),
        start_spread_ms=draws.choice([0.0, 1000.0, 5000.0]),
        through_wire=draws.chance(0.25),
        strict=strict,
        flush_ms=draws.choice([50.0, 50.0, 3000.0]),
    )


def draw_protocol(draws: Draws) -> ProtocolSettings:
    return ProtocolSettings(
        lease_ms=draws.choice([500, 1000]),
        epoch_ms=draws.choice([8000, 15_000, 60_000]),
        monitoring_ms=draws.choice([500.0, 1000.0]),
        strict=draws.chance(0.3),
        batch=draws.choice([Batch.CLUSTER, Batch.CLUSTER, Batch.NONE]),
        order=draws.choice([LockOrder.CLUSTER, LockOrder.DEVICE]),
        estimated_timeouts=draws.chance(0.7),
        flight_limit_ms=FLIGHT_MS,
        cold_wait_ms=draws.choice([2000.0, 6000.0]),
        replace_after_ms=draws.choice([3000.0, 8000.0]),
        ready_wait_ms=draws.choice([1500.0, 5000.0]),
        probe_after_ms=draws.choice([3000.0, 8000.0]),
    )


def draw_selection(draws: Draws, nodes: int, seed: int) -> SelectionSettings:
    f = draws.choice([1, 1, 1, 1, 2, 0])
    local = [Locality.LOCALITY, Locality.RANDOM]
    return SelectionSettings(
        f=f if nodes > 2 * f else min(1, (nodes - 1) // 2),
        seed=seed & 0xFFFF,
        cluster_size=draws.choice([2, 3, 5, 25]),
        clusters=draws.choice(local),
        members=draws.choice(local),
        leaders=draws.choice(local),
        power_domain_rule=draws.chance(0.7),
    )


# -- devices and routines ----------------------------------------------------------------------------------


def draw_specs(seed: int, topology: Topology, until_ms: float = BREAKING_MS) -> dict[DeviceId, DeviceSpec]:
    """Draw specs: every device has a signal of its own, a switch to command, and perhaps events."""
    specs: dict[DeviceId, DeviceSpec] = {}
    for name in sorted(topology.devices):
        draws = stream(seed, f"group swarm device {name}")
        sources: dict[str, Source] = {
            "signal": _wave(draws.choice([4000.0, 9000.0, 25_000.0]) * draws.between(0.8, 1.2), until_ms),
            "on": Constant(False),
        }
        takes_ms = draws.choice([0.0, 20.0, 600.0])
        specs[name] = DeviceSpec(
            sources=sources,
            commands={
                "set": CommandSpec(sets="on", takes_ms=takes_ms),
                "toggle": CommandSpec(toggles="on", takes_ms=takes_ms),
                "blink": CommandSpec(takes_ms=takes_ms),
            },
            event=draws.chance(0.25),
            fences=draws.chance(0.3),
        )
    return specs


def _wave(period_ms: float, until_ms: float) -> Script:
    """Returns a signal that is on and off until the quiet phase: `optimistic` promises no progress against
    rivals that never end."""
    half_ms = period_ms / 2
    changes = int(until_ms // half_ms) + 1
    return Script(tuple((number * half_ms, number % 2 == 1) for number in range(changes)))


def _step(device: DeviceId, specs: dict[DeviceId, DeviceSpec], draws: Draws) -> RoutineStep:
    command = draws.choice(["set", "set", "toggle", "blink"])
    argument: Value | None = draws.chance(0.5) if command == "set" else None
    takes_ms = specs[device].commands[command].takes_ms
    action = Action(
        command=command,
        argument=argument,
        timeout_ms=takes_ms + 1500.0,
        idempotent=command == "set",
        expects=None if argument is None else {"on": argument},
    )
    return RoutineStep(device, action, best_effort=draws.chance(0.3))


def _together(steps: tuple[RoutineStep, ...], draws: Draws) -> tuple[RoutineStep, ...]:
    """Let some commands of some routines start without waiting for the one before."""
    if not draws.chance(0.3):
        return steps
    return steps[:1] + tuple(msgspec.structs.replace(one, together=draws.chance(0.7)) for one in steps[1:])


def draw_routine(
    number: int,
    birth: int,
    devices: Sequence[DeviceId],
    specs: dict[DeviceId, DeviceSpec],
    seed: int,
    *,
    until_ms: float = BREAKING_MS,
) -> RoutineProgram:
    """Draw a routine. until_ms: when its schedule, if it has one, fires for the last time."""
    draws = stream(seed, f"group swarm routine {number}")
    few = devices[: max(2, len(devices) // 2)] if draws.chance(0.5) else devices
    steps = tuple(_step(device, specs, draws) for device in draws.sample(few, 1 + draws.below(4)))
    steps = _together(steps, stream(seed, f"group swarm routine {number} together"))
    routine = RoutineProgram(
        id=RoutineId(f"r{number}"),
        birth=birth,
        strategy=draws.choice(list(Strategy)),
        steps=steps,
        cooldown_ms=draws.choice([0.0, 0.0, 3000.0]),
    )
    events = [device for device in devices if specs[device].event]
    kind = draws.choice(["clause", "clause", "clause", "event", "every", "hand"])
    if kind == "event" and events:
        pressed = Comparison((draws.choice(events), "signal"), "!=", "never")
        return msgspec.structs.replace(routine, on_event=pressed)
    if kind == "every":
        return msgspec.structs.replace(routine, schedule=_every(draws.choice([3000.0, 7000.0]), until_ms))
    if kind == "hand":
        return routine
    first = Comparison((draws.choice(devices), "signal"), "==", True)
    second = Comparison(
        (draws.choice(devices), draws.choice(["on", "up", "signal"])), "==", draws.chance(0.7)
    )
    clause = Joined(draws.chance(0.5), first, second) if draws.chance(0.5) else first
    return msgspec.structs.replace(routine, when=clause, for_ms=draws.choice([0.0, 0.0, 1500.0]))


def _every(period_ms: float, until_ms: float) -> Instants:
    """Returns a schedule that ends, like all triggers, at the quiet phase."""

    def following(after_ms: float) -> float | None:
        instant_ms = (after_ms // period_ms + 1) * period_ms
        return instant_ms if instant_ms < until_ms else None

    return following


class Ground(NamedTuple):
    """The parts that all versions of a seed share."""

    seed: int
    topology: Topology
    specs: dict[DeviceId, DeviceSpec]
    selection: SelectionSettings
    protocol: ProtocolSettings


def make_program(
    ground: Ground,
    version: int,
    previous: Program | None,
    devices: Sequence[DeviceId],
    routines: dict[RoutineId, RoutineProgram],
    *,
    text: str | None = None,
) -> Program:
    """Make the program of a version. text None: it follows from seed and version alone."""
    _, topology, specs, selection, protocol = ground
    planned = [
        PlannedRoutine(id=name, touches=tuple(sorted(touches(routine))))
        for name, routine in sorted(routines.items())
    ]
    known = set(devices)
    plan = make_plan(
        version,
        selection,
        topology.planned_nodes(),
        [device for device in topology.planned_devices() if device.id in known],
        planned,
        previous=None if previous is None else previous.plan,
    )
    first_versions = {} if previous is None else previous.first_versions
    return Program(
        plan=plan,
        devices={
            name: DeviceProgram(
                id=name, event=specs[name].event, flight_ms=FLIGHT_MS, fences=specs[name].fences
            )
            for name in devices
        },
        routines=routines,
        settings=protocol,
        text=json.dumps([ground.seed, version]) if text is None else text,
        first_versions={group: first_versions.get(group, version) for group in plan.genesis},
        previous=previous,
    )


def touches(routine: RoutineProgram) -> set[DeviceId]:
    """Returns the devices of its trigger and of its commands."""
    touched = set(routine.commands)
    for clause in (routine.when, routine.on_event):
        touched |= {DeviceId(device) for device, _ in clause.reads} if clause is not None else set()
    return touched


def first_program(
    seed: int,
    topology: Topology,
    selection: SelectionSettings,
    protocol: ProtocolSettings,
    *,
    devices: Sequence[DeviceId] | None = None,
    until_ms: float = BREAKING_MS,
) -> tuple[Program, dict[DeviceId, DeviceSpec]]:
    """Returns the first version. devices: those that it has, if not all."""
    draws = stream(seed, "group swarm program")
    specs = draw_specs(seed, topology, until_ms)
    devices = sorted(topology.devices if devices is None else devices)
    routines = [
        draw_routine(number, 1, devices, specs, seed, until_ms=until_ms)
        for number in range(1 + draws.below(MAX_ROUTINES))
    ]
    ground = Ground(seed, topology, specs, selection, protocol)
    program = make_program(ground, 1, None, devices, {routine.id: routine for routine in routines})
    return program, specs


class Compiler:
    """Makes the versions after the first, each from the one before: one routine is removed, one added."""

    def __init__(self, case: Case, topology: Topology, specs: dict[DeviceId, DeviceSpec]) -> None:
        self._case = case
        self._topology = topology
        self._specs = specs
        self._made = lru_cache(maxsize=None)(self._make)

    def __call__(self, text: str, version: int, previous: Program) -> Program:
        if previous.version != version - 1:
            raise ValueError(f"version {version} follows {version - 1}, not {previous.version}")
        return self._made(version, previous)

    def _make(self, version: int, previous: Program) -> Program:
        seed = self._case.seed
        draws = stream(seed, f"group swarm version {version}")
        routines = dict(previous.routines)
        if len(routines) > 1 and draws.chance(0.6):
            del routines[draws.choice(sorted(routines))]
        devices = sorted(previous.devices)
        number = 100 * version
        added = draw_routine(number, version, devices, self._specs, seed)
        routines[added.id] = added
        case = self._case
        ground = Ground(seed, self._topology, self._specs, case.selection, case.protocol)
        return make_program(ground, version, previous, devices, routines)


def _draw_askings(topology: Topology, program: Program, seed: int) -> tuple[Asking, ...]:
    draws = stream(seed, "group swarm askings")
    nodes = sorted(topology.nodes)
    askings: list[Asking] = []
    for number in range(draws.below(12)):
        at_ms = round(draws.between(3000.0, BREAKING_MS), 3)
        routine = draws.choice(sorted(program.routines))
        request = f"fire {number if draws.chance(0.8) else 0}"
        askings.append(Asking(at_ms, draws.choice(nodes), routine, request))
    for number in range(draws.below(MAX_VERSIONS + 1)):
        at_ms = round(draws.between(5000.0, BREAKING_MS), 3)
        askings.append(Asking(at_ms, draws.choice(nodes), None, f"apply {number}", 1 + number))
    return tuple(sorted(askings, key=lambda asking: asking.at_ms))

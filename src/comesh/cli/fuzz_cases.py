"""Describes a seed's case in words: the mesh, its settings, its routines, and its faults, one per line."""

from collections.abc import Iterator

from comesh.cli.fuzz_findings import SwarmKind
from comesh.cli.terminal import number
from comesh.core.membership import MembershipSettings
from comesh.core.program import RoutineProgram
from comesh.sim import membership_swarm, operations_case, swarm_case
from comesh.sim.fault_schedules import Schedule
from comesh.sim.swarm_case import Asking, Case, Drawing
from comesh.sim.world_settings import WorldSettings


def case_lines(seed: int, kind: SwarmKind, case: Case | None = None) -> list[str]:
    """Yields the lines of a case; case: what is left of it, where it was reduced."""
    if kind is SwarmKind.MEMBERSHIP:
        return list(_of_membership(seed))
    drawing = operations_case.draw if kind is SwarmKind.OPERATIONS else swarm_case.draw
    return list(_of_groups(seed, drawing, case))


def fault_lines(faults: Schedule) -> list[str]:
    return [f"faults: {len(faults.faults)}", *(f"  {line.strip()}" for line in faults.describe())]


def asking_lines(case: Case) -> list[str]:
    asked = [*map(_asking, case.askings), *map(str, case.operations)]
    return [f"asked by people: {len(asked)}", *(f"  {line}" for line in asked)]


def _of_groups(seed: int, drawing: Drawing, reduced: Case | None) -> Iterator[str]:
    drawn, topology, program, _ = drawing(seed)
    case = reduced or drawn
    domains = "; ".join(f"{name}: {', '.join(nodes)}" for name, nodes in topology.power_domains.items())
    devices = len(topology.devices)
    yield f"seed {seed}: {topology.name}, {number(len(topology.nodes), 'node')}, {number(devices, 'device')}"
    yield f"  power domains: {domains or 'none'}"
    later = sorted(set(topology.nodes) - set(program.roster.ids))
    if later:
        yield f"  not in the first version: {', '.join(later)}"
    for group, nodes in sorted(program.plan.genesis.items()):
        yield f"  {group} begins with {', '.join(nodes)}"
    for line in _world(case.settings, case.membership):
        yield f"  {line}"
    protocol, selection = case.protocol, case.selection
    yield (
        f"  protocol: lease {protocol.lease_ms} ms, epoch {protocol.epoch_ms / 1000:g} s, "
        f"{'strict' if protocol.strict else 'batched'} durability, lock batches: {protocol.batch}, "
        f"lock order: {protocol.order}, {'estimated' if protocol.estimated_timeouts else 'fixed'} timeouts"
    )
    yield (
        f"  waits: cold {protocol.cold_wait_ms:g} ms, replace after {protocol.replace_after_ms:g} ms, "
        f"ready {protocol.ready_wait_ms:g} ms, probe after {protocol.probe_after_ms:g} ms"
    )
    yield (
        f"  selection: f={selection.f}, clusters of {selection.cluster_size}, members {selection.members}, "
        f"leaders {selection.leaders}"
    )
    yield f"  routines: {len(program.routines)}"
    for routine in program.routines.values():
        yield f"    {_routine(routine)}"
    for line in [*asking_lines(case), *fault_lines(case.faults)]:
        yield f"  {line}"


def _routine(routine: RoutineProgram) -> str:
    match routine:
        case RoutineProgram(when=clause) if clause is not None:
            trigger = f"when {_reads(clause.reads)}"
        case RoutineProgram(on_event=clause) if clause is not None:
            trigger = f"on events of {_reads(clause.reads)}"
        case RoutineProgram(schedule=schedule) if schedule is not None:
            trigger = "on a schedule"
        case _:
            trigger = "by hand"
    steps = ", ".join(
        f"{'with ' if step.together else ''}{step.device} {step.action.command}"
        f"{' (best effort)' if step.best_effort else ''}"
        for step in routine.steps
    )
    return f"{routine.id}: {routine.strategy}, {trigger}: {steps}"


def _reads(names: frozenset[tuple[str, str]]) -> str:
    return ", ".join(f"{device}.{reading}" for device, reading in sorted(names))


def _asking(asking: Asking) -> str:
    what = f"version {asking.base + 1}" if asking.routine is None else f"fire {asking.routine}"
    return f"{asking.at_ms / 1000:.3f} s  {asking.node}: {what} ({asking.request})"


def _of_membership(seed: int) -> Iterator[str]:
    case, _ = membership_swarm.draw(seed)
    yield f"seed {seed}: {case.topology} of {number(case.nodes, 'node')}"
    probing = "near nodes more often" if case.membership.spatial else "all nodes alike"
    for line in [
        *_world(case.settings, case.membership),
        f"membership probes {probing}",
        f"announcements posted: {len(case.postings)}",
        *fault_lines(case.faults),
    ]:
        yield f"  {line}"


def _world(settings: WorldSettings, membership: MembershipSettings) -> list[str]:
    """Describes the settings of the radio, the clocks and the start."""
    radio = settings.radio
    air = [f"hop {radio.hop_ms:g} ms"]
    rates = (
        ("loss per hop", radio.loss_per_hop),
        ("loss per message", radio.loss_per_message),
        ("duplicates", radio.duplicate),
        ("reordered", radio.reorder),
    )
    air += [f"{name} {100 * rate:g} %" for name, rate in rates if rate]
    if radio.reorder:
        air[-1] += f", held up by up to {radio.reorder_ms:g} ms"
    return [
        f"radio: {', '.join(air)}",
        f"clocks: off by up to {settings.skew_ms / 1000:g} s, drift up to {settings.drift_ppm:g} ppm",
        f"nodes start within {settings.start_spread_ms / 1000:g} s; "
        f"membership period {membership.period_ms:g} ms",
    ]

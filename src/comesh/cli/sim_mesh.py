"""The mesh of `comesh sim`: of a document with its program, or a shape with the paper's workload."""

from pathlib import Path
from typing import NamedTuple

from comesh.cli.documents import read_deployment
from comesh.cli.own_policies import Names
from comesh.cli.terminal import fail
from comesh.core.ids import DeviceId
from comesh.core.membership import MembershipSettings
from comesh.core.plan import SelectionSettings
from comesh.core.program import Program, ProtocolSettings
from comesh.core.selection import PlanningError
from comesh.core.strategies import Strategy, strategy_named
from comesh.deployment.planning import plan_of
from comesh.deployment.program import program_of
from comesh.drivers.virtual.devices import DeviceSpec
from comesh.drivers.virtual.document_devices import device_specs
from comesh.sim.radio import HOP_MS
from comesh.sim.topology import (
    REACH_SPACINGS,
    SPACING_MM,
    Relays,
    Shape,
    Topology,
    make_topology,
    topology_of_plan,
)
from comesh.sim.workloads import Timing, paper_workload

DEVICES = 250
SMART = 0.4
DEVICES_PER_ROUTINE = 5
FIRST_FIRING_MS = 10_000.0
FIRING_EVERY_MS = 60_000.0
"""Window in which each routine of the workload fires once, at any time in its first half."""


class Given(NamedTuple):
    """The mesh as the command line gives it; None: it leaves this open."""

    shape: Shape | None
    devices: int | None
    smart: float | None
    reach: float | None
    relays: Relays
    routines: int | None
    membership_only: bool
    seed: int
    run_ms: float
    names: Names


class Mesh(NamedTuple):
    topology: Topology
    membership: MembershipSettings
    hop_ms: float
    devices: dict[DeviceId, DeviceSpec]
    program: Program | None
    """The program of the mesh; None: membership only."""

    @property
    def strict(self) -> bool:
        """Says if disks keep only what was flushed."""
        return self.program is not None and self.program.settings.strict


def shaped(given: Given) -> Mesh:
    topology = make_topology(
        given.shape or Shape.GRID,
        devices=DEVICES if given.devices is None else given.devices,
        smart=SMART if given.smart is None else given.smart,
        seed=given.seed,
        reach=REACH_SPACINGS if given.reach is None else given.reach * 1000 / SPACING_MM,
        relays=given.relays,
    )
    if given.membership_only:
        return Mesh(topology, MembershipSettings(), HOP_MS, {}, None)
    if len(topology.devices) < 2:
        fail("routines need at least two devices, one that fires and one that acts; or say --membership-only")
    routines = max(1, len(topology.devices) // DEVICES_PER_ROUTINE)
    try:
        workload = paper_workload(
            topology,
            given.names.selection(min(SelectionSettings().f, (len(topology.nodes) - 1) // 2)),
            ProtocolSettings(),
            routines=routines if given.routines is None else given.routines,
            seed=given.seed,
            strategies=(strategy_named(given.names.strategy or str(Strategy.SEQUENTIAL)),),
            alone=False,
            timing=Timing(
                first_ms=FIRST_FIRING_MS,
                window_ms=FIRING_EVERY_MS,
                firings=max(1, int((given.run_ms - FIRST_FIRING_MS / 2) // FIRING_EVERY_MS)),
            ),
        )
    except PlanningError as wrong:
        fail(str(wrong))
    return Mesh(topology, MembershipSettings(), HOP_MS, workload.devices, workload.program)


def of_document(file: Path, given: Given) -> Mesh:
    deployment = read_deployment(file)
    if not deployment.nodes:
        fail(f"{file} names no nodes: there is nothing to run")
    reach_mm = None if given.reach is None else round(given.reach * 1000)
    program = None if given.membership_only else program_of(deployment)
    plan = plan_of(deployment) if program is None else program.plan
    name = deployment.name or file.name
    topology = topology_of_plan(plan, name=name, reach_mm=reach_mm, relays=given.relays)
    settings = deployment.settings
    membership = MembershipSettings(period_ms=settings.membership_period_ms)
    return Mesh(topology, membership, settings.hop_ms, device_specs(deployment, given.seed), program)

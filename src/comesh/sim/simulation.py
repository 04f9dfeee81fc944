"""The simulator as a library: a topology, faults and a duration go in; a report comes out.

    simulation = Simulation(make_topology(Shape.GRID, devices=50), seed=1)
    simulation.run(minutes=1)
    print(simulation.report().events)

The world underneath is open: `simulation.world` has the machines, the traffic, the devices' log, and
`observers` to add to before running.
"""

import time
from collections.abc import Callable, Mapping

from comesh.core.group.versions import Compile
from comesh.core.ids import DeviceId
from comesh.core.membership import MembershipSettings
from comesh.core.node import no_compiler
from comesh.core.program import Program
from comesh.drivers.virtual.devices import DeviceSpec
from comesh.sim.fault_schedules import Schedule, inject
from comesh.sim.members import members
from comesh.sim.report import Report, spread, stops, traffic_by_kind, traffic_by_node
from comesh.sim.topology import Topology
from comesh.sim.trace import Trace
from comesh.sim.watch import MembershipWatch
from comesh.sim.world import NodeFactory, World
from comesh.sim.world_settings import WorldSettings

Progress = Callable[[float], None]
"""Called with the simulated milliseconds so far."""

_SLICE_MS = 1000.0


class Simulation:
    """One run. Without `make_node` it runs the core's nodes with these membership settings."""

    def __init__(
        self,
        topology: Topology,
        *,
        seed: int = 0,
        settings: WorldSettings | None = None,
        membership: MembershipSettings | None = None,
        joined: bool = False,
        make_node: NodeFactory | None = None,
        faults: Schedule | None = None,
        devices: Mapping[DeviceId, DeviceSpec] | None = None,
        program: Program | None = None,
        compile_text: Compile = no_compiler,
        trace: Trace | None = None,
    ) -> None:
        if make_node is None:
            make_node = members(
                topology,
                membership or MembershipSettings(),
                seed=seed,
                joined=joined,
                program=program,
                compile_text=compile_text,
            )
        self.seed = seed
        self.world = World(
            topology,
            make_node,
            seed=seed,
            settings=settings or WorldSettings(),
            devices=devices,
            trace=trace,
        )
        self.watch = MembershipWatch(self.world)
        self._cpu_s = 0.0
        if faults is not None:
            inject(self.world, faults)

    def run(self, *, minutes: float = 0.0, seconds: float = 0.0, progress: Progress | None = None) -> None:
        """Run for this much simulated time."""
        began_s = time.process_time()
        world = self.world
        end_ms = world.now_ms + minutes * 60_000.0 + seconds * 1000.0
        if progress is None:
            world.run_until(end_ms)
        else:
            while world.now_ms < end_ms:
                world.run_until(min(world.now_ms + _SLICE_MS, end_ms))
                progress(world.now_ms)
        self._cpu_s += time.process_time() - began_s

    def report(self) -> Report:
        """Returns the report so far."""
        world = self.world
        topology = world.topology
        per_node = traffic_by_node(world)
        seconds = world.now_ms / 1000.0
        sent = [row.sent.size_bytes for row in per_node]
        transmitted = [row.sent.size_bytes + row.relayed.size_bytes for row in per_node]
        return Report(
            topology=topology.name,
            seed=self.seed,
            stations=len(topology.places),
            nodes=len(topology.nodes),
            devices=len(topology.devices),
            simulated_s=seconds,
            cpu_s=self._cpu_s,
            events=world.engine.handled,
            traffic=traffic_by_kind(world.traffic),
            end_to_end_bytes_per_s=spread(sent, seconds),
            hop_by_hop_bytes_per_s=spread(transmitted, seconds),
            per_node=per_node,
            detections=tuple(self.watch.detections()),
            false_suspicions=self.watch.false_alarms["suspect"],
            false_deaths=self.watch.false_alarms["dead"],
            stopped=stops(world),
            trace_digest=None if world.trace is None else world.trace.digest(),
        )

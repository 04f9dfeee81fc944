"""How fast whole meshes are simulated: sensing, membership, groups with epochs, a routine every ten seconds.

    python benchmarks/protocol_speed.py DEVICES SECONDS CHECKED

measures one mesh and prints JSON: a process of its own, so that its memory is its own too. Speed is simulated
seconds per second of CPU time, building the mesh and its first, busiest seconds included.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec

from comesh.core.plan import SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.core.strategies import Strategy
from comesh.sim.checks import Checks
from comesh.sim.simulation import Simulation
from comesh.sim.topology import Shape, make_topology
from comesh.sim.workloads import Timing, paper_workload
from protocol_rows import Row, at_least, at_most

F = 2
FIRES_MS = 10_000.0
TIMES_CHECKED, TIMES_UNCHECKED, TIMES_LARGE = 20.0, 40.0, 1.0
LARGE_MIB = 4096
REPEATS = 3


class Speed(msgspec.Struct, frozen=True):
    times: float
    """Real time."""
    us_per_event: float
    events: int
    nodes: int
    acts: int
    mib: int


def measure(devices: int, seconds: float, *, checked: bool, seed: int = 1) -> Speed:
    began_s = time.process_time()
    topology = make_topology(Shape.GRID, devices=devices, seed=seed)
    work = paper_workload(
        topology,
        SelectionSettings(f=F),
        ProtocolSettings(),
        routines=max(1, int(seconds * 1000 / FIRES_MS)),
        seed=seed,
        strategies=tuple(Strategy),
        timing=Timing(first_ms=5000.0, window_ms=FIRES_MS),
    )
    simulation = Simulation(topology, seed=seed, program=work.program, devices=work.devices, joined=True)
    checks = Checks.attach(simulation.world, work.program) if checked else None
    simulation.run(seconds=seconds)
    if checks is not None:
        checks.finish()
        assert not checks.violations, checks.violations[0]
    took_s = time.process_time() - began_s
    world = simulation.world
    return Speed(
        times=seconds / took_s,
        us_per_event=took_s / world.engine.handled * 1e6,
        events=world.engine.handled,
        nodes=len(topology.nodes),
        acts=len(world.devices.log),
        mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )


def apart(devices: int, seconds: float, *, checked: bool) -> Speed:
    """Measured in a process of its own."""
    command = [sys.executable, __file__, str(devices), str(seconds), str(int(checked))]
    done = subprocess.run(command, check=True, capture_output=True)
    return msgspec.json.decode(done.stdout, type=Speed)


def best(devices: int, seconds: float, repeats: int, *, checked: bool) -> Speed:
    found = [apart(devices, seconds, checked=checked) for _ in range(repeats)]
    return max(found, key=lambda speed: speed.times)


def told(speed: Speed) -> str:
    return f"{speed.us_per_event:.1f} us per event, {speed.acts} commands, {speed.mib} MiB"


def rows(*, quick: bool) -> Iterator[Row]:
    devices, seconds = (50, 20.0) if quick else (250, 120.0)
    repeats = 1 if quick else REPEATS
    for checked, bar in ((True, TIMES_CHECKED), (False, TIMES_UNCHECKED)):
        speed = best(devices, seconds, repeats, checked=checked)
        how = "checked" if checked else "not checked"
        what = f"{devices} devices, {speed.nodes} nodes, {how}: times real time"
        yield at_least(what, speed.times, bar, told(speed))
    if quick:
        return
    speed = apart(2500, 60.0, checked=False)
    what = f"2500 devices, {speed.nodes} nodes: times real time"
    yield at_least(what, speed.times, TIMES_LARGE, told(speed))
    yield at_most(f"2500 devices, {speed.nodes} nodes: memory, MiB", speed.mib, LARGE_MIB)


if __name__ == "__main__":
    found = measure(int(sys.argv[1]), float(sys.argv[2]), checked=sys.argv[3] == "1")
    sys.stdout.write(msgspec.json.encode(found).decode())

"""How much a simulation of a large mesh takes, in a process of its own, so that memory is its own as well.

    python -m comesh.experiments.measures.scale '{"preset": "default", "devices": 1000, "seed": 1, ...}'

Nodes begin joined. Routines of the paper fire while the mesh works, once each. What is read off it:

- wall time and CPU time per simulated second, of the run alone; making the mesh is told apart;
- the peak of the resident memory of the process, as the kernel tells it;
- messages and bytes per node and second: sent, end to end, and transmitted by all radios, hop by hop; from
  when the groups are up;
- the client delay in hops, as `delays.py` has it, and the ideal beside it.
"""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import msgspec

from comesh.core.strategies import Strategy
from comesh.experiments.measures.delays import Watch
from comesh.experiments.measures.mesh import Mesh
from comesh.experiments.measures.presets import Running, running
from comesh.experiments.stage import Parameters, Row, percentile
from comesh.sim.topology import Shape, Topology, make_topology
from comesh.sim.workloads import Timing, Workload, paper_workload

UP_S = 5.0
"""By then the groups are up: what is sent before is not counted."""
QUIET_S = 10.0
"""After the last firing, for it to come to its first command."""


def measured_apart(case: Parameters) -> Row:
    """In a fresh process: what this one holds already does not count."""
    asked = msgspec.json.encode(case).decode()
    done = subprocess.run([sys.executable, "-m", __name__, asked], capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{asked}: {done.stderr.decode(errors='replace')[-2000:]}")
    found: Row = msgspec.json.decode(done.stdout)
    return found


def measured(case: Parameters) -> Row:
    """`made_s` is wall time until the mesh is there; `wall_s` and `cpu_s` are of the run."""
    seconds: float = case["seconds"]
    began_s = time.monotonic()
    topology = make_topology(Shape.GRID, devices=case["devices"], seed=case["seed"])
    setup = running(case["preset"], seed=case["seed"])
    work = _workload(topology, setup, case)
    mesh = Mesh.of(topology, work.program, work.devices, setup, seed=case["seed"])
    watch = Watch(mesh)
    ready_s, ready_cpu_s = time.monotonic(), time.process_time()
    mesh.run(UP_S)
    before = mesh.world.traffic.total()
    mesh.run(seconds - UP_S)
    after = mesh.world.traffic.total()
    done_s, done_cpu_s = time.monotonic(), time.process_time()
    delays, ideals = _delays(mesh, watch, setup.radio.hop_ms)
    per = len(topology.nodes) * (seconds - UP_S)
    wall_s, cpu_s, events = done_s - ready_s, done_cpu_s - ready_cpu_s, mesh.world.engine.handled
    return {
        "nodes": len(topology.nodes),
        "groups": len(work.program.plan.clusters),
        "made_s": ready_s - began_s,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "memory_mb": _peak_memory_mb(),
        "events": events,
        "messages_per_s": (after.sent.messages - before.sent.messages) / per,
        "bytes_per_s": (after.sent.size_bytes - before.sent.size_bytes) / per,
        "transmitted_bytes_per_s": (after.transmitted.size_bytes - before.transmitted.size_bytes) / per,
        "false_suspicions": mesh.simulation.report().false_suspicions,
        "fired": len(delays),
        "delay_hops": median(delays),
        "delay_hops_95": percentile(delays, 95),
        "ideal_hops": median(ideals),
        "wall_per_simulated_s": wall_s / seconds,
        "cpu_per_simulated_s": cpu_s / seconds,
        "events_per_simulated_s": events / seconds,
    }


def _peak_memory_mb() -> float:
    """Of this process since it began to run this program. getrusage would not do: its ru_maxrss also counts
    what the process that started it held."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("this kernel does not tell the peak of a process's memory")


def _workload(topology: Topology, setup: Running, case: Parameters) -> Workload:
    """Each routine fires once, at any time between UP_S and QUIET_S before the end."""
    return paper_workload(
        topology,
        setup.selection,
        setup.protocol,
        routines=case["routines"],
        seed=case["seed"],
        strategies=(Strategy.SEQUENTIAL,),
        alone=False,
        timing=Timing(
            first_ms=UP_S * 1000, window_ms=2 * (case["seconds"] - UP_S - QUIET_S) * 1000, firings=1
        ),
    )


def _delays(mesh: Mesh, watch: Watch, hop_ms: float) -> tuple[list[float], list[int]]:
    sent = [act.command for act in mesh.world.devices.log]
    left_ms = {one.origin.run: one.sent_ms for one in sent if one.origin is not None and one.origin.step == 0}
    done = [run for run in watch.began if run in left_ms]
    took = [(left_ms[run] - watch.began[run]) / hop_ms for run in done]
    return took, [watch.ideals[run] for run in done]


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(measured(msgspec.json.decode(sys.argv[1]))))

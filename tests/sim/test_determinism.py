"""A run is a function of its seed, byte for byte, whatever the process and its hash seed."""

import io
import json
import os
import subprocess
import sys

from comesh.sim import DRAWN, RandomFaults, Shape, Simulation, Trace, make_topology, random_schedule
from comesh.sim.radio import RadioSettings
from comesh.sim.world_settings import WorldSettings


def digest(seed: int, file: io.BytesIO | None = None) -> str:
    """Returns the hash of every event of a run with all kinds of faults."""
    topology = make_topology(Shape.CLUSTERED, devices=30, seed=seed)
    wanted = RandomFaults(run_ms=60_000.0, quiet_ms=20_000.0, per_minute=dict.fromkeys(DRAWN, 3.0))
    simulation = Simulation(
        topology,
        seed=seed,
        settings=WorldSettings(radio=RadioSettings(loss_per_hop=0.02), skew_ms=1000.0, drift_ppm=50.0),
        faults=random_schedule(topology, wanted, seed),
        trace=Trace(file),
    )
    simulation.run(minutes=1)
    report = simulation.report()
    assert report.trace_digest is not None
    traffic = json.dumps(
        [[row.kind, row.sent.size_bytes, row.transmitted.size_bytes] for row in report.traffic]
    )
    return f"{report.trace_digest} {report.events} {traffic}"


def test_the_same_in_other_processes_with_other_hash_seeds() -> None:
    here = digest(7)
    for hash_seed in ("0", "1", "12345"):
        there = subprocess.run(
            [sys.executable, "-c", "import test_determinism; print(test_determinism.digest(7))"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.path.dirname(__file__)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == here


def test_another_seed_is_another_run() -> None:
    assert digest(7) == digest(7) != digest(8)


def test_the_trace_is_lines_of_json_in_order_of_time() -> None:
    file = io.BytesIO()
    digest(7, file)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert len(lines) > 1000
    times = [line[0] for line in lines]
    assert times == sorted(times)
    kinds = {line[2] for line in lines}
    assert {"Started", "MessageReceived", "TimerFired", "Crash", "Leave"} <= kinds

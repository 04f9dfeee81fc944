"""Benchmarks fail when a bar is missed: their verdicts, without the measuring."""

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def benchmark(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_every_benchmark_can_be_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    benchmark(name)


@pytest.mark.parametrize(("times", "code"), [(5.0, 0), (4.9, 1)])
def test_a_slow_simulator_fails(times: float, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = benchmark("simulator")
    monkeypatch.setattr(sys, "argv", ["simulator.py"])
    monkeypatch.setattr(simulator, "toys", lambda nodes, seconds: None)
    monkeypatch.setattr(simulator, "membership", lambda nodes, seconds, joined: times)
    assert simulator.main() == code


@pytest.mark.parametrize("arguments", [[], ["--json"]])
@pytest.mark.parametrize(
    ("worst_s", "undetected", "periods", "cut_off", "code"),
    [
        (3.9, 0, [4.0, 5.0], 0, 0),
        (4.1, 0, [4.0], 0, 1),
        (3.9, 1, [4.0], 0, 1),
        (math.inf, 4, [4.0], 0, 1),
        (3.9, 0, [5.1], 0, 1),
        (3.9, 0, [5.1], 2, 0),
        (3.9, 0, [], 0, 1),
    ],
)
def test_late_or_unnoticed_losses_fail(
    *,
    worst_s: float,
    undetected: int,
    periods: list[float],
    cut_off: int,
    code: int,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    membership = benchmark("membership")
    row = membership.Row("medley", 10, 0.0, 5, 1.0, 1.0, 1.0, worst_s, undetected, 0.0, 0.0, 1.0, 1.0, 1.0)
    power = membership.PowerRow("office", "core", 3, 11, cut_off, periods, 0 if periods else 2)
    monkeypatch.setattr(sys, "argv", ["membership.py", *arguments])
    monkeypatch.setattr(membership, "rows", lambda sizes: iter([row]))
    monkeypatch.setattr(membership, "power_rows", lambda seeds: iter([power]))
    assert membership.main() == code


@pytest.mark.parametrize("arguments", [[], ["--json"]])
@pytest.mark.parametrize(("ratio", "met", "code"), [(1.4, True, 0), (1.6, False, 1), (9.9, None, 0)])
def test_a_slow_protocol_fails(
    *, ratio: float, met: bool | None, code: int, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    protocol = benchmark("protocol")
    row = protocol.Row("delay against the ideal", ratio, "", met)
    monkeypatch.setattr(sys, "argv", ["protocol.py", "delay", *arguments])
    monkeypatch.setitem(protocol.PARTS, "delay", lambda quick: iter([row]))
    assert protocol.main() == code


def test_the_ideal_of_a_run_is_what_an_empty_mesh_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a radio that counts hops only, without epochs: the protocol does nothing that the ideal lacks."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    delay = benchmark("protocol_delay")
    calm = delay.delays(delay.Shape.GRID, delay.Strategy.PRIORITY, 2, 1, paper=False, devices=60)
    assert len(calm) == 2
    assert all(one.took == pytest.approx(one.ideal) for one in calm)


def test_the_protocol_costs_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    counts = benchmark("protocol_counts")
    mesh = counts.mesh(counts.Shape.GRID, 1, devices=50)
    mesh.run(counts.WARM_S)
    assert counts.commit_row(counts.Shape.GRID, [mesh]).met
    group = mesh.commits[0].group
    failover = counts.fail_over(mesh, group, counts.crash_leader(mesh, group))
    assert failover is not None
    assert failover.round_trips == pytest.approx(counts.FAILOVER_ROUND_TRIPS)
    assert counts.idle_row().met


def test_speed_is_measured_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    speed = benchmark("protocol_speed").apart(25, 4.0, checked=True)
    assert speed.nodes == 10
    assert speed.events > 0
    assert speed.times > 0


def test_a_firing_is_profiled_from_its_report_to_its_last_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    walk = benchmark("walk")
    found = walk.measure()
    files = {function.file for function in found.calls}
    assert {"node.py", "devices/calls.py", "routines/runs.py", "group/leadership.py"} <= files
    assert not any(file.startswith("../") for file in files)
    stages = [stage for stage, part in found.stages() if part.calls]
    assert stages == list(walk.STAGES.values())
    assert next(step.stage for step in found.steps) == walk.STAGES["door"]
    assert [step.stage for step in found.steps][-1] == walk.STAGES["acked"]
    assert found.calls.total() <= walk.MAX_CALLS
    assert found.empty_wake_ups == 0

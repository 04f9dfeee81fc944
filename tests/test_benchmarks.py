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

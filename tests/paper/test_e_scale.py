"""E: what a mesh costs is measured in a process of its own, all firings run, and the bar can be missed."""

from types import SimpleNamespace
from typing import Any

import pytest

from comesh.experiments.e_scale import LARGEST, bars, cases, draw, run, tables
from comesh.experiments.measures import scale
from comesh.experiments.measures.scale import measured_apart
from comesh.experiments.stage import Row, Scale, Table
from comesh.sim.topology import Topology, make_topology


@pytest.fixture(scope="module")
def table() -> Table:
    """The second mesh has four times the devices of the first."""
    points = [
        {"preset": preset, "devices": devices, "seed": 1, "seconds": 20.0}
        for preset, devices in (("default", 40), ("default", 160), ("paper", 40))
    ]
    return Table({**case, **row} for case in points for row in run(case))


def test_a_larger_mesh_costs_more(table: Table) -> None:
    (small,), (large,) = (table.where(preset="default", devices=devices).rows for devices in (40, 160))
    assert (small["nodes"], large["nodes"]) == (16, 64)
    assert large["events"] > 3 * small["events"]
    assert large["cpu_s"] > small["cpu_s"]
    assert large["memory_mb"] > small["memory_mb"]
    assert 0.5 < large["bytes_per_s"] / small["bytes_per_s"] < 2, "per node"
    assert small["delay_hops"] < large["delay_hops"] < 4 * small["delay_hops"], "by the edge of the grid"


def test_every_firing_runs_no_faster_than_the_ideal(table: Table) -> None:
    for row in table:
        assert row["fired"] == row["routines"] > 0
        assert row["delay_hops"] >= row["ideal_hops"] > 0


def test_memory_is_that_of_a_fresh_process(table: Table) -> None:
    held = bytearray(400 * 1024 * 1024)
    point = {"preset": "default", "devices": 20, "seed": 1, "seconds": 18.0, "routines": 4}
    assert 20 < measured_apart(point)["memory_mb"] < 300
    assert held[-1] == 0


def test_a_point_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="'nonsense' is not a valid Preset"):
        measured_apart({"preset": "nonsense", "devices": 20, "seed": 1, "seconds": 18.0, "routines": 4})


def test_the_sizes_are_as_asked() -> None:
    assert {case["devices"] for case in cases(Scale.FULL)} == {250, 500, 1000, 2500, 5000, 10_000}
    assert max(case["devices"] for case in cases(Scale.FULL) if case["preset"] == "paper") == 1000
    assert max(case["devices"] for case in cases(Scale.QUICK)) == 500


def test_making_the_mesh_is_wall_time_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it waits, and needs no processor."""
    clock = SimpleNamespace(now_s=0.0, process_time=lambda: 0.0)
    clock.monotonic = lambda: clock.now_s

    def waits(*arguments: Any, **named: Any) -> Topology:
        clock.now_s += 300.0
        return make_topology(*arguments, **named)

    monkeypatch.setattr(scale, "time", clock)
    monkeypatch.setattr(scale, "make_topology", waits)
    point = {"preset": "default", "devices": 20, "seed": 1, "seconds": 18.0, "routines": 4}
    measured = scale.measured(point)
    assert (measured["made_s"], measured["wall_s"]) == (300.0, 0.0)


@pytest.mark.parametrize(
    ("wall_s", "memory_mb", "met"), [(600, 3000, True), (1900, 3000, False), (600, 13_000, False)]
)
def test_the_bar_can_be_missed(table: Table, wall_s: float, memory_mb: float, met: bool) -> None:
    (base,) = table.where(preset="default", devices=40).rows
    large: Row = {**base, "devices": LARGEST, "wall_s": wall_s, "memory_mb": memory_mb}
    *first, fired, suspected = bars(Table([base, large]))
    assert all(one.met for one in first) is met
    assert fired.met and suspected.met
    lost = {**large, "fired": base["fired"] - 1, "false_suspicions": 10**6}
    assert [one.met for one in bars(Table([base, lost]))[-2:]] == [False, False]


def test_what_grows_is_tabulated_and_drawn(table: Table) -> None:
    by_size, grown = tables(table).values()
    assert len(by_size) == 3
    (times,) = grown.where(preset="default")
    assert times["devices"] == "40 to 160"
    assert times["events per simulated second"].value > 3
    assert len(draw(table).axes) == 6

"""The simulator as a library, with the core's own nodes: detections, false alarms, the documented example."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from comesh.core.ids import NodeId
from comesh.sim import Schedule, Shape, Simulation, make_topology
from comesh.sim.fault_schedules import crashes
from comesh.sim.faults import Crash, Leave, Pause, Restart
from comesh.sim.report import spread

DOCS = Path(__file__).parent.parent.parent / "docs"
GRID = make_topology(Shape.GRID, devices=30, seed=1)
NODES = sorted(GRID.nodes)


def test_crashes_are_detected_by_all_without_false_alarms() -> None:
    simulation = Simulation(GRID, seed=1, faults=crashes(NODES[:2], first_ms=20_000.0, every_ms=10_000.0))
    simulation.run(minutes=1)
    report = simulation.report()
    assert [(found.node, found.known_by, found.of) for found in report.detections] == [
        (NODES[0], 11, 11),
        (NODES[1], 10, 10),
    ]
    for found in report.detections:
        assert found.first_after_ms is not None
        assert found.last_after_ms is not None
        assert 0 < found.first_after_ms <= found.last_after_ms < 15_000
    assert (report.false_suspicions, report.false_deaths) == (0, 0)
    assert report.simulated_s == 60
    assert report.nodes == 12
    assert len(report.per_node) == 12


def test_a_node_that_comes_back_and_one_that_leaves() -> None:
    faults = Schedule(
        (
            Crash(at_ms=20_000.0, node=NODES[0]),
            Restart(at_ms=20_100.0, node=NODES[0]),
            Leave(at_ms=30_000.0, node=NODES[1]),
        )
    )
    simulation = Simulation(GRID, seed=1, faults=faults)
    simulation.run(minutes=1)
    report = simulation.report()
    (found,) = report.detections
    assert found.over
    assert [life.machine for life in report.stopped] == [NODES[1]]
    assert report.false_deaths == 0


def test_a_long_pause_is_a_false_alarm() -> None:
    simulation = Simulation(
        GRID, seed=1, faults=Schedule((Pause(at_ms=20_000.0, node=NODES[0], for_ms=20_000.0),))
    )
    simulation.run(minutes=1)
    report = simulation.report()
    assert report.false_deaths >= 1
    assert report.detections == ()


def test_nodes_that_have_met_already_stay_quiet() -> None:
    simulation = Simulation(GRID, seed=1, joined=True)
    simulation.run(seconds=20)
    assert simulation.watch.changes == 0
    assert simulation.report().traffic != ()


def test_reporting_progress_changes_nothing() -> None:
    told: list[float] = []
    watched, plain = Simulation(GRID, seed=1), Simulation(GRID, seed=1)
    watched.run(seconds=2.5, progress=told.append)
    plain.run(seconds=2.5)
    assert told == [1000.0, 2000.0, 2500.0]
    assert watched.report().events == plain.report().events


def test_sent_is_received_lost_or_under_way() -> None:
    simulation = Simulation(GRID, seed=1)
    simulation.run(seconds=30)
    for row in simulation.report().traffic:
        under_way = row.sent.messages - row.received.messages - sum(row.lost.values())
        assert 0 <= under_way <= 12
        assert row.transmitted.messages == row.sent.messages + row.relayed.messages


def test_spread() -> None:
    assert spread([], 1.0).mean == 0
    assert spread([4, 2, 6, 100], 2.0).median == 2.5
    assert spread([4, 2, 6], 2.0).median == 2
    assert spread([4, 2, 6], 2.0).most == 3


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_documented_examples_run(number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", (DOCS / "simulator.md").read_text(), re.DOTALL)
    assert len(examples) == 3
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(examples[number], "docs/simulator.md", "exec"), {"__name__": "example"})
    assert printed.getvalue()


def test_unknown_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown node 'nobody'"):
        Simulation(GRID, faults=Schedule((Crash(at_ms=0.0, node=NodeId("nobody")),)))

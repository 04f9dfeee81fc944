"""P14: bandwidth of a mesh against a hub, simulated, and one short trial of real processes."""

import os
from pathlib import Path

import pytest
from deployed_trials import simulated, together

from comesh.experiments.measures import real_trial, stations
from comesh.experiments.measures.deployed_workload import make_workload
from comesh.experiments.measures.trial import Mode, Trial
from comesh.experiments.p14_bandwidth import HOPS, WORK, bars, draw, ratios, tables
from comesh.experiments.stage import Scale, Table
from comesh.experiments.trials import QUIET, REAL, SIMULATED, cases, run
from comesh.lab.shapes import NODES, Shape, is_connected


def value(table: Table, measure: str, column: str = "value") -> float:
    return table.where(measure=measure).mean(column)


@pytest.mark.parametrize("shape", ["grid", "line"])
def test_p14_the_mean_node_has_less_than_a_fifth_of_a_hub_and_the_busiest_a_third(shape: str) -> None:
    """The bars; here over four epochs, and with ten routines: over fewer, one node may have all the work."""
    hub = value(simulated(shape, 10, "central"), WORK, "most")
    mesh = simulated(shape, 10, epochs=4)
    assert 5 < hub / value(mesh, WORK) < NODES
    assert hub / value(mesh, WORK, "most") > 3


def test_p14_it_is_not_flat_and_foreground_is_small_with_few_routines_only() -> None:
    """Unlike in the paper: each run costs entries in its group and in those of its devices."""
    few, many = simulated("grid", 1), simulated("grid", 20)
    assert 1.25 < value(many, WORK) / value(few, WORK) < 2
    shares = [
        value(one, "bandwidth: foreground") / value(one, "bandwidth: monitoring") for one in (few, many)
    ]
    assert shares[0] < 0.1
    assert shares[1] > 0.25


def test_p14_with_a_hub_one_node_has_all_of_it_and_nothing_is_said_between_groups() -> None:
    central = simulated("grid", 10, "central")
    assert value(central, WORK, "most") == pytest.approx(NODES * value(central, WORK), rel=0.01)
    assert value(central, "bandwidth: groups", "most") == 0


def test_p14_what_devices_are_asked_does_not_depend_on_routines() -> None:
    few, many = simulated("grid", 1), simulated("grid", 20)
    assert value(many, "bandwidth: devices") == pytest.approx(value(few, "bandwidth: devices"), rel=0.15)
    assert value(many, "bandwidth: foreground") > value(few, "bandwidth: foreground")


def test_p14_all_that_nodes_say_is_monitoring_upkeep_or_foreground() -> None:
    mesh = simulated("grid", 10)
    parts = sum(value(mesh, f"bandwidth: {part}") for part in ("monitoring", "upkeep", "foreground"))
    assert parts == pytest.approx(value(mesh, WORK), rel=0.001)


def test_p14_messages_on_the_line_are_relayed_more_often_than_on_the_grid() -> None:
    def relayed(shape: str) -> float:
        mesh = simulated(shape, 10)
        return value(mesh, HOPS) / (value(mesh, "bandwidth: groups") + value(mesh, "bandwidth: membership"))

    assert relayed("line") > 1.3 * relayed("grid") > 1.3


def test_p14_longer_leases_need_less_upkeep() -> None:
    ours, papers = simulated("grid", 10), simulated("grid", 10, preset="paper")
    assert value(papers, "bandwidth: upkeep") < value(ours, "bandwidth: upkeep") / 3


def test_p14_every_case_has_a_simulated_twin_and_simulations_come_first() -> None:
    for scale in Scale:
        where = [case["where"] for case in cases(scale)]
        assert where == sorted(where, reverse=True)
        assert where.count(REAL) == where.count(SIMULATED)


def test_p14_epochs_are_shorter_in_quick_trials() -> None:
    quick, full = ({case["epoch_s"] for case in cases(scale)} for scale in (Scale.QUICK, Scale.FULL))
    assert (quick, full) == ({20}, {60})
    real = [case for case in cases(Scale.QUICK) if case["where"] == REAL and case["mode"] == "mesh"]
    assert all(case["seconds"] >= 3 * case["epoch_s"] for case in real)


def test_p14_every_place_is_a_station_and_all_reach_each_other() -> None:
    for shape in Shape:
        workload = make_workload(shape, routines=1, seed=3)
        names, links = stations.station_links(workload)
        assert len(set(names)) == 16
        assert set(workload.nodes) <= set(names)
        assert is_connected(names, links)


def test_p14_processes_have_loopback_addresses_of_their_own() -> None:
    numbers = [1, 2, 255, 256, 65_535, 65_536, 4_194_303]
    assert len({stations.own_loopback(number) for number in numbers}) == len(numbers)


def test_p14_a_real_trial_without_root_runs_on_loopback_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stations, "what_is_missing", lambda: "network namespaces need root")
    monkeypatch.setattr(real_trial, "DROPPED_S", 0.1)
    trial = Trial(
        shape=Shape.GRID,
        routines=10,
        seed=3,
        mode=Mode.MESH,
        preset="default",
        epoch_s=60,
        seconds=2.0,
        kills=1,
    )
    before = _child_nodes()  # other tests of this process may have meshes of their own
    recorded = real_trial.real_trial(trial)
    assert real_trial.reread(recorded.recording) == recorded.rows
    assert len(recorded.recording) < 300_000
    table = Table(recorded.rows)
    assert table.distinct("network") == ["loopback: network namespaces need root"]
    assert not table.where(measure=HOPS).rows
    assert value(table, "bandwidth: devices") > 50
    assert value(table, "bandwidth: groups") > 20
    assert value(table, "election") > 0
    assert _child_nodes() <= before


def _child_nodes() -> set[Path]:
    return {path for path in Path("/proc").glob("[0-9]*/stat") if _is_child_node(path)}


def _is_child_node(stat: Path) -> bool:
    try:
        fields = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return False
    state, parent = fields[0], int(fields[1])
    return parent == os.getpid() and state != "Z" and "forkserver" in _command(stat.parent)


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


def test_p14_a_case_is_run_where_it_says() -> None:
    case = next(case for case in cases(Scale.QUICK) if case["mode"] == "central")
    networks = {row["network"] for row in run(case)}
    assert networks == {"simulated radio"}


def test_p14_real_trials_are_held_to_the_bars_and_drawn() -> None:
    table = together(simulated("grid", 1), simulated("grid", 20), simulated("grid", 10, "central"))
    assert bars(table) == []
    as_real = Table({**row, "where": REAL, "network": "loopback: no root"} for row in table)
    mean, busiest = bars(together(table, as_real))
    assert mean.met is True
    assert busiest.unjudged == "trials of fewer than 10 epochs"
    least = min(ratios(as_real).numbers("hub / mean node"))
    assert mean.value == least
    long = Table({**row, "seconds": 600.0} for row in as_real)
    assert bars(long)[1].met is not None
    short = Table({**row, "epoch_s": 20} for row in as_real)
    assert bars(short)[0].unjudged == "epochs of 20 s, and the bar is set for 60 s"
    slow = Table({**row, "value": row["value"] and 9 * row["value"]} for row in as_real)
    assert bars(slow)[0].met is False
    assert len(draw(together(table, as_real)).axes) == 3


def test_p14_quiet_trials_are_not_compared_with_a_hub() -> None:
    table = together(simulated("grid", 10), simulated("grid", 10, "central"))
    as_quiet = Table({**row, "where": QUIET} for row in table)
    assert ratios(together(table, as_quiet)).rows == ratios(table).rows
    against, rates, trials = tables(together(table, as_quiet)).values()
    assert len(against) == 1
    assert set(rates.distinct("where")) == set(trials.distinct("where")) == {SIMULATED, QUIET}

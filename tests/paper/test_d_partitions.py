"""D: bad air costs time and runs; a mesh that was cut in two is whole again once the cut is healed."""

import pytest

from comesh.core.ids import NodeId
from comesh.experiments.d_partitions import WORK, bars, delay, draw, firings_of, run, tables
from comesh.experiments.measures.disturbances import is_served, one_side
from comesh.experiments.stage import Row, Table
from comesh.sim.group_watch import GroupNow
from comesh.sim.topology import Shape, make_topology


@pytest.fixture(scope="module")
def table() -> Table:
    mesh = {"preset": "default", "devices": 50, "seed": 1, **WORK}
    cases = [
        {**mesh, "loss": 0, "cut_s": 0},
        {**mesh, "loss": 10, "cut_s": 0},
        {**mesh, "loss": 0, "cut_s": 10},
    ]
    return Table({**case, **row} for case in cases for row in run(case))


def finished(rows: Table) -> float:
    firings = firings_of(rows)
    return len(firings.where(outcome="finished")) / len(firings)


def test_without_disturbance_all_groups_serve_and_all_firings_end(table: Table) -> None:
    calm = table.where(loss=0, cut_s=0)
    assert calm.mean("served") == 1
    assert finished(calm) == 1


def test_loss_costs_runs_and_time(table: Table) -> None:
    calm, bad = table.where(loss=0, cut_s=0), table.where(loss=10)
    assert finished(bad) < finished(calm)
    assert delay(bad, 50)[0] > delay(calm, 50)[0]


def test_a_cut_keeps_firings_from_their_end_until_it_is_healed(table: Table) -> None:
    cut, healed = (table.where(cut_s=10, when=when) for when in ("cut", "healed"))
    assert delay(cut, 50)[0] > delay(healed, 50)[0]
    assert finished(healed) == 1


def test_a_group_is_not_served_while_its_leader_is_cut_off_from_its_majority() -> None:
    case = {"preset": "default", "devices": 100, "seed": 1, **WORK, "loss": 0, "cut_s": 10}
    served = {row["when"]: row["served"] for row in run(case) if "served" in row}
    assert 0.8 < served["cut"] < 1
    assert served["healed"] == 1


def test_a_leader_that_is_cut_off_from_the_majority_does_not_serve() -> None:
    a, b, c = (NodeId(name) for name in "abc")

    def beside_b(one: NodeId, other: NodeId) -> bool:
        return {one, other} == {b, c}

    assert is_served(GroupNow((a, b, c), b, 1), beside_b)
    assert not is_served(GroupNow((a, b, c), a, 1), beside_b)
    assert not is_served(GroupNow((a, b, c), None, 1), beside_b)


def _firing(*, delay_hops: float | None = None, waited_hops: float | None = None) -> Row:
    return {"routine": "r", "delay_hops": delay_hops, "waited_hops": waited_hops}


def test_a_firing_that_waits_in_vain_counts_for_as_long_as_it_waited() -> None:
    came = [_firing(delay_hops=hops) for hops in (10.0, 20.0, 30.0)]
    assert delay(Table(came), 50) == (20, True)
    late = Table([*came, _firing(waited_hops=90.0)])
    assert delay(late, 50) == (20, True), "it is longer than the median, however long it is"
    assert delay(late, 90) == (90, False)
    soon = Table([*came, _firing(waited_hops=15.0)])
    assert delay(soon, 50) == (15, False)
    assert delay(soon, 90) == (30, False)


def test_every_firing_has_a_delay_or_waited(table: Table) -> None:
    for row in firings_of(table):
        assert (row["delay_hops"] is None) != (row["waited_hops"] is None)
        assert row["heard"] or row["outcome"] == "open"


def test_a_cut_has_half_of_the_mesh_on_each_side() -> None:
    topology = make_topology(Shape.GRID, devices=64)
    assert len(one_side(topology)) == 32


def test_how_long_a_mesh_was_cut_is_in_the_figure(table: Table) -> None:
    whole, cut = draw(table.where(cut_s=0)), draw(table)
    assert [len(one.axes[3].lines) for one in (whole, cut)] == [0, 2]


def _changed(table: Table, *, when: str, outcome: str) -> Table:
    return Table(
        {**row, "outcome": outcome, "heard": True} if row["when"] == when and row.get("routine") else row
        for row in table
    )


def test_under_loss_runs_fail_for_devices_that_do_not_answer(table: Table) -> None:
    failed = table.where(loss=10, outcome="failed")
    assert len(failed) > 1
    assert all(row["reason"].endswith("no answer") for row in failed)
    assert all(row["delay_hops"] is not None for row in failed), "a command that is lost has left"
    (found,) = tables(table).values()
    (bad,) = found.where(disturbance="10 % loss per hop")
    assert (bad["failed"], bad["of which no answer"]) == (len(failed), len(failed))


def test_the_calm_and_the_healed_mesh_are_held_to_an_end_of_all_firings(table: Table) -> None:
    assert [one.met for one in bars(table)] == [True, True]
    lost = _changed(table, when="healed", outcome="open")
    assert [one.met for one in bars(lost)] == [True, False]


def test_it_is_drawn(table: Table) -> None:
    assert len(draw(table).axes) == 4

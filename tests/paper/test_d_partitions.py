"""D: bad air costs time and runs; a mesh that was cut in two is whole again once the cut is healed."""

import pytest

from comesh.experiments.d_partitions import compare, draw, run, share
from comesh.experiments.measures.disturbances import one_side
from comesh.experiments.table import Table
from comesh.sim.topology import Shape, make_topology


@pytest.fixture(scope="module")
def table() -> Table:
    mesh = {"preset": "default", "devices": 50, "seed": 1}
    cases = [
        {**mesh, "loss": 0, "cut_s": 0},
        {**mesh, "loss": 10, "cut_s": 0},
        {**mesh, "loss": 0, "cut_s": 10},
    ]
    return Table({**case, **row} for case in cases for row in run(case))


def test_without_disturbance_all_groups_serve_and_all_firings_end(table: Table) -> None:
    calm = table.where(loss=0, cut_s=0)
    assert calm.mean("served") == calm.mean("majority") == 1
    assert share(calm, "finished") == 1


def test_loss_costs_runs_and_time(table: Table) -> None:
    calm, bad = table.where(loss=0, cut_s=0), table.where(loss=10)
    assert share(bad, "finished") < share(calm, "finished")
    assert bad.mean("delay") > calm.mean("delay")


def test_a_cut_keeps_firings_from_their_end_until_it_is_healed(table: Table) -> None:
    cut, healed = (table.where(cut_s=10, when=when) for when in ("cut", "healed"))
    assert cut.mean("delay") > healed.mean("delay")
    assert share(healed, "finished") == 1
    assert healed.mean("majority") == 1


def test_a_cut_has_half_of_the_mesh_on_each_side() -> None:
    topology = make_topology(Shape.GRID, devices=64)
    assert len(one_side(topology)) == 32


def test_it_is_compared_and_drawn(table: Table) -> None:
    assert len(compare(table)) == 4
    assert len(draw(table).axes) == 3

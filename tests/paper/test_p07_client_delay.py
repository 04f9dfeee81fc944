"""P7: client delay grows gradually with the mesh, and OLA is below SLA; polling is told apart."""

import pytest

from comesh.experiments.p07_client_delay import by_strategy, draw, run, tables
from comesh.experiments.stage import Table

SIZES = (50, 150)
ROUTINES = 4


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [
        {
            "preset": "default",
            "devices": devices,
            "topology": topology,
            "strategy": strategy,
            "routines": ROUTINES,
            "seed": 1,
        }
        for devices in SIZES
        for topology in ("grid", "random", "clustered")
        for strategy in ("sequential", "optimistic", "priority")
    ]
    return Table({**case, **row} for case in cases for row in run(case))


def test_every_routine_fired_once_and_came_to_its_first_command(table: Table) -> None:
    assert len(table) == len(SIZES) * 9 * ROUTINES
    assert sum(table.numbers("lost")) == 0
    assert sum(table.numbers("repeated")) == 0


def test_the_delay_grows_by_less_than_the_mesh(table: Table) -> None:
    for strategy in ("sequential", "optimistic"):
        here = table.where(strategy=strategy)
        small, large = (here.where(devices=devices).mean("client_hops") for devices in SIZES)
        assert small < large < small * SIZES[1] / SIZES[0]


def test_it_does_with_the_preset_paper() -> None:
    cases = [
        {
            "preset": "paper",
            "devices": devices,
            "topology": "grid",
            "strategy": "sequential",
            "routines": ROUTINES,
            "seed": 1,
        }
        for devices in SIZES
    ]
    table = Table({**case, **row} for case in cases for row in run(case))
    small, large = (table.where(devices=devices).mean("client_hops") for devices in SIZES)
    assert small < large < small * SIZES[1] / SIZES[0]


def test_all_locks_at_once_are_faster_than_one_after_the_other(table: Table) -> None:
    serial = table.where(strategy="sequential").mean("client_hops")
    assert table.where(strategy="optimistic").mean("client_hops") < 0.95 * serial


def test_the_grid_is_not_above_the_others(table: Table) -> None:
    """Unlike in the paper: with a reach of 1.41 spacings its nodes are fewer hops apart than those at random
    places."""
    large = table.where(devices=SIZES[1], strategy="sequential")
    grid, *others = (
        large.where(topology=name).mean("client_hops") for name in ("grid", "random", "clustered")
    )
    assert grid < min(others)


def test_nobody_contends_so_priority_is_as_fast_as_optimistic(table: Table) -> None:
    delays = [table.where(strategy=name).numbers("client_hops") for name in ("priority", "optimistic")]
    assert delays[0] == pytest.approx(delays[1], rel=0.02)


def test_polling_is_apart_and_about_half_of_a_period(table: Table) -> None:
    """A period is 100 hops; reading takes a round trip to the device."""
    assert min(table.numbers("polling_hops")) > 0
    assert max(table.numbers("polling_hops")) < 100 + 30
    assert 35 < table.mean("polling_hops") < 75


def test_no_run_beats_the_ideal_by_more_than_a_handoff_of_leaders_can(table: Table) -> None:
    assert table.mean("ideal_hops") <= table.mean("client_hops")


GROWTH = "client delay from N = 50 to 150, random, SLA, default"


def test_it_is_tabulated_and_drawn(table: Table) -> None:
    found = tables(table)
    measured, grown, ola, *_ = found.values()
    assert len(measured) == len(SIZES) * 9
    assert set(grown.distinct("strategy")) == {"SLA", "OLA"}
    assert all(row["client delay"].low is None for row in grown), "of one seed there is no interval"
    large = [row["client delay"].value for row in ola if row["devices"] == SIZES[1]]
    assert all(times < 1 for times in large)
    figure = draw(Table([*table, *({**row, "preset": "paper"} for row in table)]))
    assert len(figure.axes) == 6


def test_lost_firings_count(table: Table) -> None:
    lost = Table({**row, "client_hops": None, "window_hops": 900.0} for row in table)
    assert set(by_strategy(lost).numbers("client_hops")) == {900.0}

"""P9: sync delay and client delay grow less than fourfold as the mesh grows."""

import pytest

from comesh.experiments.measures.firings import with_lost
from comesh.experiments.p08_churn import run
from comesh.experiments.p09_growth import bars, draw, tables
from comesh.experiments.stage import Table

SIZES = (50, 150)


def firings(churn: float, preset: str = "default") -> Table:
    cases = [
        {"preset": preset, "devices": devices, "churn": churn, "routines": 6, "seed": 1} for devices in SIZES
    ]
    return Table({**case, **row} for case in cases for row in run(case))


@pytest.fixture(scope="module")
def table() -> Table:
    return firings(churn=0.0)


def as_large_as_the_paper(table: Table) -> Table:
    return Table({**row, "devices": 750 if row["devices"] == SIZES[1] else row["devices"]} for row in table)


def grow_slowly(table: Table) -> bool:
    """Here the mesh is three times as large, not fifteen times: so this much less than fourfold."""
    curves = [table.summary("devices", column) for column in ("client_hops", "sync_hops")]
    return all(mean[SIZES[0]] < mean[SIZES[1]] < 3 * mean[SIZES[0]] for mean in curves)


def test_both_delays_grow_slowly(table: Table) -> None:
    assert grow_slowly(table)


def test_they_do_with_the_preset_paper() -> None:
    assert grow_slowly(firings(churn=0.0, preset="paper"))


def test_they_do_with_churn() -> None:
    assert grow_slowly(with_lost(firings(churn=0.4)))


def test_it_is_held_to_that_at_the_sizes_of_the_paper(table: Table) -> None:
    assert [one.met for one in bars(table)] == [None, None]
    large = as_large_as_the_paper(table)
    assert [one.met for one in bars(large)] == [True, True]
    steep = Table(
        {**row, "sync_hops": row["devices"] ** 2, "client_hops": row["devices"] ** 2} for row in large
    )
    assert [one.met for one in bars(steep)] == [False, False]


def test_lost_firings_count_as_long_as_they_had(table: Table) -> None:
    lost = Table(
        {**row, "client_hops": None, "lost": 1} if row["devices"] == SIZES[1] else row for row in table
    )
    client, sync = bars(as_large_as_the_paper(lost))
    assert (client.met, sync.met) == (False, True)


def test_it_is_tabulated_and_drawn(table: Table) -> None:
    grown, medians = tables(table).values()
    assert (len(grown), len(medians)) == (1, 2)
    assert len(draw(table).axes) == 2

"""P9: sync delay and client delay grow less than fourfold as the mesh grows."""

import pytest

from comesh.experiments.p08_churn import run
from comesh.experiments.p09_growth import compare, draw
from comesh.experiments.table import Table
from comesh.experiments.verdicts import most_growth, with_lost

SIZES = (50, 150)


def firings(churn: float) -> Table:
    cases = [
        {"preset": "default", "devices": devices, "churn": churn, "routines": 6, "seed": 1}
        for devices in SIZES
    ]
    return Table({**case, **row} for case in cases for row in run(case))


@pytest.fixture(scope="module")
def table() -> Table:
    return firings(churn=0.0)


def grow_slowly(table: Table) -> bool:
    """Here the mesh is three times as large, not fifteen times: so this much less than fourfold."""
    curves = [table.summary(("devices",), column) for column in ("client_hops", "sync_hops")]
    means = [{devices: mean for (devices,), mean in curve.items()} for curve in curves]
    return all(mean[SIZES[0]] < mean[SIZES[1]] < most_growth(mean) * mean[SIZES[0]] for mean in means)


def test_both_delays_grow_slowly(table: Table) -> None:
    assert grow_slowly(table)


def test_they_do_with_churn() -> None:
    assert grow_slowly(with_lost(firings(churn=0.4)))


def as_large_as_the_paper(table: Table) -> Table:
    return Table({**row, "devices": 750 if row["devices"] == SIZES[1] else row["devices"]} for row in table)


def test_it_is_held_to_that_at_the_sizes_of_the_paper(table: Table) -> None:
    assert [one.met for one in compare(table)] == [None, None]
    large = as_large_as_the_paper(table)
    assert [one.met for one in compare(large)] == [True, True]
    steep = Table(
        {**row, "sync_hops": row["devices"] ** 2, "client_hops": row["devices"] ** 2} for row in large
    )
    assert [one.met for one in compare(steep)] == [False, False]
    assert len(draw(table).axes) == 2


def test_lost_firings_count_as_long_as_they_had(table: Table) -> None:
    lost = Table(
        {**row, "client_hops": None, "lost": 1} if row["devices"] == SIZES[1] else row for row in table
    )
    client, sync = compare(as_large_as_the_paper(lost))
    assert client.met is False
    assert "6 of 12 were lost" in client.ours
    assert sync.met is True


def test_why_it_is_steep_counts_who_was_held_up_and_leaves_out_the_lost(table: Table) -> None:
    churned = [dict(row, churn=0.4) for row in as_large_as_the_paper(table)]
    few = [row for row in churned if row["devices"] == 750]
    few[0] |= {"client_hops": None, "lost": 1, "window_hops": 1e4}
    few[1] |= {"client_hops": 5e3}
    client, _ = compare(Table(churned))
    assert client.met is False
    assert "2 at N = 750" in client.why
    few[1] |= {"client_hops": few[2]["client_hops"]}
    client, _ = compare(Table(churned))
    assert "1 at N = 750" in client.why
    without = compare(Table(row for row in churned if not row["lost"]))[0]
    assert f"Without the lost it grows {without.ours.split('x')[0]}x" in client.why
    assert "lost" not in without.why

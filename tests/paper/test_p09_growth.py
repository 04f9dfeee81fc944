"""P9: sync delay and client delay grow less than fourfold as the mesh grows."""

import pytest

from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.p08_churn import run
from comesh.experiments.p09_growth import compare, draw
from comesh.experiments.table import Table
from comesh.experiments.verdicts import max_growth, with_lost

SIZES = (50, 150)


def firings(churn: float, preset: str = "default") -> Table:
    cases = [
        {"preset": preset, "devices": devices, "churn": churn, "routines": 6, "seed": 1} for devices in SIZES
    ]
    return Table({**case, **row} for case in cases for row in run(case))


@pytest.fixture(scope="module")
def table() -> Table:
    return firings(churn=0.0)


def grow_slowly(table: Table) -> bool:
    """Here the mesh is three times as large, not fifteen times: so this much less than fourfold."""
    curves = [table.summary(("devices",), column) for column in ("client_hops", "sync_hops")]
    means = [{devices: mean for (devices,), mean in curve.items()} for curve in curves]
    return all(mean[SIZES[0]] < mean[SIZES[1]] < max_growth(mean) * mean[SIZES[0]] for mean in means)


def test_both_delays_grow_slowly(table: Table) -> None:
    assert grow_slowly(table)


def test_they_do_with_the_preset_paper() -> None:
    assert grow_slowly(firings(churn=0.0, preset="paper"))


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


def growing(table: Table, large: float, spread: float = 0.0, seeds: int = 6) -> Comparison:
    """What is said if client delays of ten hops come to be these."""
    rows = [
        {
            **row,
            "seed": seed,
            "client_hops": 10.0 if row["devices"] == SIZES[0] else large + spread * (seed % 2),
        }
        for seed in range(seeds)
        for row in as_large_as_the_paper(table)
    ]
    return compare(Table(rows))[0]


def test_an_interval_stands_beside_it_and_says_where_the_bar_is_in_it(table: Table) -> None:
    assert "3.90x [3.90, 3.90]" in growing(table, 39.0).ours
    assert growing(table, 39.0).why == ""
    near = growing(table, 38.0, spread=3.0)
    assert near.verdict is Verdict.AGREES
    assert near.why == "4x lies in the interval: other meshes may come out on its other side"
    assert not near.in_short
    above = growing(table, 39.0, spread=3.0)
    assert above.verdict is Verdict.DIFFERS
    assert "other side" in above.why
    assert "by chance" in above.in_short
    assert "by chance" not in growing(table, 45.0, spread=3.0).in_short
    assert "[" not in growing(table, 39.0, seeds=2).ours


def test_what_is_steep_says_whether_the_median_is(table: Table) -> None:
    assert "the median too" in growing(table, 45.0).in_short
    rows = [dict(row, client_hops=10.0) for row in as_large_as_the_paper(table)]
    next(row for row in rows if row["devices"] == 750)["client_hops"] = 1e3
    client = compare(Table(rows))[0]
    assert client.verdict is Verdict.DIFFERS
    assert "the median less" in client.in_short
    assert "the median grows 1.00x" in client.why


def test_dead_leaders_are_blamed_only_where_more_firings_are_held_up(table: Table) -> None:
    rows = [
        dict(row, churn=0.4, client_hops=10.0 if row["devices"] == SIZES[0] else 50.0)
        for row in as_large_as_the_paper(table)
    ]
    assert "leader that dies" not in compare(Table(rows))[0].why
    rows[-1]["client_hops"] = 500.0
    assert "leader that dies" in compare(Table(rows))[0].why

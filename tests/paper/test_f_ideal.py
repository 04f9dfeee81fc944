"""F: our runs stay within 1.5 times the ideal where locks are asked for at once, 2.5 where one by one."""

import pytest

from comesh.experiments.f_ideal import BARS, compare, ratio
from comesh.experiments.p07_client_delay import run
from comesh.experiments.table import Row, Table


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [
        {
            "preset": "default",
            "devices": 75,
            "topology": topology,
            "strategy": str(strategy),
            "routines": 4,
            "seed": 1,
        }
        for topology in ("grid", "random", "clustered")
        for strategy in BARS
    ]
    return Table({**case, **row} for case in cases for row in run(case))


def test_runs_are_near_the_ideal(table: Table) -> None:
    for strategy, bar in BARS.items():
        assert 1 <= ratio(table.where(strategy=str(strategy))) <= bar


def test_the_bars_hold_for_both_presets(table: Table) -> None:
    compared = compare(table)
    assert len(compared) == len(BARS)
    assert all(one.met for one in compared)
    of_paper: list[Row] = [{**row, "preset": "paper"} for row in table]
    assert all(one.met for one in compare(Table(of_paper)))


def test_a_slow_run_misses_the_bar(table: Table) -> None:
    slow = Table({**row, "client_hops": 3 * row["client_hops"]} for row in table)
    assert not any(one.met for one in compare(slow))

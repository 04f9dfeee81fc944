"""P2: at N = 1,000 a quorum is at most 2.4 hops away, and at least twice as far with random members."""

import pytest
from selection_means import measured

from comesh.experiments.p02_quorum_distance import bars, draw, tables
from comesh.experiments.stage import Table


@pytest.fixture(scope="module")
def table() -> Table:
    found = (
        measured(1000, "lsh-mix", m=3),
        measured(1000, "random"),
        measured(1000, "lsh-mix", m=3, neighbours="axes"),
        measured(1000, "random", neighbours="axes"),
    )
    return Table(row for rows in found for row in rows)


def test_a_quorum_is_near(table: Table) -> None:
    lsh = table.where(members="lsh-mix", neighbours="diagonals").mean("quorum_hops")
    random = table.where(members="random", neighbours="diagonals").mean("quorum_hops")
    assert 1 <= lsh <= 2.4
    assert random >= 2 * lsh
    assert random == pytest.approx(5.3, rel=0.1)


def test_more_hashes_leave_few_candidates(table: Table) -> None:
    assert table.where(m=3).mean("candidates") < measured(1000, "lsh-mix").mean("candidates") / 2


def test_the_bars_are_met_and_drawn(table: Table) -> None:
    assert [one.met for one in bars(table)] == [True, True]
    assert draw(table).axes
    (found,) = tables(table).values()
    assert len(found) == 4


def test_a_distant_quorum_misses_the_bars(table: Table) -> None:
    far = Table({**row, "quorum_hops": 2.5 if row["members"] == "lsh-mix" else 4.9} for row in table)
    assert [one.met for one in bars(far)] == [False, False]


def test_presets_that_differ_are_told_apart(table: Table) -> None:
    both = Table([*table, *({**row, "preset": "default", "quorum_hops": 9.0} for row in table)])
    hops = [one for one in bars(both) if "hops, LSH" in one.name]
    assert [(one.name.split(", ")[-1], one.met) for one in hops] == [("paper", True), ("default", False)]

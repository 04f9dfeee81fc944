"""P2: at N = 1,000 a quorum is at most 2.4 hops away, and at least twice as far with random members."""

import pytest
from selection_means import measured

from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.p02_quorum_distance import compare, draw
from comesh.experiments.table import Table


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


def test_the_bars_are_met_and_drawn(table: Table) -> None:
    assert [one.met for one in compare(table)] == [None, True, True, None]
    assert draw(table).axes


def test_more_hashes_leave_few_candidates(table: Table) -> None:
    assert table.where(m=3).mean("candidates") < measured(1000, "lsh-mix").mean("candidates") / 2


def test_a_distant_quorum_misses_the_bars(table: Table) -> None:
    far = Table({**row, "quorum_hops": 2.5 if row["members"] == "lsh-mix" else 4.9} for row in table)
    lsh, random = compare(far)[1:3]
    assert lsh.met is False
    assert lsh.verdict is Verdict.AGREES
    assert random.met is False


def test_presets_that_differ_are_told_apart(table: Table) -> None:
    both = Table([*table, *({**row, "preset": "default", "quorum_hops": 9.0} for row in table)])
    hops = [one for one in compare(both) if "hops, LSH" in one.what]
    assert [one.what.split(", ")[-1] for one in hops] == ["paper", "default"]
    assert [one.met for one in hops] == [True, False]


def changed(table: Table, times: dict[tuple[str, str], float]) -> list[Comparison]:
    """The comparisons with distances so many times as far, by members and neighbours."""
    rows = [
        {**row, "quorum_hops": row["quorum_hops"] * times.get((row["members"], row["neighbours"]), 1.0)}
        for row in table
    ]
    found = compare(Table(rows))
    assert all(one.why and one.in_short for one in found if one.verdict is Verdict.DIFFERS)
    return found


def test_neighbours_are_blamed_only_where_they_explain_the_distance(table: Table) -> None:
    everywhere = {("random", "diagonals"): 3.0, ("random", "axes"): 3.0}
    random = changed(table, everywhere)[2]
    assert random.verdict is Verdict.DIFFERS
    assert "random selection fits" not in random.why
    assert "who is whose neighbour does not explain it" in random.in_short
    between = changed(table, {("random", "diagonals"): 0.5})[2]
    assert (
        "it is less with diagonals of one hop, more with neighbours along the axes only" in between.in_short
    )
    fits = changed(table, {("random", "diagonals"): 0.5, ("random", "axes"): 0.6})[2]
    assert "along the axes only it fits" in fits.in_short
    assert "A quorum at random is nearer" in fits.in_short


def test_a_distance_that_fits_is_named(table: Table) -> None:
    lsh = changed(table, {})[1]
    assert lsh.verdict is Verdict.BETTER
    assert "with diagonals of one hop, as here, the distance of random selection fits" in lsh.why.lower()
    far = changed(table, {("lsh-mix", "diagonals"): 4.0, ("lsh-mix", "axes"): 4.0})[1]
    assert far.verdict is Verdict.DIFFERS
    assert "A quorum under LSH is farther" in far.in_short


def test_what_the_papers_own_candidates_leave_is_a_reason_for_more_and_not_for_fewer(table: Table) -> None:
    def with_candidates(number: float) -> Comparison:
        rows = [{**row, "candidates": number + 0.1 * row["seed"]} for row in table]
        candidates = compare(Table(rows))[0]
        assert candidates.verdict is Verdict.DIFFERS
        assert candidates.in_short
        return candidates

    assert "66.9 at m = 2" in with_candidates(40.0).why
    assert "66.9" not in with_candidates(4.0).why
    assert "does not explain" in with_candidates(4.0).why

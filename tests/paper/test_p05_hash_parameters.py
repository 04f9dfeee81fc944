"""P5: larger m give fewer candidates, larger l and r more."""

from itertools import pairwise

import pytest
from selection_means import measured

from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.measures.selection_campaign import DEFAULTS, VARIED, VARIED_SIZE
from comesh.experiments.p05_hash_parameters import chosen, compare, draw
from comesh.experiments.table import Table


def mean(column: str, **parameters: float) -> float:
    return measured(VARIED_SIZE, "lsh-mix", **parameters).mean(column)


def test_larger_m_give_fewer_candidates() -> None:
    found = [mean("candidates", m=m) for m in VARIED["m"]]
    assert all(one > following for one, following in pairwise(found))


@pytest.mark.parametrize("parameter", ["l", "r"])
def test_larger_l_and_r_give_more_candidates(parameter: str) -> None:
    found = [mean("candidates", **{parameter: value}) for value in VARIED[parameter]]
    assert all(one < following for one, following in pairwise(found))


def test_few_candidates_make_groups_wide() -> None:
    assert mean("quorum_hops", r=1) > 1.2 * mean("quorum_hops")


def all_measured() -> Table:
    meshes = {(name, value) for name, values in VARIED.items() for value in values}
    cases = dict.fromkeys(tuple({**DEFAULTS, name: value}.items()) for name, value in sorted(meshes))
    return Table(row for case in cases for row in measured(VARIED_SIZE, "lsh-mix", **dict(case)))


def test_it_is_compared_and_drawn() -> None:
    table = all_measured()
    said = [one for one in compare(table) if one.paper]
    assert [one.verdict for one in said] == [Verdict.AGREES] * 3
    assert len(draw(table).axes) == 9
    upside_down = Table({**row, "candidates": -row["candidates"]} for row in table)
    assert [one.verdict for one in compare(upside_down) if one.paper] == [Verdict.DIFFERS] * 3


def with_step(change: float, spread: float) -> Comparison:
    """What is told of m where m = 4 has so many candidates more than m = 3, give or take the spread."""
    table = all_measured()
    before = {row["seed"]: row["candidates"] for row in chosen(table, "m").where(m=3)}
    rows = [
        {**row, "candidates": before[row["seed"]] + change + spread * (row["seed"] - 2)}
        if row["m"] == 4
        else row
        for row in table
    ]
    found = [one for one in compare(Table(rows)) if one.paper]
    assert all(bool(one.why and one.in_short) is (one.verdict is Verdict.DIFFERS) for one in found)
    assert [one.verdict for one in found] == [Verdict.DIFFERS, Verdict.AGREES, Verdict.AGREES]
    return found[0]


def test_the_draw_is_blamed_only_for_steps_smaller_than_it_may_change() -> None:
    drawn, real = with_step(1.0, 2.0), with_step(1.0, 0.1)
    assert "m = 3 to 4: by 1.0 against that" in drawn.why
    assert "no more than that draw" in drawn.why
    assert "by no more than the draw" in drawn.in_short
    assert "not explained by that draw" in real.why
    assert "by more than the draw" in real.in_short
    assert "m = 2" not in real.why


def test_one_mesh_tells_nothing_of_the_draw() -> None:
    one_mesh = Table({**row, "candidates": -row["candidates"]} for row in all_measured().where(seed=1))
    said = [one for one in compare(one_mesh) if one.paper]
    assert all("in one mesh" in one.why for one in said)
    assert all(one.in_short.endswith("at every step.") for one in said)

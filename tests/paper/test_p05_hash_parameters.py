"""P5: larger m give fewer candidates, larger l and r more."""

from itertools import pairwise

import pytest
from selection_means import measured

from comesh.experiments.campaign import Verdict
from comesh.experiments.measures.selection_campaign import VARIED, VARIED_SIZE
from comesh.experiments.p05_hash_parameters import compare, draw
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


def test_it_is_compared_and_drawn() -> None:
    meshes = {(name, value) for name, values in VARIED.items() for value in values}
    table = Table(
        row for name, value in sorted(meshes) for row in measured(VARIED_SIZE, "lsh-mix", **{name: value})
    )
    said = [one for one in compare(table) if one.paper]
    assert [one.verdict for one in said] == [Verdict.AGREES] * 3
    assert len(draw(table).axes) == 9
    upside_down = Table({**row, "candidates": -row["candidates"]} for row in table)
    assert [one.verdict for one in compare(upside_down) if one.paper] == [Verdict.DIFFERS] * 3

"""P5: larger m give fewer candidates, larger l and r more."""

from itertools import pairwise

import pytest
from selection_means import measured

from comesh.experiments.measures.selection_campaign import DEFAULTS, VARIED, VARIED_SIZE
from comesh.experiments.p05_hash_parameters import draw, tables
from comesh.experiments.stage import Table


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


def test_it_is_tabulated_and_drawn() -> None:
    meshes = {(name, value) for name, values in VARIED.items() for value in values}
    cases = dict.fromkeys(tuple({**DEFAULTS, name: value}.items()) for name, value in sorted(meshes))
    table = Table(row for case in cases for row in measured(VARIED_SIZE, "lsh-mix", **dict(case)))
    (found,) = tables(table).values()
    for name, values in VARIED.items():
        rows = found.where(varied=name)
        assert sorted(row["value"] for row in rows) == sorted(values)
    assert len(draw(table).axes) == 9

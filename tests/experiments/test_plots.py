"""How sure means are: of meshes, not of what was measured many times in one."""

import pytest

from comesh.experiments.plots import means, new_figure, uncertainty
from comesh.experiments.table import Table


def test_few_values_are_less_sure_than_many() -> None:
    assert uncertainty([5.0]) == 0.0
    assert uncertainty([4.0, 6.0]) == pytest.approx(12.71)
    assert uncertainty([4.0, 6.0] * 50) == pytest.approx(2.14 * 0.1005, rel=0.01)


def test_what_one_mesh_says_many_times_is_not_surer_for_it() -> None:
    def band(times: int) -> float:
        _, axes = new_figure()
        rows = [{"name": "one", "x": 1, "seed": seed, "y": float(seed)} for seed in (1, 2, 3)]
        means(axes, Table(rows * times), "name", "x", "y")
        around = axes.collections[0].get_paths()[0].vertices[:, 1]
        return float(max(around) - min(around))

    assert band(1) == pytest.approx(2 * uncertainty([1.0, 2.0, 3.0]))
    assert band(10) == pytest.approx(band(1))

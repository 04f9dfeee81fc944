"""P1: the number of candidates is the paper's, and grows with the mesh but slower than it."""

from statistics import fmean

import pytest

from comesh.experiments.p01_candidates import PAPER, bars, draw, run, tables
from comesh.experiments.stage import Table


def candidates(devices: int, seeds: int) -> float:
    cases = [{"preset": "paper", "devices": devices, "seed": seed} for seed in range(1, seeds + 1)]
    return fmean(row["candidates"] for case in cases for row in run(case))


def test_candidates_are_within_a_quarter_of_the_papers() -> None:
    for devices, paper in PAPER.items():
        assert candidates(devices, 12) == pytest.approx(paper, rel=0.25)


def test_candidates_grow_slower_than_the_mesh() -> None:
    small, large = candidates(50, 8), candidates(500, 8)
    assert small < large < 10 * small


def test_too_many_candidates_miss_the_bar() -> None:
    def met(candidates: float) -> bool | None:
        rows = Table([{"preset": "paper", "devices": 50, "seed": 1, "candidates": candidates}])
        (one,) = bars(rows)
        assert len(draw(rows).axes) == 1
        (found,) = tables(rows).values()
        assert found.numbers("paper") == [13.0]
        return one.met

    assert (met(16.0), met(20.0)) == (True, False)

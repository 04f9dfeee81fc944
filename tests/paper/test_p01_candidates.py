"""P1: the number of candidates is the paper's, and grows with the mesh but slower than it."""

from statistics import fmean

import pytest

from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.p01_candidates import PAPER, compare, run
from comesh.experiments.table import Table


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
    table = Table([{"preset": "paper", "devices": 50, "candidates": 20.0}])
    (one,) = compare(table)
    assert one.met is False
    assert one.verdict is Verdict.DIFFERS


def told(*candidates: float) -> Comparison:
    """Of meshes of 50 devices with so many."""
    rows = [{"preset": "paper", "devices": 50, "candidates": one} for one in candidates]
    (one,) = compare(Table(rows))
    assert one.verdict is Verdict.DIFFERS
    return one


def test_the_draw_is_blamed_only_for_what_it_may_change() -> None:
    wide, narrow, single = told(5.0, 35.0, 12.0), told(19.9, 20.0, 20.1), told(20.0)
    assert "what does is not known" not in wide.why
    assert "by no more than another draw" in wide.in_short
    assert "from 5.0 to 35.0" in wide.why
    assert "7.0 off the paper's, which that draw does not explain" in narrow.why
    assert "by more than the draw" in narrow.in_short
    assert "one mesh" in single.why
    assert "draw" not in single.why + single.in_short


def test_fewer_candidates_are_told_as_fewer() -> None:
    assert told(6.0, 6.1, 6.2).in_short.startswith("At N = 50 there are fewer candidates")
    assert told(26.0, 26.1, 26.2).in_short.startswith("At N = 50 there are more candidates")

"""P3: the distance to a quorum stays small under LSH however large the mesh, and grows under random."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from selection_means import measured

from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.measures.selection_campaign import DEFAULTS
from comesh.experiments.p03_distance_by_size import compare, draw
from comesh.experiments.table import Table

SIZES = (50, 250, 1000)


def test_lsh_stays_small() -> None:
    hops = [measured(devices, "lsh-mix").mean("quorum_hops") for devices in SIZES]
    assert max(hops) <= 2.4
    assert hops[-1] <= 1.5 * hops[0]


def test_random_grows() -> None:
    hops = [measured(devices, "random").mean("quorum_hops") for devices in SIZES]
    assert all(one < following for one, following in pairwise(hops))
    assert hops[-1] >= 2 * hops[0]


def test_it_is_compared_and_drawn() -> None:
    table = Table(
        row for size in SIZES for members in ("lsh-mix", "random") for row in measured(size, members)
    )
    stays, grows, linearly = compare(table)
    assert (stays.verdict, grows.verdict) == (Verdict.AGREES, Verdict.AGREES)
    assert linearly.verdict is Verdict.DIFFERS
    assert linearly.why
    assert draw(table).axes
    swapped = Table(
        {**row, "members": "random" if row["members"] == "lsh-mix" else "lsh-mix"} for row in table
    )
    assert [one.verdict for one in compare(swapped)[:2]] == [Verdict.DIFFERS, Verdict.DIFFERS]
    assert all(one.why and one.in_short for one in compare(swapped) if one.verdict is Verdict.DIFFERS)


def compared(lsh: Callable[[int], float], random: Callable[[int], float]) -> list[Comparison]:
    found = compare(
        Table(
            {"preset": "paper", "devices": size, "members": members, **DEFAULTS, "quorum_hops": hops(size)}
            for size in SIZES
            for members, hops in (("lsh-mix", lsh), ("random", random))
        )
    )
    assert all(bool(one.why and one.in_short) is (one.verdict is Verdict.DIFFERS) for one in found)
    return found


@pytest.mark.parametrize(
    ("exponent", "how", "is_straight"),
    [
        (0.33, "grows about as paths", True),
        (0.68, "grows slower than N, and faster than paths", True),
        (0.1, "grows slower than paths", False),
        (0.0, "does not grow", False),
        (-0.3, "does not grow", False),
    ],
)
def test_the_cube_root_and_the_straight_line_are_read_off_the_curve(
    exponent: float, how: str, is_straight: bool
) -> None:
    growth = compared(lambda _: 1.5, lambda size: 2 * (size / 50) ** exponent)[2]
    for told in (growth.why, growth.in_short):
        assert how in told
        assert ("straight line" in told) is is_straight


def test_what_does_not_stay_small_is_named() -> None:
    far, growing = compared(lambda _: 3.0, float)[0], compared(lambda size: 1 + size / 1000, float)[0]
    assert far.in_short == "Under LSH a quorum is farther than 2.4 hops at N = 50."
    assert "times" not in far.why
    assert growing.in_short.startswith("Under LSH a quorum is more than 1.5 times as far")
    assert "2.4" not in growing.why

"""P10: random spreads the work most evenly over time; LSH has its median, and a higher tail."""

from statistics import fmean, median, pstdev

import pytest

from comesh.experiments.p10_load import ROLES, draw, run, spatial, tables, temporal
from comesh.experiments.stage import Table, percentile


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [
        {"preset": "paper", "members": members, "seed": seed}
        for members in ("lsh-mix", "random")
        for seed in (1, 2, 3)
    ]
    return Table({**case, **row} for case in cases for row in run(case))


def test_all_seats_are_counted(table: Table) -> None:
    """Ten groups, each with a leader and four others, among a hundred nodes."""
    for members in ("lsh-mix", "random"):
        shares = spatial(table, members)
        for role, mean in zip(ROLES, (0.1, 0.4, 0.5), strict=True):
            assert sum(shares[role].values()) == pytest.approx(1)
            assert sum(count * share for count, share in shares[role].items()) == pytest.approx(mean)
            # Who is in no group in that role serves no time in it.
            assert fmean(temporal(table, members)[role]) == pytest.approx(1 - shares[role][0])


def test_random_is_most_even_over_time(table: Table) -> None:
    near, anywhere = temporal(table, "lsh-mix"), temporal(table, "random")
    for role in ROLES:
        assert pstdev(anywhere[role]) < pstdev(near[role])


def test_members_under_lsh_have_the_median_of_random_and_a_higher_tail(table: Table) -> None:
    near, anywhere = temporal(table, "lsh-mix")["member"], temporal(table, "random")["member"]
    assert median(near) == pytest.approx(median(anywhere), rel=0.1)
    assert percentile(near, 99) > percentile(anywhere, 99)


def test_leading_under_lsh_is_spread_as_under_random(table: Table) -> None:
    """Unlike in the paper, where its median is higher: the centre moves with every epoch."""
    near, anywhere = temporal(table, "lsh-mix")["leader"], temporal(table, "random")["leader"]
    assert median(near) == pytest.approx(median(anywhere), rel=0.1)
    assert min(near) > 0


LSH: dict[str, object] = {"members": "lsh-mix"}
LEADERS = "temporal load, median, leader"


def test_it_is_tabulated_and_drawn(table: Table) -> None:
    (found,) = tables(table).values()
    assert len(found) == 2 * len(ROLES)
    (near,) = found.where(members="lsh-mix", role="member")
    assert near["temporal: median"] == median(temporal(table, "lsh-mix")["member"])
    drawn = draw(table).axes
    assert [len(panel.lines) for panel in drawn] == [6, 6], "three roles, near and at random, side by side"

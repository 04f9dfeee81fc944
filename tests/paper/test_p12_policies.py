"""P12: locality lowers what happens inside groups."""

import pytest

from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.operation_panels import mean_delay
from comesh.experiments.p12_policies import ALL, POLICIES, compare, draw, name_of, run
from comesh.experiments.table import Table

SEEDS = (1, 2, 3)
NEAR, FAR = name_of(frozenset()), name_of(ALL)


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [
        {"preset": "paper", "policy": policy, "devices": 100, "seed": seed}
        for policy in (NEAR, FAR)
        for seed in SEEDS
    ]
    return Table({**case, **row} for case in cases for row in run(case))


def test_locality_lowers_quorums_and_transfers(table: Table) -> None:
    for operation in ("quorum", "state transfer"):
        near, far = (mean_delay(table, operation=operation, policy=policy) for policy in (NEAR, FAR))
        assert near < 0.8 * far


def test_locality_lowers_elections(table: Table) -> None:
    """Four groups, each of which loses its leader; three round trips, to a neighbour at the least. In single
    meshes of so few it may not."""
    for policy in (NEAR, FAR):
        assert table.where(operation="election", policy=policy).numbers("count") == [4] * len(SEEDS)
        assert mean_delay(table, operation="election", policy=policy) >= 6
    near, far = (mean_delay(table, operation="election", policy=policy) for policy in (NEAR, FAR))
    assert near < 0.95 * far
    found = {one.what: one for one in compare(table)}
    one = found["election: all by locality against all random, paper"]
    assert f"{NEAR}: {near:.1f}, {FAR}: {far:.1f} hops" in one.ours
    assert one.verdict is Verdict.AGREES


def saving(table: Table, **percent: float) -> Comparison:
    """What is said to be lowered least, if locality lowers by so much."""
    rows = [
        {
            **row,
            "mean": 100.0 - percent.get(row["operation"].replace(" ", "_"), 0.0) * (row["policy"] == NEAR),
        }
        for row in table
    ]
    found = compare(Table(rows))
    assert all(bool(one.why) is bool(one.in_short) is (one.verdict is Verdict.DIFFERS) for one in found)
    return found[-1]


def test_what_is_lowered_least_may_be_a_tie(table: Table) -> None:
    """By up to 5 points; what is lowered least at full scale, a few elections cannot tell."""
    assert saving(table, quorum=50, election=44, state_transfer=40).verdict is Verdict.AGREES
    tied = saving(table, quorum=50, election=36, state_transfer=40)
    assert tied.verdict is Verdict.AGREES
    assert tied.ours.startswith("election and state transfer (quorum by 50 %")
    assert saving(table, quorum=50, election=34, state_transfer=40).verdict is Verdict.DIFFERS


def test_why_is_told_of_what_is_lowered_least(table: Table) -> None:
    quorums = saving(table, quorum=20, election=50, state_transfer=40)
    assert quorums.ours.startswith("quorum (")
    assert "lection" not in quorums.why + quorums.in_short
    assert "hardly" not in quorums.why + quorums.in_short
    assert "1.0 of them by locality" not in quorums.why
    assert "0.8 of them by locality and 1.0 at random" in quorums.why
    assert "which take fewer quorums by locality" in quorums.in_short
    elections = saving(table, quorum=50, election=20, state_transfer=50)
    assert elections.in_short.startswith("Locality lowers elections least, not state transfers: ")
    assert elections.in_short.endswith(": elections take more quorums by locality than at random.")


def with_elections(table: Table, near: float) -> str:
    """What is said of what locality lowers least, where an election by locality takes so many quorums."""
    quorum = mean_delay(table, operation="quorum", policy=NEAR)
    rows = Table(
        {**row, "mean": near * quorum} if row["operation"] == "election" and row["policy"] == NEAR else row
        for row in table
    )
    return compare(rows)[-1].why


def test_why_elections_profit_least_is_said_where_the_means_show_it(table: Table) -> None:
    assert "as long as 6.0 quorums by locality" in with_elections(table, 6.0)
    assert "from anywhere has to answer" in with_elections(table, 6.0)
    assert "from anywhere" not in with_elections(table, 2.4)


def test_what_is_lowered_by_little_is_not_lowered(table: Table) -> None:
    def said(near: float) -> set[Verdict]:
        rows = Table({**row, "mean": near if row["policy"] == NEAR else 100.0} for row in table)
        return {one.verdict for one in compare(rows)[:-1]}

    assert said(94.0) == {Verdict.AGREES}
    assert said(96.0) == {Verdict.DIFFERS}


def test_there_are_eight_policies_of_different_names() -> None:
    assert len({name_of(policy) for policy in POLICIES}) == 8


def test_it_is_compared_and_drawn(table: Table) -> None:
    assert len(compare(table)) == 4
    assert len(draw(table).axes) == 3

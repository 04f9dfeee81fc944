"""P11: operations inside groups scale well with k; ours transfer state by quorums, which grow a little."""

import pytest

from comesh.core.group.member import DOUBT_LEASES
from comesh.core.group.replica import DOUBT_ROUND_TRIPS, MIN_DOUBT
from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.operation_panels import delay, mean_delay
from comesh.experiments.p11_group_sizes import compare, draw, run
from comesh.experiments.table import Table

SIZES = (3, 9)
LEASE_HOPS = 20
NEAR_HOPS = 2
"""Some member is no farther from its leader."""


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [{"preset": "paper", "shape": "grid", "devices": 75, "k": k, "seed": 1} for k in SIZES]
    return Table({**case, **row} for case in cases for row in run(case))


def test_no_operation_grows_as_the_group_does(table: Table) -> None:
    for operation in ("quorum", "election", "state transfer"):
        small, large = (delay(table, operation, k=k) for k in SIZES)
        assert 0 < large < small * SIZES[1] / SIZES[0]


def test_a_quorum_is_a_round_trip_and_an_election_three(table: Table) -> None:
    """The shortest ones: to a neighbour and back."""
    for k in SIZES:
        assert delay(table, "quorum", k=k) >= 2
        assert delay(table, "election", k=k) >= 6
        assert delay(table, "from the claim", k=k) >= 4
        assert delay(table, "from the claim", k=k) < delay(table, "election", k=k)


def test_a_transfer_is_longer_than_the_commit_of_its_end(table: Table) -> None:
    for k in SIZES:
        rest = delay(table, "transfer after the commit", k=k)
        assert 0 < rest < delay(table, "state transfer", k=k)


def test_a_transfer_grows_with_k_and_no_more_than_its_quorums_do(table: Table) -> None:
    """Unlike in the paper, where it does not depend on k: ours holds two quorums."""
    transfer, quorum = (
        mean_delay(table, operation=operation, k=SIZES[1])
        / mean_delay(table, operation=operation, k=SIZES[0])
        for operation in ("state transfer", "quorum")
    )
    assert 1.25 < transfer < quorum
    told = {one.what: one for one in compare(table)}
    assert told["state transfer at k = 9 against 3, grid, paper"].verdict is Verdict.DIFFERS


def test_suspicion_takes_leases_whatever_the_size(table: Table) -> None:
    """The last touch was sent up to a lease before the crash, and arrived at a near member after it at the
    latest. That one misses the next touch, asks, and waits for the answer."""
    least = (DOUBT_LEASES + MIN_DOUBT - 1) * LEASE_HOPS
    most = DOUBT_LEASES * LEASE_HOPS + (2 * DOUBT_ROUND_TRIPS + 1) * NEAR_HOPS
    for k in SIZES:
        rows = table.where(operation="until suspicion", k=k)
        assert least < delay(rows, "until suspicion")
        assert max(rows.numbers("p90")) < most


def test_every_group_moved_and_every_leader_was_replaced(table: Table) -> None:
    groups = 3
    for k in SIZES:
        rows = table.where(k=k)
        assert rows.where(operation="election").numbers("count")[0] >= groups
        assert rows.where(operation="state transfer").numbers("count")[0] >= groups


def test_means_are_over_all_operations() -> None:
    rows = Table(
        [{"operation": "quorum", "mean": 2.0, "count": 3}, {"operation": "quorum", "mean": 6.0, "count": 1}]
    )
    assert mean_delay(rows, operation="quorum") == 3


def test_what_scales_well_grows_less_than_the_square_root_of_the_group(table: Table) -> None:
    """1.73 for three times as many members. Medians, which are whole round trips, do not decide."""

    def said(times: float, median: float) -> set[Verdict]:
        grown = {3: 1.0, 9: times}
        rows = Table({**row, "mean": 10 * grown[row["k"]], "median": median * row["k"]} for row in table)
        return {one.verdict for one in compare(rows) if " by k, grid" in one.what and one.paper}

    assert said(1.7, 10.0) == {Verdict.AGREES}
    assert said(1.8, 0.0) == {Verdict.DIFFERS}


def test_where_other_meshes_may_be_judged_otherwise_it_is_said(table: Table) -> None:
    def told(odd: float, even: float) -> Comparison:
        rows = [
            {**row, "seed": seed, "count": 10, "mean": 10.0 * (times if row["k"] == 9 else 1.0)}
            for seed in range(6)
            for times in ((even, odd)[seed % 2],)
            for row in table
        ]
        return compare(Table(rows))[0]

    sure, unsure = told(1.5, 1.5), told(1.3, 2.1)
    assert (sure.verdict, unsure.verdict) == (Verdict.AGREES, Verdict.AGREES)
    assert "at most 1.50x [1.50, 1.50]" in sure.ours
    assert sure.why == ""
    assert "1.73x lies in the interval" in unsure.why
    assert told(1.5, 2.1).verdict is Verdict.DIFFERS
    assert told(1.5, 2.1).in_short.endswith(" (by chance, perhaps: see its interval).")


def test_a_pre_vote_is_a_part_of_the_election(table: Table) -> None:
    told = {one.what: one.ours for one in compare(table)}["pre-vote by k, grid, paper (in the election)"]
    for k in SIZES:
        whole, claim = (
            mean_delay(table, operation=operation, k=k) for operation in ("election", "from the claim")
        )
        assert f"{k}: {whole - claim:.1f}" in told
        assert 0 < whole - claim < whole / 2


def grown(table: Table, **times: float) -> dict[str, Comparison]:
    """What is said if means become so many times as long from the smallest to the largest groups."""
    rows = [
        {**row, "mean": 10 * times.get(row["operation"].replace(" ", "_"), 1.0) ** (row["k"] == SIZES[1])}
        for row in table
    ]
    found = {one.what.split(",")[0]: one for one in compare(Table(rows))}
    for one in found.values():
        assert bool(one.why) is bool(one.in_short) is (one.verdict is Verdict.DIFFERS)
    return found


FLAT = "state transfer at k = 9 against 3"


def test_each_operation_that_differs_has_a_reason_of_its_own(table: Table) -> None:
    slow = grown(table, election=2.0)
    assert [what for what, one in slow.items() if one.verdict is Verdict.DIFFERS] == ["election by k"]
    assert "ransfer" not in slow["election by k"].why + slow["election by k"].in_short
    assert "less than half of it because quorums do" in slow["election by k"].in_short
    slow = grown(table, quorum=2.0)
    assert [what for what, one in slow.items() if one.verdict is Verdict.DIFFERS] == ["quorum by k"]
    assert "ransfer" not in slow["quorum by k"].why + slow["quorum by k"].in_short
    assert "f is 1 at k = 3 and 4 at 9" in slow["quorum by k"].why


def test_transfers_are_put_down_to_quorums_only_if_these_grow(table: Table) -> None:
    assert "mostly because quorums do" in grown(table, quorum=1.5, state_transfer=1.6)[FLAT].in_short
    alone = grown(table, state_transfer=1.6)[FLAT]
    assert "less than half of it because quorums do" in alone.in_short
    assert "1.0 quorums at k = 3 and 1.6 at 9, and a quorum becomes 1.00x" in alone.why


def test_transfers_that_shrink_differ_too_and_are_not_said_to_grow(table: Table) -> None:
    shrunk = grown(table, state_transfer=0.5)[FLAT]
    assert shrunk.verdict is Verdict.DIFFERS
    assert "becomes 0.50x" in shrunk.why
    assert shrunk.in_short == "State transfers take less time in the largest groups than in the smallest."


def test_it_is_compared_and_drawn(table: Table) -> None:
    found = {one.what: one for one in compare(table)}
    assert found["election by k, grid, paper"].verdict is Verdict.AGREES
    assert len(draw(table).axes) == 3

"""P12: locality lowers what happens inside groups."""

import pytest
from group_delays import mean_delay

from comesh.experiments.p12_policies import ALL, POLICIES, draw, name_of, run, tables
from comesh.experiments.stage import Table

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


def test_there_are_eight_policies_of_different_names() -> None:
    assert len({name_of(policy) for policy in POLICIES}) == 8


def test_locality_lowers_elections(table: Table) -> None:
    """Four groups, each of which loses its leader; three round trips, to a neighbour at the least. In single
    meshes of so few it may not."""
    for policy in (NEAR, FAR):
        assert table.where(operation="election", policy=policy).numbers("count") == [4] * len(SEEDS)
        assert mean_delay(table, operation="election", policy=policy) >= 6
    near, far = (mean_delay(table, operation="election", policy=policy) for policy in (NEAR, FAR))
    assert near < 0.95 * far
    means, against = tables(table).values()
    assert [row["election"].value for row in means] == [near, far]
    (row,) = against.where(operation="election")
    assert row["times"].value == near / far


def test_it_is_drawn(table: Table) -> None:
    assert len(draw(table).axes) == 3

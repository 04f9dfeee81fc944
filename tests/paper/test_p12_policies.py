"""P12: locality lowers what happens inside groups."""

import pytest

from comesh.experiments.operation_panels import delay
from comesh.experiments.p12_policies import ALL, POLICIES, compare, draw, name_of, run
from comesh.experiments.table import Table

NEAR, FAR = name_of(frozenset()), name_of(ALL)


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [{"preset": "paper", "policy": policy, "devices": 100, "seed": 1} for policy in (NEAR, FAR)]
    return Table({**case, **row} for case in cases for row in run(case))


def test_locality_lowers_quorums_and_transfers(table: Table) -> None:
    for operation in ("quorum", "state transfer"):
        assert delay(table, operation, policy=NEAR) < 0.8 * delay(table, operation, policy=FAR)


def test_there_are_eight_policies_of_different_names() -> None:
    assert len({name_of(policy) for policy in POLICIES}) == 8


def test_it_is_compared_and_drawn(table: Table) -> None:
    assert len(compare(table)) == 4
    assert len(draw(table).axes) == 3

"""P13: quorums and transfers go on, about as fast, while nodes come and go."""

import pytest

from comesh.core.ids import NodeId
from comesh.experiments.measures.churn import drawn
from comesh.experiments.measures.group_churn import schedule
from comesh.experiments.p13_churn_in_groups import run
from comesh.experiments.table import Table
from comesh.sim.faults import Crash, Restart

CHURN = 40


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [
        {"preset": "paper", "devices": 75, "churn": churn, "epochs": 5.0, "seed": 1} for churn in (0, CHURN)
    ]
    return Table({**case, **row} for case in cases for row in run(case))


def test_each_chosen_node_crashes_or_joins_once_while_it_is_measured() -> None:
    churn = drawn([NodeId(f"n{number}") for number in range(50)], 0.4, seed=3)
    assert len(churn.crash) == len(churn.join) == 10
    assert not set(churn.crash) & set(churn.join)
    faults = schedule(churn, begins_ms=20_000, lasts_ms=5000, apart_ms=100, seed=3).faults
    down = [fault.node for fault in faults if isinstance(fault, Crash) and fault.at_ms < 20_000]
    crashed = [fault.node for fault in faults if isinstance(fault, Crash) and fault.at_ms >= 20_000]
    joined = [fault for fault in faults if isinstance(fault, Restart)]
    assert sorted(down) == sorted(churn.join) == sorted(fault.node for fault in joined)
    assert sorted(crashed) == sorted(churn.crash)
    assert all(20_000 <= fault.at_ms <= 25_000 and not fault.keep_disk for fault in joined)


def test_nobody_is_elected_without_churn(table: Table) -> None:
    assert not len(table.where(churn=0, operation="election"))


def test_groups_commit_and_move_under_churn(table: Table) -> None:
    for operation in ("quorum", "state transfer"):
        calm, rough = (table.where(churn=churn, operation=operation) for churn in (0, CHURN))
        assert rough.numbers("count")[0] > 0.3 * calm.numbers("count")[0]
        assert rough.mean("mean") < 1.5 * calm.mean("mean")


def test_groups_are_served_most_of_the_time(table: Table) -> None:
    assert table.where(churn=0, operation="served").mean("share") > 0.9
    assert table.where(churn=CHURN, operation="served").mean("share") > 0.7

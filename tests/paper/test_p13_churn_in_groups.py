"""P13: quorums and transfers go on, about as fast, while nodes come and go."""

import pytest

from comesh.core.ids import NodeId
from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.measures.churn import drawn, spared
from comesh.experiments.measures.group_churn import schedule
from comesh.experiments.operation_panels import mean_delay
from comesh.experiments.p13_churn_in_groups import LIVED, compare, run
from comesh.experiments.table import Table
from comesh.sim.faults import Crash, Restart
from comesh.sim.topology import Shape, make_topology

CHURN, MOST = 40, 60


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [
        {"preset": "paper", "devices": 75, "churn": churn, "epochs": 5.0, "seed": seed}
        for churn in (0, CHURN, MOST)
        for seed in range(1, 7)
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


def test_without_churn_leaders_are_crashed_one_of_each_group(table: Table) -> None:
    assert table.where(churn=0, operation="election").numbers("count") == [3, 3, 3, 4, 3, 3]


def test_groups_commit_and_move_under_churn(table: Table) -> None:
    for operation in ("quorum", "state transfer"):
        calm, rough = (table.where(churn=churn, operation=operation) for churn in (0, CHURN))
        assert sum(rough.numbers("count")) > 0.8 * sum(calm.numbers("count"))
        assert mean_delay(rough) <= 1.25 * mean_delay(calm)


def test_with_more_churn_quorums_take_little_longer_than_the_way_to_members(table: Table) -> None:
    """In so small a mesh the nodes that are left are farther apart; that members die costs less than that."""
    rough = table.where(churn=MOST)
    assert mean_delay(rough, operation="quorum") <= 1.25 * mean_delay(rough, operation=LIVED)
    assert mean_delay(rough, operation="state transfer") <= 1.25 * mean_delay(
        table.where(churn=0), operation="state transfer"
    )


def test_leaders_that_crash_are_replaced_under_churn(table: Table) -> None:
    """A handful of elections in six small meshes: by chance they differ by more than the bar allows."""
    calm, *rough = (table.where(churn=churn, operation="election") for churn in (0, CHURN, MOST))
    for one in rough:
        assert sum(one.numbers("count")) >= 4
        assert mean_delay(one) <= 1.5 * mean_delay(calm)


def test_the_bar_can_be_missed(table: Table) -> None:
    def met(slower: float) -> set[bool | None]:
        rows = [
            {**row, "mean": 10.0 * (slower if row["churn"] else 1.0)} if "mean" in row else row
            for row in table
        ]
        return {one.met for one in compare(Table(rows)) if one.bar}

    assert met(1.2) == {True}
    assert met(1.3) == {False}


def test_of_few_meshes_it_is_not_judged(table: Table) -> None:
    few = Table(row for row in table if row["seed"] <= 2)
    held = [one for one in compare(few) if one.held]
    assert {one.held for one in held} == {"not judged"}
    assert all("of so few seeds (2)" in one.why for one in held)


def test_intervals_and_what_they_leave_open_are_told(table: Table) -> None:
    """Every other mesh is slowed by so much."""

    def told(of_odd: float, of_even: float, most: int = MOST) -> Comparison:
        rows = [
            {**row, "mean": 10.0 * ((of_even, of_odd)[row["seed"] % 2] if row["churn"] else 1.0)}
            | {"churn": most if row["churn"] == MOST else row["churn"], "count": 10}
            for row in table
            if "mean" in row
        ]
        return compare(Table(rows))[0]

    assert "40: 1.20x [1.20, 1.20]" in told(1.2, 1.2).ours
    assert told(1.2, 1.2).why == ""
    unsure = told(1.0, 1.4)
    assert unsure.met is True
    assert unsure.why.startswith("at 40 % 1.25x lies in the interval")
    assert "at 80 % it is no more than 25% longer either" in told(1.2, 1.2, most=80).why


def slowed(table: Table, wanted: str, times: float, lived: float = 1.0) -> Comparison:
    """What is said if one operation takes that much longer with the most churn."""
    by = {wanted: times, LIVED: lived}
    rows = [
        {**row, "mean": 10.0 * by.get(row["operation"], 1.0) ** (row["churn"] == MOST)}
        if "mean" in row
        else row
        for row in table
    ]
    found = {one.what: one for one in compare(Table(rows))}
    differ = [one for one in found.values() if one.verdict is Verdict.DIFFERS]
    assert all(one.why and one.in_short for one in differ)
    one = found[f"{wanted} by churn in %, paper"]
    assert differ == [one]
    return one


def test_fewer_living_nodes_are_blamed_only_for_what_they_lengthen(table: Table) -> None:
    for operation in ("quorum", "state transfer"):
        far, near = slowed(table, operation, 1.5, lived=1.4), slowed(table, operation, 1.5)
        assert "mostly as fewer nodes live" in far.in_short
        assert "40% at 60 %" in far.why
        assert "less than half of it is that fewer nodes live" in near.in_short
        assert "at 60 % by 50%" in near.why
        assert "at 40 %" not in near.why


def test_slow_elections_are_put_down_to_other_crashes(table: Table) -> None:
    counts = table.where(operation="election", churn=MOST).numbers("count")
    one = slowed(table, "election", 1.5)
    assert f"({sum(counts):.0f} at 60 %)" in one.why
    assert "fewer nodes live" not in one.in_short


def test_routines_touch_nothing_that_churn_takes_away() -> None:
    topology = make_topology(Shape.GRID, devices=75, seed=1)
    stay = set(spared(topology, 0.8, seed=1))
    places = {topology.devices[device] for device in stay}
    for share in (0.2, 0.8):
        churn = drawn(sorted(topology.nodes), share, seed=1)
        assert not places & {topology.nodes[node] for node in (*churn.crash, *churn.join)}
    assert len(stay) > 45


def test_groups_are_served_most_of_the_time(table: Table) -> None:
    assert table.where(churn=0, operation="served").mean("share") > 0.9
    assert table.where(churn=CHURN, operation="served").mean("share") > 0.7

"""P13: quorums and transfers go on, about as fast, while nodes come and go."""

import pytest
from group_delays import mean_delay

from comesh.core.ids import NodeId
from comesh.experiments.measures.churn import drawn, spared
from comesh.experiments.measures.group_churn import LIVED, schedule
from comesh.experiments.p13_churn_in_groups import FEWEST, bars, draw, run, tables
from comesh.experiments.stage import Table
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


def test_the_bar_can_be_missed(table: Table) -> None:
    def met(slower: float) -> set[bool | None]:
        rows = [
            {**row, "mean": 10.0 * (slower if row["churn"] else 1.0)} if "mean" in row else row
            for row in table
        ]
        return {one.met for one in bars(Table(rows)) if not one.unjudged}

    assert met(1.2) == {True}
    assert met(1.3) == {False}


def test_few_meshes_or_elections_are_not_judged(table: Table) -> None:
    few = Table(row for row in table if row["seed"] <= 2)
    assert {one.met for one in bars(few)} == {None}
    first = table.where(operation="election").summary("churn", "seed", min)
    for count, judged in ((FEWEST - 1, False), (FEWEST, True)):
        rows = [
            {**row, "count": count * (row["seed"] == first[row["churn"]])}
            if row["operation"] == "election"
            else row
            for row in table
        ]
        elections = [one for one in bars(Table(rows)) if one.name.startswith("election")]
        assert {one.met is not None for one in elections} == {judged}


def test_an_operation_that_never_came_to_its_end_misses_the_bar(table: Table) -> None:
    rows = [row for row in table if (row["operation"], row["churn"]) != ("quorum", MOST)]
    (one,) = (one for one in bars(Table(rows)) if one.name.startswith(f"quorum at {MOST} %"))
    assert one.met is False


def test_it_is_tabulated_and_drawn(table: Table) -> None:
    means, against, served, counts = tables(table).values()
    assert means.distinct("churn") == [0, CHURN, MOST]
    assert against.distinct("churn") == [CHURN, MOST]
    assert LIVED in means.columns
    assert counts.rows[0]["election"] == 19
    assert len(served) == 3
    assert len(draw(table).axes) == 3

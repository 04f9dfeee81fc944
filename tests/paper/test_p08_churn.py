"""P8: while 40 % of the nodes crash or join, routines go on, and wait little longer than without."""

import pytest

from comesh.core.ids import NodeId
from comesh.experiments.campaign import Verdict
from comesh.experiments.measures.churn import drawn
from comesh.experiments.measures.firings import MAX_CHURN, without_first
from comesh.experiments.measures.presets import setup
from comesh.experiments.p08_churn import compare, draw, run
from comesh.experiments.table import Row, Table
from comesh.experiments.verdicts import FEWEST_SEEDS, with_lost
from comesh.sim.topology import Shape, make_topology
from comesh.sim.workloads import paper_workload


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [
        {"preset": "default", "devices": 50, "churn": churn, "routines": 5, "seed": seed}
        for churn in (0.0, MAX_CHURN)
        for seed in range(1, FEWEST_SEEDS + 1)
    ]
    return Table({**case, **row} for case in cases for row in run(case))


def test_routines_fire_with_churn_too(table: Table) -> None:
    """All but those of a group that lost more than f members before it could replace them."""
    calm, churned = table.where(churn=0.0), table.where(churn=MAX_CHURN)
    assert len(calm.numbers("client_hops")) == len(calm) == 25
    assert len(churned.numbers("client_hops")) >= 23
    assert sum(table.numbers("repeated")) == 0


def test_each_is_fired_again_and_waits_for_the_first_run(table: Table) -> None:
    """Where all devices are of the routine's own group, what frees them starts the next run."""
    delays = table.numbers("sync_hops")
    assert len(delays) >= 0.9 * len(table)
    assert min(delays) >= 0
    assert max(delays) > 10


def test_runs_hardly_notice(table: Table) -> None:
    calm, churned = (table.where(churn=churn).mean("client_hops") for churn in (0.0, MAX_CHURN))
    assert churned <= 1.25 * calm


def test_they_hardly_notice_with_the_preset_paper() -> None:
    """Where every run may meet the end of an epoch, with churn or without."""
    cases = [
        {"preset": "paper", "devices": 50, "churn": churn, "routines": 5, "seed": seed}
        for churn in (0.0, MAX_CHURN)
        for seed in range(1, FEWEST_SEEDS + 1)
    ]
    table = with_lost(Table({**case, **row} for case in cases for row in run(case)))
    calm, churned = (table.where(churn=churn).mean("client_hops") for churn in (0.0, MAX_CHURN))
    assert churned <= 1.25 * calm


def met(table: Table) -> list[bool | None]:
    return [one.met for one in compare(table) if one.bar]


def test_the_bar_can_be_missed(table: Table) -> None:
    assert met(Table({**row, "client_hops": 10.0 + row["churn"]} for row in table)) == [True]
    assert met(Table({**row, "client_hops": 10.0 + 10 * row["churn"]} for row in table)) == [False]


def test_of_few_meshes_it_is_not_judged(table: Table) -> None:
    few = Table(row for row in table if row["seed"] < FEWEST_SEEDS)
    for slower in (1.0, 10.0):
        client = compare(Table({**row, "client_hops": 10.0 + slower * row["churn"]} for row in few))[0]
        assert client.held == "not judged"
        assert "of so few seeds (4)" in client.why


def test_it_is_held_to_it_at_every_size(table: Table) -> None:
    """However many firings there are of other sizes."""

    def sized(devices: int, slower: float) -> list[Row]:
        return [
            {**row, "devices": devices, "client_hops": 10.0 + slower * bool(row["churn"])} for row in table
        ]

    assert met(Table([*sized(50, 0.0), *sized(250, 2.4)])) == [True]
    assert met(Table([*sized(50, 0.0), *sized(100, 0.0), *sized(250, 2.6)])) == [False]


def test_it_agrees_where_the_bar_is_met_and_nowhere_else(table: Table) -> None:
    """At every size, and not overall. What is shorter than the most that the paper says is no better."""

    def said(small: float, large: float) -> Verdict:
        rows = [
            {**row, "devices": devices, "client_hops": 10.0 * (slower if row["churn"] else 1.0), "lost": 0}
            for devices, slower in ((50, small), (250, large))
            for row in table
        ]
        client = compare(Table(rows))[0]
        assert client.met is (client.verdict is Verdict.AGREES)
        assert bool(client.why) is bool(client.in_short) is (client.verdict is Verdict.DIFFERS)
        assert ("N = 50: " in client.why) == (small > 1.25)
        assert ("N = 250: " in client.why) == (large > 1.25)
        return client.verdict

    assert said(1.3, 1.38) == said(1.0, 1.26) == Verdict.DIFFERS
    assert said(1.25, 1.0) == said(1.0, 1.0) == said(0.5, 0.5) == Verdict.AGREES


def test_few_slow_firings_are_the_reason_only_if_the_others_are_not_slow(table: Table) -> None:
    def said(others: float, slowest: float) -> str:
        one = table.rows[0]["routine"]
        rows = [
            {
                **row,
                "client_hops": 20.0
                + bool(row["churn"]) * (slowest if row["routine"] == one and row["seed"] < 3 else others),
                "lost": 0,
            }
            for row in table
        ]
        return compare(Table(rows))[0].in_short

    assert "longer at some N, by the tenth" in said(1.0, 200.0)
    assert "not only by the tenth" in said(6.0, 200.0)


def losing(table: Table, seeds: tuple[int, ...]) -> Table:
    """All take as long with churn as without, but one routine on these meshes, which is lost."""
    lost = table.rows[0]["routine"]
    return Table(
        {**row, "client_hops": None, "lost": 1}
        if row["churn"] and row["seed"] in seeds and row["routine"] == lost
        else {**row, "client_hops": 20.0, "lost": 0}
        for row in table
    )


def test_lost_firings_count_as_long_as_they_had(table: Table) -> None:
    assert met(losing(table, ())) == [True]
    assert met(losing(table, (1,))) == [False]
    missed = compare(losing(table, (1, 2)))[0]
    assert "without lost ones 1.00x" in missed.ours
    assert "lost are 2" in missed.why


def test_only_the_same_firings_are_compared(table: Table) -> None:
    """A slow mesh of which nothing is known without churn says nothing."""
    known = losing(table, ())
    strange = [{**row, "seed": 99, "client_hops": 500.0} for row in known.where(churn=MAX_CHURN)]
    assert compare(Table([*known, *strange])) == compare(known)


def test_it_is_drawn(table: Table) -> None:
    assert len(draw(Table([*table, *({**row, "preset": "paper"} for row in table)])).axes) == 4


def test_who_joins_is_no_first_member() -> None:
    topology = make_topology(Shape.GRID, devices=50, seed=1)
    made = setup("default", seed=1)
    program = paper_workload(topology, made.selection, made.protocol, routines=2, seed=1).program
    absent: tuple[NodeId, ...] = drawn(sorted(topology.nodes), MAX_CHURN, 1).join
    named = {node for nodes in program.plan.genesis.values() for node in nodes}
    assert named & set(absent), "else this shows nothing"
    changed = without_first(program, absent).plan.genesis
    assert changed.keys() == program.plan.genesis.keys()
    assert not {node for nodes in changed.values() for node in nodes} & set(absent)

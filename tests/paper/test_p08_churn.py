"""P8: while 40 % of the nodes crash or join, routines go on, and wait little longer than without."""

import pytest

from comesh.core.ids import NodeId
from comesh.experiments.measures.churn import drawn
from comesh.experiments.measures.firings import MAX_CHURN, with_lost, without_first
from comesh.experiments.measures.presets import setup
from comesh.experiments.p08_churn import bars, draw, run, tables
from comesh.experiments.stage import MIN_SEEDS, Row, Table
from comesh.sim.topology import Shape, make_topology
from comesh.sim.workloads import paper_workload


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [
        {"preset": "default", "devices": 50, "churn": churn, "routines": 5, "seed": seed}
        for churn in (0.0, MAX_CHURN)
        for seed in range(1, MIN_SEEDS + 1)
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
        for seed in range(1, MIN_SEEDS + 1)
    ]
    table = with_lost(Table({**case, **row} for case in cases for row in run(case)))
    calm, churned = (table.where(churn=churn).mean("client_hops") for churn in (0.0, MAX_CHURN))
    assert churned <= 1.25 * calm


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


def met(table: Table) -> list[bool | None]:
    return [one.met for one in bars(table)]


def test_the_bar_can_be_missed(table: Table) -> None:
    assert met(Table({**row, "client_hops": 10.0 + row["churn"]} for row in table)) == [True]
    assert met(Table({**row, "client_hops": 10.0 + 10 * row["churn"]} for row in table)) == [False]


def test_of_few_meshes_it_is_not_judged(table: Table) -> None:
    few = Table(row for row in table if row["seed"] < MIN_SEEDS)
    for slower in (1.0, 10.0):
        (one,) = bars(Table({**row, "client_hops": 10.0 + slower * row["churn"]} for row in few))
        assert one.verdict.startswith("not judged: of 4 seeds")


def test_it_is_held_to_it_at_every_size(table: Table) -> None:
    """However many firings there are of other sizes."""

    def sized(devices: int, slower: float) -> list[Row]:
        return [
            {**row, "devices": devices, "client_hops": 10.0 + slower * bool(row["churn"])} for row in table
        ]

    assert met(Table([*sized(50, 0.0), *sized(250, 2.4)])) == [True, True]
    assert met(Table([*sized(50, 0.0), *sized(100, 0.0), *sized(250, 2.6)])) == [True, True, False]


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


def test_only_meshes_that_were_measured_both_ways_are_compared(table: Table) -> None:
    """A slow mesh of which nothing is known without churn says nothing."""
    known = losing(table, ())
    strange = [{**row, "seed": 99, "client_hops": 500.0} for row in known.where(churn=MAX_CHURN)]
    assert bars(Table([*known, *strange])) == bars(known)


def test_it_is_tabulated(table: Table) -> None:
    counted, against = tables(table).values()
    assert len(counted) == 2
    (row,) = against
    assert row["client delay"].low < row["client delay"].value < row["client delay"].high

"""G: what protections cost: batches save commits, shorter leases cost messages, the rest is counted."""

import pytest

from comesh.experiments.g_protections import BASE, VARIANTS, draw, run, tables
from comesh.experiments.measures.protections import PURPOSES, with_floors
from comesh.experiments.stage import Table
from comesh.sim.topology import Shape, make_topology

BATCH, SHORT = "order and batch by cluster", "lease of half the length"


@pytest.fixture(scope="module")
def table() -> Table:
    mesh = {"preset": "paper", "devices": 75, "seconds": 15.0, "seed": 1}
    cases = [{**mesh, "variant": variant, "by": "variant"} for variant in (BASE, BATCH, SHORT)]
    cases.append({**mesh, "variant": "", "by": "purpose"})
    return Table({**case, **row} for case in cases for row in run(case))


def test_batches_save_commits(table: Table) -> None:
    one_by_one, batched = table.where(variant=BASE), table.where(variant=BATCH)
    assert batched.mean("commits_per_run") < one_by_one.mean("commits_per_run")


def test_a_shorter_lease_costs_messages_at_rest(table: Table) -> None:
    column = "idle_messages_per_node_s"
    assert table.where(variant=SHORT).mean(column) > table.where(variant=BASE).mean(column)


def test_what_cannot_be_switched_off_is_counted(table: Table) -> None:
    counted = table.where(by="purpose")
    assert sum(counted.numbers("share_of_messages")) == pytest.approx(1)
    assert sum(counted.numbers("share_of_bytes")) == pytest.approx(1)
    for purpose in ("leases", "pre-vote", "claims", "handoffs", "releases acknowledged", "commits"):
        assert counted.where(purpose=purpose).mean("messages") > 0, purpose
    assert counted.where(purpose="pre-vote").mean("messages") < counted.where(purpose="leases").mean(
        "messages"
    )


def test_no_message_has_two_purposes() -> None:
    kinds = [kind for kinds in PURPOSES.values() for kind in kinds]
    assert len(kinds) == len(set(kinds))


def test_floors_are_power_domains() -> None:
    topology = with_floors(make_topology(Shape.GRID, devices=64))
    assert len(topology.power_domains) == 4
    assert sum(map(len, topology.power_domains.values())) == len(topology.nodes)


def test_it_is_tabulated_and_drawn(table: Table) -> None:
    assert set(table.distinct("variant")) <= {*VARIANTS, ""}
    measured, against, counted = tables(table).values()
    assert (len(measured), len(against)) == (3, 2)
    assert against.where(variant=BATCH).rows[0]["commits per run"].value < 1
    assert len(counted) == len(table.where(by="purpose"))
    assert len(draw(table).axes) == 3

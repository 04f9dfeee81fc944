"""G: what protections cost: batches save commits, shorter leases cost messages, the rest is counted."""

import pytest

from comesh.experiments.g_protections import BASE, DELAYS, VARIANTS, compare, draw, run
from comesh.experiments.measures.protections import PURPOSES, with_floors
from comesh.experiments.table import Table
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


def test_what_is_counted_says_what_it_delays_unless_it_is_on_every_runs_way(table: Table) -> None:
    whys = {one.what.split(": ")[1].split(",")[0]: one.why for one in compare(table) if "counted" in one.what}
    on_the_way = {"commits", "locks", "commands", "finding leaders", "probes of devices", "membership"}
    assert {purpose for purpose, why in whys.items() if not why} <= on_the_way
    assert all(why.startswith("Delay: ") for why in whys.values() if why)
    assert set(DELAYS) <= set(PURPOSES)


def test_no_message_has_two_purposes() -> None:
    kinds = [kind for kinds in PURPOSES.values() for kind in kinds]
    assert len(kinds) == len(set(kinds))


def test_floors_are_power_domains() -> None:
    topology = with_floors(make_topology(Shape.GRID, devices=64))
    assert len(topology.power_domains) == 4
    assert sum(map(len, topology.power_domains.values())) == len(topology.nodes)


def test_a_change_is_of_the_same_meshes_and_noise_is_called_so(table: Table) -> None:
    def told(*changes: float) -> str:
        base, *_ = table.where(variant=BASE)
        rows = [
            {**base, "variant": variant, "seed": seed, "delay_mean": 50.0 * seed * times}
            for seed, change in enumerate(changes, start=1)
            for variant, times in ((BASE, 1.0), (SHORT, 1 + change))
        ]
        return compare(Table(rows))[1].ours.rpartition("client delay ")[2]

    assert told(0.1, 0.12, 0.08).endswith("(+10 %) hops")
    assert told(0.5, -0.1, -0.1).endswith("(+10 ± 86 %: noise) hops")
    assert told(0.1).endswith("(+10 % in one mesh) hops")


def test_it_is_compared_and_drawn(table: Table) -> None:
    assert set(table.distinct("variant")) <= {*VARIANTS, ""}
    assert sum(one.what.startswith("measured") for one in compare(table)) == 3
    assert len(draw(table).axes) == 3

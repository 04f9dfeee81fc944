"""A: under contention `priority` and `sequential` let everybody through, and `optimistic` tries again."""

import pytest

from comesh.experiments.a_contention import WAYS, draw, run, tables
from comesh.experiments.measures.contention import ROUTINES, SHARED, WANTED, draw_routines
from comesh.experiments.stage import Table
from comesh.sim.topology import Shape, make_topology

HOPS = 2000


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [
        {"preset": "default", "way": way, "overlap": overlap, "hops": HOPS, "seed": 1}
        for way in WAYS
        for overlap in (0.0, 0.9)
    ]
    return Table({**case, **row} for case in cases for row in run(case))


def test_who_shares_nothing_does_not_wait_for_others(table: Table) -> None:
    for way in WAYS:
        calm, contended = (table.where(way=way, overlap=overlap) for overlap in (0.0, 0.9))
        assert calm.mean("wait_p90_hops") < 100 < contended.mean("wait_p90_hops")
        assert calm.mean("runs_per_1000_hops") > 2 * contended.mean("runs_per_1000_hops")
        assert calm.mean("attempts_mean") == 1


def test_all_at_once_is_faster_where_nobody_contends(table: Table) -> None:
    calm = table.where(overlap=0.0)
    serial = calm.where(way="sequential batched").mean("wait_median_hops")
    assert calm.where(way="optimistic").mean("wait_median_hops") < serial
    assert serial <= calm.where(way="sequential unbatched").mean("wait_median_hops")


def test_only_optimistic_tries_again_and_again_and_waits_longest(table: Table) -> None:
    hard = table.where(overlap=0.9)
    assert hard.where(way="optimistic").mean("attempts_most") > 3
    assert hard.where(way="sequential batched").mean("attempts_most") == 1
    longest = {way: hard.where(way=way).mean("wait_longest_hops") for way in WAYS}
    assert max(longest, key=lambda way: longest[way]) == "optimistic"
    assert longest["priority"] < longest["optimistic"]


def test_routines_share_more_as_the_overlap_rises_and_keep_what_they_share() -> None:
    topology = make_topology(Shape.GRID, devices=100, seed=3)
    before: set[tuple[str, str]] = set()
    own = {device for devices in draw_routines(topology, 0.0, 3).values() for device in devices}
    assert len(own) == ROUTINES * WANTED, "nobody shares anything"
    for overlap in (0.3, 0.6, 1.0):
        drawn = draw_routines(topology, overlap, 3)
        shared = {(name, one) for name, devices in drawn.items() for one in devices if one not in own}
        assert before < shared
        assert abs(len(shared) / (ROUTINES * WANTED) - overlap) < 0.15
        before = shared
    assert len({device for _, device in before}) == SHARED


def test_it_is_tabulated_and_drawn(table: Table) -> None:
    (found,) = tables(table).values()
    assert len(found) == 2 * len(WAYS)
    starving = found.where(way="optimistic", overlap=0.9).rows[0]["runs of the unluckiest routine"]
    assert starving.value == table.where(way="optimistic", overlap=0.9).mean("fewest_runs")
    assert len(draw(Table([*table, *({**row, "preset": "paper"} for row in table)])).axes) == 8

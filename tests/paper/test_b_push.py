"""B: a device that tells changes by itself is acted upon sooner, and may be polled less often."""

import pytest

from comesh.experiments.b_push import WAYS, cases, draw, run, tables
from comesh.experiments.stage import Scale, Table


@pytest.fixture(scope="module")
def table() -> Table:
    small = [
        {"preset": "default", "way": way, "devices": 30, "routines": 4, "seed": 1}
        for way in WAYS
        if way != "polled every 0.2 s"
    ]
    return Table({**case, **row} for case in small for row in run(case))


def test_nothing_is_missed(table: Table) -> None:
    assert sum(table.numbers("lost")) == 0


def test_push_is_noticed_within_the_way_from_the_device(table: Table) -> None:
    for way in ("push, polled every 1 s", "push, polled every 5 s"):
        assert max(table.where(way=way).numbers("polling_hops")) < 10
    assert table.where(way="polled every 1 s").mean("polling_hops") > 20
    assert table.where(way="polled every 5 s").mean("polling_hops") > 100


def test_push_comes_on_top_of_polling_and_replaces_most_of_it(table: Table) -> None:
    costs = {way: table.where(way=way).mean("bytes_per_device_s") for way in table.distinct("way")}
    assert costs["polled every 1 s"] < costs["push, polled every 1 s"] < 1.5 * costs["polled every 1 s"]
    assert costs["push, polled every 5 s"] < 0.5 * costs["polled every 1 s"]


def test_no_leader_of_the_paper_reads_every_five_seconds() -> None:
    """Its epochs are shorter."""
    of_paper = {case["way"] for case in cases(Scale.QUICK) if case["preset"] == "paper"}
    assert of_paper == {"polled every 0.2 s", "polled every 1 s", "push, polled every 1 s"}


def test_changes_that_are_missed_count_as_long_as_they_had(table: Table) -> None:
    """All, or some: else who misses the slow ones looks fast."""

    def told(missed: int) -> tuple[float, float]:
        of_way = table.where(way="polled every 5 s")
        rows = [
            {**row, "window_hops": 1000, "lost": 1, "reaction_hops": None, "polling_hops": None}
            if at < missed
            else {**row, "reaction_hops": 100, "polling_hops": 90, "lost": 0}
            for at, row in enumerate(of_way)
        ]
        (found,) = tables(Table(rows)).values()
        row = found.rows[0]
        return row["change to first command, hops"].value, row["until it is noticed"].value

    assert told(0) == (100, 90)
    assert told(2) == (550, 545)
    assert told(4) == (1000, 1000)


def test_it_is_drawn(table: Table) -> None:
    assert len(draw(Table([*table, *({**row, "preset": "paper"} for row in table)])).axes) == 2

"""C: what the rule on power domains buys when one goes out, in simulations of the whole protocol."""

from functools import cache

import pytest

from comesh.core.ids import GroupId, NodeId
from comesh.experiments.c_power_domains import bars, draw, run, tables
from comesh.experiments.measures.power_outages import OUTAGE_S, Hit, hits_of, seconds_of
from comesh.experiments.stage import Row, Table
from comesh.sim.group_watch import Span

DEVICES, DOMAINS = 100, 4


@cache
def _row(preset: str, *, rule: bool) -> Row:
    case = {"preset": preset, "devices": DEVICES, "domains": DOMAINS, "rule": rule, "seed": 1}
    (row,) = run(case)
    return {**case, **row}


@pytest.mark.parametrize("preset", ["paper", "default"])
def test_c_with_the_rule_no_group_loses_its_majority_and_all_firings_end(preset: str) -> None:
    row = _row(preset, rule=True)
    assert row["nodes_out"] == 10
    assert (row["would_lose"], row["lost_majority"], row["lossy"]) == (0, 0, 0)
    assert row["longest_down_s"] <= 5
    assert row["ended"] == row["firings"] > 10


@pytest.mark.parametrize("preset", ["paper", "default"])
def test_c_without_it_some_do_and_stop_for_longer_than_the_outage(preset: str) -> None:
    row = _row(preset, rule=False)
    assert row["lost_majority"] > 0
    assert row["longest_down_s"] > OUTAGE_S
    assert row["longest_down_with_majority_s"] <= 5
    assert row["ended"] < row["firings"] / 2


def test_c_a_domain_is_as_bad_as_the_majorities_it_takes() -> None:
    a, b, c, d = (NodeId(name) for name in "abcd")
    members = {GroupId("c1"): (a, b, c), GroupId("c2"): (a, c, d)}
    hits = hits_of(members, {"west": (a, b), "east": (c,), "north": (d,)})
    assert hits == {"west": Hit(1, 3), "east": Hit(0, 2), "north": Hit(0, 1)}


def test_c_spans_that_overlap_count_once_and_open_ones_to_the_end() -> None:
    assert seconds_of((Span(100.0, 105.0), Span(103.0, 107.0))) == 7
    assert seconds_of((Span(260.0, None),)) == 10


def test_c_the_rule_is_held_to_no_lost_majority() -> None:
    rows = [_row("default", rule=rule) for rule in (True, False)]
    assert [one.met for one in bars(Table(rows))] == [True]
    worse = Table({**row, "lost_majority": 1} for row in rows)
    assert [one.met for one in bars(worse)] == [False]
    (found,) = tables(Table(rows)).values()
    assert found.numbers("groups") == [4, 4], "clusters, without the group `deployment`"
    assert found.numbers("lost their majority")[0] == 0
    assert len(draw(Table(rows)).axes) == 3

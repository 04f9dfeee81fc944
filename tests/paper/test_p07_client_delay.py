"""P7: client delay grows gradually with the mesh, and OLA is below SLA; polling is told apart."""

from collections.abc import Callable

import pytest

from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.p07_client_delay import compare, draw, run
from comesh.experiments.table import Row, Table
from comesh.experiments.verdicts import FEWEST_SEEDS, growth_interval, max_growth, ratio_interval

SIZES = (50, 150)
ROUTINES = 4


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [
        {
            "preset": "default",
            "devices": devices,
            "topology": topology,
            "strategy": strategy,
            "routines": ROUTINES,
            "seed": 1,
        }
        for devices in SIZES
        for topology in ("grid", "random", "clustered")
        for strategy in ("sequential", "optimistic", "priority")
    ]
    return Table({**case, **row} for case in cases for row in run(case))


def test_every_routine_fired_once_and_came_to_its_first_command(table: Table) -> None:
    assert len(table) == len(SIZES) * 9 * ROUTINES
    assert sum(table.numbers("lost")) == 0
    assert sum(table.numbers("repeated")) == 0


def test_the_delay_grows_by_less_than_the_mesh(table: Table) -> None:
    for strategy in ("sequential", "optimistic"):
        here = table.where(strategy=strategy)
        small, large = (here.where(devices=devices).mean("client_hops") for devices in SIZES)
        assert small < large < small * SIZES[1] / SIZES[0]


def test_it_does_with_the_preset_paper() -> None:
    cases = [
        {
            "preset": "paper",
            "devices": devices,
            "topology": "grid",
            "strategy": "sequential",
            "routines": ROUTINES,
            "seed": 1,
        }
        for devices in SIZES
    ]
    table = Table({**case, **row} for case in cases for row in run(case))
    small, large = (table.where(devices=devices).mean("client_hops") for devices in SIZES)
    assert small < large < small * SIZES[1] / SIZES[0]


def test_all_locks_at_once_are_faster_than_one_after_the_other(table: Table) -> None:
    serial = table.where(strategy="sequential").mean("client_hops")
    assert table.where(strategy="optimistic").mean("client_hops") < 0.95 * serial


def test_a_ratio_has_an_interval_over_seeds_and_none_of_few() -> None:
    def of(*hops: float) -> Table:
        return Table({"devices": 50, "seed": seed, "client_hops": one} for seed, one in enumerate(hops))

    same, spread = of(*[10.0] * FEWEST_SEEDS), of(*[5.0 + 10 * (at % 2) for at in range(FEWEST_SEEDS)])
    assert ratio_interval(same, same, "client_hops") == (1.0, 1.0)
    wide = ratio_interval(spread, same, "client_hops")
    assert wide is not None and wide.low < 0.9 and wide.high > 1.1
    assert ratio_interval(of(10.0), of(10.0), "client_hops") is None


def test_the_grid_is_not_above_the_others(table: Table) -> None:
    """Unlike in the paper: with a reach of 1.41 spacings its nodes are fewer hops apart than those at random
    places."""
    large = table.where(devices=SIZES[1], strategy="sequential")
    grid, *others = (
        large.where(topology=name).mean("client_hops") for name in ("grid", "random", "clustered")
    )
    assert grid < min(others)


def test_nobody_contends_so_priority_is_as_fast_as_optimistic(table: Table) -> None:
    delays = [table.where(strategy=name).numbers("client_hops") for name in ("priority", "optimistic")]
    assert delays[0] == pytest.approx(delays[1], rel=0.02)


def test_polling_is_apart_and_about_half_of_a_period(table: Table) -> None:
    """A period is 100 hops; reading takes a round trip to the device."""
    assert min(table.numbers("polling_hops")) > 0
    assert max(table.numbers("polling_hops")) < 100 + 30
    assert 35 < table.mean("polling_hops") < 75


def test_no_run_beats_the_ideal_by_more_than_a_handoff_of_leaders_can(table: Table) -> None:
    assert table.mean("ideal_hops") <= table.mean("client_hops")


def verdict_with(table: Table, hops: dict[int, float | None], topology: str) -> str:
    """What is said of the growth on the random topology, where the delays on one of them are these."""
    changed = Table(
        {
            **row,
            "client_hops": (hops if row["topology"] == topology else {50: 20.0, 150: 30.0})[row["devices"]],
        }
        for row in table
    )
    found = {one.what: one.verdict for one in compare(changed)}
    return str(found["client delay from N = 50 to 150, random, SLA, default"])


def test_growth_is_judged_on_each_topology(table: Table) -> None:
    assert verdict_with(table, {50: 20.0, 150: 59.0}, "random") == "agrees"
    assert verdict_with(table, {50: 20.0, 150: 61.0}, "random") == "differs"
    assert verdict_with(table, {50: 20.0, 150: 19.0}, "random") == "differs"
    assert verdict_with(table, {50: 20.0, 150: 61.0}, "grid") == "agrees"


def test_lost_firings_count(table: Table) -> None:
    assert verdict_with(table, {50: 20.0, 150: None}, "random") == "differs"


def test_fifteen_times_the_devices_may_be_four_times_as_slow() -> None:
    assert max_growth({50: 1.0, 750: 1.0}) == 4
    assert max_growth({50: 1.0, 150: 1.0}) == 3


def with_hops(
    table: Table, hops: Callable[[Row], float], seeds: int = 1, **more: object
) -> dict[str, Comparison]:
    """What is said if delays are these."""
    rows = [
        {**row, "seed": seed, "client_hops": hops({**row, "seed": seed}), **more}
        for seed in range(seeds)
        for row in table
    ]
    found = {one.what: one for one in compare(Table(rows))}
    assert all(one.why and one.in_short for one in found.values() if one.verdict is Verdict.DIFFERS)
    assert not any(one.in_short for one in found.values() if one.verdict is not Verdict.DIFFERS)
    return found


GROWTH = "client delay from N = 50 to 150, random, SLA, default"


def test_growth_is_put_down_to_the_ideal_only_if_that_grows(table: Table) -> None:
    def said(large: float) -> Comparison:
        rows = [{**row, "ideal_hops": large if row["devices"] == 150 else 10.0} for row in table]
        return with_hops(Table(rows), lambda row: {50: 20.0, 150: 80.0}[row["devices"]])[GROWTH]

    assert "most of it in the hops of the ideal" in said(35.0).in_short
    assert "less than half of it in the hops of the ideal" in said(11.0).in_short
    assert "2.00 times the ideal at N = 50 and 7.27 times at 150" in said(11.0).why


def test_lost_firings_are_the_reason_only_if_others_are_gradual(table: Table) -> None:
    def said(others: float) -> str:
        one = table.where(devices=150, strategy="sequential", topology="random").rows[0]["routine"]
        rows = [
            {
                **row,
                "lost": int(row["devices"] == 150 and row["routine"] == one),
                "client_hops": {50: 20.0, 150: others}[row["devices"]],
                "window_hops": 900.0,
            }
            for row in table
        ]
        rows = [{**row, "client_hops": None} if row["lost"] else row for row in rows]
        return {one.what: one for one in compare(Table(rows))}[GROWTH].in_short

    assert "lost" in said(30.0)
    assert "lost" not in said(90.0)


def test_an_interval_that_holds_the_bar_is_told(table: Table) -> None:
    def said(spread: float, seeds: int) -> Comparison:
        def hops(row: Row) -> float:
            return 20.0 if row["devices"] == 50 else 59.0 + spread * (row["seed"] % 2)

        return with_hops(table, hops, seeds)[GROWTH]

    assert "3x" in said(4.0, 6).why
    assert "by chance" in said(4.0, 6).in_short
    assert said(0.0, 6).why == ""
    assert "[2.95, 2.95]" in said(0.0, 6).ours
    assert "[" not in said(4.0, FEWEST_SEEDS - 1).ours


def test_an_interval_is_of_meshes_and_not_of_their_firings() -> None:
    """However many firings each has, and the same each time."""

    def interval(firings: int) -> object:
        return growth_interval(
            Table(
                {"devices": size, "seed": seed, "hops": 10.0 + seed * size / 50}
                for size in (50, 750)
                for seed in range(10)
                for _ in range(firings)
            ),
            "hops",
        )

    assert interval(1) == interval(20)


def test_ola_above_sla_is_said_of_the_topologies_on_which_it_is(table: Table) -> None:
    def hops(row: Row) -> float:
        slower = row["strategy"] == "optimistic" and row["topology"] == "clustered"
        return (40.0 if slower else 20.0 + 5 * (row["strategy"] == "sequential")) + row["devices"] / 100

    one = with_hops(table, hops)["client delay of OLA against SLA, default"]
    assert one.verdict is Verdict.DIFFERS
    assert one.why.startswith("clustered: the ideal of OLA")
    assert "random" not in one.why


def test_where_the_grid_is_not_above_only_hops_that_are_fewer_are_blamed(table: Table) -> None:
    def said(ideal: float, apart: float) -> Comparison:
        rows = [
            {**row, "ideal_hops": ideal, "apart_hops": apart}
            if row["topology"] == "grid"
            else {**row, "ideal_hops": 20.0, "apart_hops": 4.0}
            for row in table
        ]
        found = with_hops(
            Table(rows), lambda row: 19.0 + (row["topology"] == "random") - row["devices"] / 100
        )
        assert found["client delay on the grid against clustered, SLA, default"].verdict is Verdict.DIFFERS
        return found["client delay on the grid against random, SLA, default"]

    assert "nodes are fewer hops apart" in said(15.0, 3.0).in_short
    assert "18 neighbours" in said(15.0, 3.0).why
    assert "fewer" not in said(15.0, 5.0).in_short + said(15.0, 5.0).why
    assert "though by hops alone it should be" in said(25.0, 3.0).in_short


def test_clustered_and_random_that_are_not_alike_have_a_reason_of_their_own(table: Table) -> None:
    def said(ideal: float) -> Comparison:
        rows = [{**row, "ideal_hops": ideal if row["topology"] == "clustered" else 20.0} for row in table]
        found = with_hops(Table(rows), lambda row: 25.0 - 5 * (row["topology"] == "random"))
        return found["client delay on clustered against random, SLA, default"]

    assert said(25.0).verdict is Verdict.DIFFERS
    assert said(25.0).in_short.endswith("nor is its ideal.")
    assert said(21.0).in_short.endswith("though its ideal is.")
    assert said(15.0).in_short.endswith("against its ideal.")


def test_it_is_compared_and_drawn(table: Table) -> None:
    found = {one.what: one for one in compare(table)}
    assert found["client delay of OLA against SLA, default"].verdict == "agrees"
    figure = draw(Table([*table, *({**row, "preset": "paper"} for row in table)]))
    assert len(figure.axes) == 6

"""What all experiments share: tables, means and ratios with intervals over meshes, bars."""

import math

import pytest

from comesh.experiments.stage import (
    MIN_SEEDS,
    Bar,
    Estimate,
    Table,
    combinations,
    draw_means,
    few_seeds,
    finish,
    growth,
    growths,
    half_width,
    mean,
    means,
    merged,
    new_figure,
    percentile,
    pooled,
    ratio,
    ratios,
)


def test_tables() -> None:
    table = Table([{"a": 1, "b": 2.0}, {"a": 1, "b": 4.0}, {"a": 2, "c": "x"}])
    assert table.columns == ["a", "b", "c"]
    assert (table.mean("b"), table.median("b"), table.total("b")) == (3.0, 3.0, 6.0)
    assert table.summary("a", "b") == {1: 3.0}
    assert [(key, len(rows)) for key, rows in table.groups("a")] == [((1,), 2), ((2,), 1)]
    assert table.where(a=2).distinct("c") == ["x"]
    assert table.adding(d=lambda row: row["a"] + 1).numbers("d") == [2, 2, 3]
    assert percentile([1, 2, 3, 4], 50) == 2
    assert percentile([5], 99) == 5
    assert percentile(list(range(1, 101)), 90) == 90


def test_combinations_are_all_in_order() -> None:
    found = list(combinations(a=(1, 2), b="xy"))
    assert found == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.parametrize(("sense", "met"), [("<=", True), ("<", False), (">=", True), (">", False)])
def test_a_bar_is_met_or_missed(sense: str, met: bool) -> None:
    bar = Bar("two", 2.0, 2.0, sense)  # type: ignore[arg-type]
    assert bar.met is met
    assert bar.verdict == ("met" if met else "MISSED")
    assert Bar("none", math.nan, 2.0, sense).met is False  # type: ignore[arg-type]
    unjudged = Bar("few", 9.0, 2.0, sense, "too few")  # type: ignore[arg-type]
    assert (unjudged.met, unjudged.verdict) == (None, "not judged: too few")


def test_few_values_are_less_sure_than_many() -> None:
    assert half_width([5.0]) == 0.0
    assert half_width([4.0, 6.0]) == pytest.approx(12.71)
    assert half_width([4.0, 6.0] * 50) == pytest.approx(2.14 * 0.1005, rel=0.01)


def test_what_one_mesh_says_many_times_is_not_surer_for_it() -> None:
    rows = [{"name": "one", "x": 1, "seed": seed, "y": float(seed)} for seed in (1, 2, 3)]
    for times in (1, 10):
        found = mean(Table(rows * times), "y")
        assert found is not None and found.high is not None
        assert found.high - found.value == pytest.approx(half_width([1.0, 2.0, 3.0]))
        _, axes = new_figure()
        draw_means(axes, Table(rows * times), "name", "x", "y")
        around = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert max(around) - min(around) == pytest.approx(2 * half_width([1.0, 2.0, 3.0]))


def test_means_may_be_weighted_and_spread_over_columns() -> None:
    rows = Table([{"seed": 1, "a": 2.0, "n": 3, "k": "x"}, {"seed": 1, "a": 6.0, "n": 1, "k": "y"}])
    assert (pooled(rows, "a"), pooled(rows, "a", "n")) == (4.0, 3.0)
    assert math.isnan(pooled(rows, "b"))
    assert means(rows, ("seed",), ("a",)).rows == [{"seed": 1, "a": Estimate(4.0)}]
    spread = means(rows, ("seed",), ("a",), across="k")
    assert spread.rows == [{"seed": 1, "x": Estimate(2.0), "y": Estimate(6.0)}]


def of(*hops: float, size: int = 50) -> Table:
    return Table({"devices": size, "seed": seed, "hops": one} for seed, one in enumerate(hops))


def test_a_ratio_has_an_interval_over_seeds_and_none_of_few() -> None:
    same, spread = of(*[10.0] * MIN_SEEDS), of(*[5.0 + 10 * (at % 2) for at in range(MIN_SEEDS)])
    assert ratio(same, same, "hops") == Estimate(1.0, 1.0, 1.0)
    wide = ratio(spread, same, "hops")
    assert wide is not None and wide.low is not None and wide.high is not None
    assert wide.low < 0.9 and wide.high > 1.1
    assert ratio(of(10.0), of(10.0), "hops") == Estimate(1.0)
    assert ratio(of(10.0), Table(), "hops") is None
    assert few_seeds(same) == ""
    assert few_seeds(of(10.0)).startswith("of 1 seeds")


def test_a_ratio_is_over_the_seeds_that_both_have() -> None:
    found = ratio(of(10.0, 20.0, 900.0), of(10.0, 20.0), "hops")
    assert found == Estimate(1.0)


def test_an_interval_is_of_meshes_and_not_of_their_firings() -> None:
    """However many firings each has, and the same each time."""

    def interval(firings: int) -> Estimate | None:
        return growth(
            Table(
                {"devices": size, "seed": seed, "hops": 10.0 + seed * size / 50}
                for size in (50, 750)
                for seed in range(10)
                for _ in range(firings)
            ),
            "devices",
            "hops",
        )

    once, often = interval(1), interval(20)
    assert once is not None and often is not None
    assert (once.low, once.high) == (pytest.approx(often.low), pytest.approx(often.high))


def test_growths_and_ratios_are_tabulated() -> None:
    table = Table([*of(10.0), *of(30.0, size=750)])
    (row,) = growths(table, (), "devices", {"hops": "times"})
    assert row == {"devices": "50 to 750", "times": Estimate(3.0)}
    (row,) = ratios(table, (), {"hops": "times"}, across="devices", one=750, other=50)
    assert row == {"times": Estimate(3.0)}


def test_presets_that_measured_the_same_are_one() -> None:
    paper, default = {"preset": "paper", "a": 1}, {"preset": "default", "a": 1}
    assert merged(Table([paper, default])).rows == [{"preset": "both", "a": 1}]
    apart = [paper, {**default, "a": 2}]
    assert merged(Table(apart)).rows == apart
    assert merged(Table([paper])).rows == [paper]


def test_a_panel_without_lines_has_no_legend() -> None:
    """Such as hop by hop where there are no hops; a warning would be an error here."""
    _, axes = new_figure()
    finish(axes, x="routines")
    assert axes.get_legend() is None

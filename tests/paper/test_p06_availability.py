"""P6 and P6b: the paper's formula, and failures drawn over real selections."""

import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise

import pytest

from comesh.experiments.campaign import Comparison, Scale, Verdict
from comesh.experiments.measures.availability import (
    LEVELS,
    Sizes,
    availability,
    curve,
    group_survives,
    tolerated,
)
from comesh.experiments.measures.outages import in_power_domains, mesh_of
from comesh.experiments.p06_availability import (
    GROUPS,
    ONE_BY_ONE,
    SIZES,
    TOLERANCE,
    cases,
    compare,
    draw,
    run,
)
from comesh.experiments.table import Row, Table
from comesh.sim.topology import Shape


@pytest.mark.parametrize(("smart", "f"), [(5, 1), (7, 2), (8, 3), (6, 0)])
def test_p6_the_formula_counts_every_group_that_loses_at_most_f(smart: int, f: int) -> None:
    sizes = Sizes(smart=smart, groups=1, f=f)
    chosen = list(combinations(range(smart), sizes.k))
    for failures in range(smart + 1):
        good = sum(sum(node < failures for node in group) <= f for group in chosen)
        assert group_survives(sizes, failures) == Fraction(good, len(chosen))


def test_p6_the_power_of_all_groups_is_exact_also_near_certainty() -> None:
    for groups in (1, 30, 1000):
        sizes = Sizes(smart=100, groups=groups, f=5)
        for failures in (0, 5, 6, 12, 25, 60, 94, 95, 100):
            exact = group_survives(sizes, failures) ** groups
            assert availability(sizes, failures) == pytest.approx(float(exact), rel=1e-12, abs=1e-300)
    assert 0 < 1 - availability(SIZES, SIZES.f + 1) < 1e-4


def test_p6_certain_up_to_f_and_falling_from_there() -> None:
    chances = [chance for _, chance in curve(SIZES)]
    assert chances[: SIZES.f + 1] == [1.0] * (SIZES.f + 1)
    falling = [chance for chance in chances[SIZES.f :] if chance > 0]
    assert all(after < before for before, after in pairwise(falling))


def test_p6_half_of_the_time_up_to_4_8_f_and_not_9_f() -> None:
    assert (tolerated(SIZES, 0.5), availability(SIZES, 24) >= 0.5 > availability(SIZES, 25)) == (24, True)
    assert availability(SIZES, 9 * SIZES.f) < 1e-5
    assert tolerated(Sizes(smart=100, groups=30, f=1), 0.5) == 9
    assert tolerated(Sizes(smart=200, groups=30, f=5), 0.5) >= 45


def test_p6_tolerated_is_the_last_of_the_curve_at_a_level() -> None:
    for level in LEVELS:
        assert tolerated(SIZES, level) == max(at for at, chance in curve(SIZES) if chance >= level)


def test_p6b_failures_borne_fall_slower_than_the_root_of_the_groups() -> None:
    for level in LEVELS:
        borne = [tolerated(Sizes(smart=100, groups=groups, f=5), level) for groups in GROUPS]
        assert borne == sorted(borne, reverse=True)
        assert borne[-1] / borne[0] > (GROUPS[0] / GROUPS[-1]) ** 0.5


def _run(members: str, *, preset: str = "default", domains: int = ONE_BY_ONE) -> Table:
    case = {"preset": preset, "members": members, "groups": 30, "domains": domains, "seed": 1}
    return Table({**case, **row} for row in run(case))


@pytest.mark.parametrize("members", ["lsh-mix", "random"])
def test_p6_real_groups_bear_what_the_formula_says(members: str) -> None:
    """One mesh of one seed: half of the tolerance is left to what its selections happen to be."""
    for row in _run(members):
        assert row["one_group"] == pytest.approx(float(group_survives(SIZES, row["failures"])), abs=0.01)
        assert row["availability"] > availability(SIZES, row["failures"]) - TOLERANCE
        assert row["availability"] < availability(SIZES, row["failures"]) + 2 * TOLERANCE


def test_p6_one_power_domain_takes_a_local_group_unless_the_rule_forbids_it() -> None:
    def with_one_out(members: str, preset: str) -> float:
        (row,) = _run(members, preset=preset, domains=5).where(failures=1)
        assert row["rule"] is (preset == "default")
        return float(row["availability"])

    assert with_one_out("lsh-mix", "default") == with_one_out("random", "default") == 1.0
    assert with_one_out("lsh-mix", "paper") < with_one_out("random", "paper") < 1.0


@pytest.fixture(scope="module")
def table() -> Table:
    """One seed of all cases."""
    wanted = [one for one in cases(Scale.QUICK) if one["seed"] == 1]
    return Table({**case, **row} for case in wanted for row in run(case))


def test_p6_the_report_says_that_9_f_does_not_follow(table: Table) -> None:
    found = compare(table)
    first = found[0]
    assert (first.ours, first.verdict) == ("F = 24 = 4.8 f", Verdict.DIFFERS)
    assert "9 = 9.0 f" in first.why
    assert "47 = 9.4 f" in first.why
    assert "9 f does not follow" in first.in_short
    assert all(one.met is not False for one in found)


def _changed(table: Table, change: Callable[[Row], Row], **of: object) -> dict[str, Comparison]:
    """By what is compared: what comes of other numbers where nodes fail by themselves, of lsh-mix."""
    meant = {"members": "lsh-mix", "domains": ONE_BY_ONE, **of}
    found = compare(
        Table(
            {**row, **change(row)}
            if all(row[name] == one for name, one in meant.items()) and 10 <= row["failures"] <= 40
            else row
            for row in table
        )
    )
    assert all(one.why and one.in_short for one in found if one.verdict is Verdict.DIFFERS)
    alone = "nodes that fail each by itself, real groups, "
    return {one.what.split(":")[0].removeprefix(alone): one for one in found}


def test_p6_presets_are_told_apart_where_they_differ(table: Table) -> None:
    same = _changed(table, lambda _: {})
    assert {"lsh-mix, both presets", "random, both presets"} <= set(same)
    apart = _changed(
        table, lambda row: {"availability": row["availability"] - 0.2}, groups=30, preset="default"
    )
    assert apart["lsh-mix, paper"].verdict is Verdict.AGREES
    assert apart["lsh-mix, default"].verdict is Verdict.DIFFERS
    assert apart["lsh-mix, default"].met is False
    assert "F at 50% with 10, 30, 100, 300 groups, default" in apart


def test_p6_below_the_formula_the_reason_is_what_single_groups_do_or_that_they_fall_apart(
    table: Table,
) -> None:
    together = _changed(table, lambda row: {"availability": row["availability"] - 0.2}, groups=30)
    one = together["lsh-mix, both presets"]
    assert "fall less together" in one.why
    assert (
        "Groups of lsh-mix bear fewer failures than by the formula: they fall less together" in one.in_short
    )
    assert "-0.2" in one.ours

    def of_weak_groups(row: Row) -> Row:
        left = max(row["availability"] - 0.2, 1e-6)
        return {"availability": left, "one_group": left ** (1 / 30)}

    one = _changed(table, of_weak_groups, groups=30)["lsh-mix, both presets"]
    assert "single groups fall earlier" in one.why
    assert "single groups fall earlier" in one.in_short


def test_p6_above_the_formula_too_the_reason_is_read_off_the_groups(table: Table) -> None:
    one = _changed(table, lambda row: {"availability": min(row["availability"] + 0.2, 1)}, groups=30)[
        "lsh-mix, both presets"
    ]
    assert one.verdict is Verdict.BETTER
    assert "fall more together" in one.why
    assert one.in_short == ""


def test_p6b_what_falls_too_fast_is_named(table: Table) -> None:
    few = compare(
        Table(
            {**row, "availability": 0.0}
            if row["groups"] == 300 and row["members"] == "lsh-mix" and row["failures"] > 2
            else row
            for row in table
        )
    )
    falling = [one for one in few if one.what.startswith("F at")]
    assert [one.verdict for one in falling] == [Verdict.DIFFERS] * 3
    for one in falling:
        assert "(lsh-mix)" in one.why
        assert "(lsh-mix); the paper's formula, for independent groups, has it fall slower" in one.in_short


def test_p6_both_presets_are_drawn_where_they_differ(table: Table) -> None:
    same = [len(axes.lines) for axes in draw(table).axes]
    default = Table(
        {**row, "availability": row["availability"] / 2}
        if row["preset"] == "default" and row["failures"]
        else row
        for row in table
    )
    apart = [len(axes.lines) for axes in draw(default).axes]
    assert [more - less for more, less in zip(apart, same, strict=True)] == [2, 3, 0]


def test_p6_meshes_have_exactly_the_nodes_groups_and_domains_asked_for() -> None:
    for smart, groups in ((100, 30), (100, 300), (11, 3), (50, 1)):
        topology, cluster_size = mesh_of(Sizes(smart=smart, groups=groups, f=1), Shape.GRID, 1)
        assert len(topology.nodes) == smart
        assert -(-len(topology.devices) // cluster_size) == groups
    topology, _ = mesh_of(SIZES, Shape.GRID, 1)
    assert [len(nodes) for nodes in in_power_domains(topology, 10).power_domains.values()] == [10] * 10
    with pytest.raises(ValueError, match="25 or 34 would do"):
        in_power_domains(topology, 30)
    with pytest.raises(ValueError, match="only 100 nodes"):
        in_power_domains(topology, 101)


def test_p6_what_the_command_uses_needs_no_extra() -> None:
    code = (
        "import sys; sys.modules.update(matplotlib=None, joblib=None, pyarrow=None)\n"
        "import comesh.cli.availability"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

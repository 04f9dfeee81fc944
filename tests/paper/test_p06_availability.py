"""P6 and P6b: the paper's formula, and failures drawn over real selections."""

import subprocess
import sys
from fractions import Fraction
from itertools import combinations, pairwise

import pytest

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
    bars,
    cases,
    draw,
    run,
    tables,
)
from comesh.experiments.stage import Scale, Table
from comesh.sim.topology import Shape


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
    code = "import sys; sys.modules.update(matplotlib=None, joblib=None)\nimport comesh.cli.availability"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("smart", "f"), [(5, 1), (7, 2), (8, 3), (6, 0)])
def test_p6_the_formula_counts_every_group_that_loses_at_most_f(smart: int, f: int) -> None:
    sizes = Sizes(smart=smart, groups=1, f=f)
    groups = list(combinations(range(smart), sizes.k))
    for failures in range(smart + 1):
        good = sum(sum(node < failures for node in group) <= f for group in groups)
        assert group_survives(sizes, failures) == Fraction(good, len(groups))


def test_p6_the_bars_are_met_and_missed_below_the_formula(table: Table) -> None:
    found = bars(table)
    assert all(one.met for one in found)
    assert len(found) == 8, "presets without power domains are the same"
    below = Table(
        {**row, "availability": row["availability"] - 0.2}
        if row["preset"] == "default" and row["domains"] == ONE_BY_ONE and 10 <= row["failures"] <= 40
        else row
        for row in table
    )
    missed = [one.name for one in bars(below) if one.met is False]
    assert [name.split(", ")[1:] for name in missed] == [["lsh-mix", "default"], ["random", "default"]]


def test_p6_the_failures_borne_are_tabulated(table: Table) -> None:
    borne, out = tables(table).values()
    (formula,) = borne.where(members="formula", groups=30)
    assert formula["at 50%"] == tolerated(SIZES, 0.5) == 24
    (rule,) = out.where(domains=5, members="lsh-mix", rule=True)
    assert rule["availability"].value == 1.0

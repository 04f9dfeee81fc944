"""P10: random spreads the work most evenly over time; LSH has its median, and a higher tail."""

from collections.abc import Callable
from statistics import fmean, median, pstdev

import pytest

from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.p10_load import ROLES, SAID, compare, draw, run, spatial, temporal
from comesh.experiments.table import Row, Table, percentile


@pytest.fixture(scope="module")
def table() -> Table:
    cases = [
        {"preset": "paper", "members": members, "seed": seed}
        for members in ("lsh-mix", "random")
        for seed in (1, 2, 3)
    ]
    return Table({**case, **row} for case in cases for row in run(case))


def test_all_seats_are_counted(table: Table) -> None:
    """Ten groups, each with a leader and four others, among a hundred nodes."""
    for members in ("lsh-mix", "random"):
        shares = spatial(table, members)
        for role, mean in zip(ROLES, (0.1, 0.4, 0.5), strict=True):
            assert sum(shares[role].values()) == pytest.approx(1)
            assert sum(count * share for count, share in shares[role].items()) == pytest.approx(mean)
            # Who is in no group in that role serves no time in it.
            assert fmean(temporal(table, members)[role]) == pytest.approx(1 - shares[role][0])


def test_random_is_most_even_over_time(table: Table) -> None:
    near, anywhere = temporal(table, "lsh-mix"), temporal(table, "random")
    for role in ROLES:
        assert pstdev(anywhere[role]) < pstdev(near[role])


def test_members_under_lsh_have_the_median_of_random_and_a_higher_tail(table: Table) -> None:
    near, anywhere = temporal(table, "lsh-mix")["member"], temporal(table, "random")["member"]
    assert median(near) == pytest.approx(median(anywhere), rel=0.1)
    assert percentile(near, 99) > percentile(anywhere, 99)


def test_leading_under_lsh_is_spread_as_under_random(table: Table) -> None:
    """Unlike in the paper, where its median is higher: the centre moves with every epoch."""
    near, anywhere = temporal(table, "lsh-mix")["leader"], temporal(table, "random")["leader"]
    assert median(near) == pytest.approx(median(anywhere), rel=0.1)
    assert min(near) > 0


def test_it_is_compared_and_drawn(table: Table) -> None:
    found = {one.what.removesuffix(", paper"): one.verdict for one in compare(table)}
    assert found["temporal load, median, member"] is Verdict.AGREES
    assert found["temporal load, median, leader"] is Verdict.DIFFERS
    drawn = draw(table).axes
    assert [len(panel.lines) for panel in drawn] == [6, 6], "three roles, near and at random, side by side"


def test_random_has_to_be_more_even_and_a_tie_differs(table: Table) -> None:
    def said(times: float) -> set[Verdict]:
        """Of the temporal load of a mesh in which LSH spreads so many times as far as random."""
        spread = {"lsh-mix": times, "random": 1.0}
        loads = Table(
            {**row, **dict.fromkeys(ROLES, 0.5 + (0.01 if at % 2 else -0.01) * spread[row["members"]])}
            if row["load"] == "temporal"
            else row
            for at, row in enumerate(table)
        )
        return {one.verdict for one in compare(loads) if "standard deviation between" in one.what}

    assert said(1.1) == {Verdict.AGREES}
    assert said(1.0) == {Verdict.DIFFERS}
    assert said(1.04) == {Verdict.DIFFERS}
    assert said(0.9) == {Verdict.BETTER}


def changed(table: Table, change: Callable[[Row], Row], **of: object) -> dict[str, Comparison]:
    """What comes of other numbers in the rows that are meant, all of LSH."""
    found = compare(
        Table(
            {**row, **change(row)} if all(row[name] == one for name, one in (LSH | of).items()) else row
            for row in table
        )
    )
    assert all(one.why and one.in_short for one in found if one.verdict is Verdict.DIFFERS)
    return {one.what.removesuffix(", paper"): one for one in found}


LSH: dict[str, object] = {"members": "lsh-mix"}
LEADERS = "temporal load, median, leader"


def test_that_leading_goes_round_is_said_only_where_it_does(table: Table) -> None:
    round_, few = (
        changed(table, change, load="temporal")[LEADERS]
        for change in (lambda _: {}, lambda row: {"leader": 0.9 if row["node"].endswith("0") else 0.0111})
    )
    loads = sorted(temporal(table, "lsh-mix")["leader"])
    assert f"most does {sum(loads[-30:]) / sum(loads):.1%} of it" in round_.why
    assert "no few nodes lead again and again" in round_.why
    assert "drawn anew" in round_.in_short
    assert few.verdict is Verdict.DIFFERS
    assert "no few nodes" not in few.why
    assert "drawn anew" not in few.why + few.in_short
    assert "less often under LSH than at random: a tenth of the nodes does over 20%" in few.in_short


def test_a_lower_median_of_leading_is_not_explained_with_changing_centres(table: Table) -> None:
    less = changed(table, lambda row: {"leader": row["leader"] * 0.6}, load="temporal")[LEADERS]
    assert less.in_short == "The median node leads less often under LSH than at random."
    assert "drawn anew" not in less.why
    assert "about the same" not in less.why


def test_neighbourhoods_are_a_reason_only_where_lsh_is_less_crowded(table: Table) -> None:
    at_random = {(row["seed"], row["groups"]): row for row in table.where(load="spatial", members="random")}

    def crowded(times: dict[str, float]) -> dict[str, Comparison]:
        """Like random, but for those in several groups at once."""

        def change(row: Row) -> Row:
            here = at_random.get((row["seed"], row["groups"]), {})
            more = times if row["groups"] > 1 else {}
            return {role: here.get(role, 0.0) * more.get(role, 1.0) for role in ROLES}

        return changed(table, change, load="spatial")

    less, more = crowded(dict.fromkeys(ROLES, 0.99)), crowded(dict.fromkeys(ROLES, 1.01))
    mixed = crowded({"leader": 0.99, "member": 1.5, "both": 0.99})
    for role in ROLES:
        name = f"spatial load, standard deviation, {SAID[role]}"
        assert "neighbourhoods" in less[name].why
        assert less[name].in_short.startswith("Spatial load (leader, member, leader or member) ")
        assert "neighbourhoods" in less[name].in_short
        assert more[name].verdict is Verdict.DIFFERS
        assert "neighbourhoods" not in more[name].why + more[name].in_short
        told = "" if role == "member" else "Spatial load (leader, leader or member) "
        assert mixed[name].in_short.startswith(told)
        assert bool(mixed[name].in_short) is bool(told)


def test_what_is_as_uneven_at_random_is_told_by_role(table: Table) -> None:
    loads = {(row["seed"], row["node"]): row for row in table.where(load="temporal", members="random")}
    same = changed(table, lambda row: dict(loads[row["seed"], row["node"]]) | LSH, load="temporal")
    for role in ROLES:
        one = same[f"temporal load, standard deviation between nodes, {SAID[role]}"]
        assert (
            one.in_short
            == f"Temporal load ({SAID[role]}) is spread over the nodes under LSH as at random, within 5%."
        )
    assert same["temporal load, 99th percentile, member"].verdict is Verdict.DIFFERS


@pytest.mark.parametrize(("times", "told"), [(0.8, "10% lower"), (1.2, "10% higher")])
def test_medians_that_are_not_comparable_are_told_with_their_direction(
    table: Table, times: float, told: str
) -> None:
    found = changed(table, lambda row: {"member": row["member"] * times}, load="temporal")
    assert told in found["temporal load, median, member"].in_short

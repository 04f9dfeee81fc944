"""P6, the paper's figure of availability: do all groups keep a majority when F > f nodes fail at once?

P6: against F, by the formula. P6b: the failures borne at 50, 90 and 99 %, against the number of groups.
The formula takes groups to be independent and failures uniform, so beside it: failures drawn over the groups
that nodes really select, one node after the other; and whole power domains, which the preset `default` knows
(at most f members of one), and the preset `paper` does not.
"""

from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from comesh.core.streams import stream
from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict, judged
from comesh.experiments.measures.availability import LEVELS, Sizes, availability, curve, tolerated
from comesh.experiments.measures.outages import (
    alone,
    by_domain,
    failures_borne,
    in_power_domains,
    mesh_of,
    seats_over_epochs,
)
from comesh.experiments.measures.presets import PRESETS, by_preset, setup
from comesh.experiments.measures.selections import plan_of
from comesh.experiments.plots import finish, lines, new_figure, paper_line
from comesh.experiments.table import Row, Table
from comesh.sim.topology import Shape

SIZES = Sizes(smart=100, groups=30, f=5)
"""The paper's."""
PAPER_TIMES_F = 9
"""The paper's text: above 50 % up to 9 f."""
GROUPS = (10, 30, 100, 300)
DOMAINS = (5, 10, 20)
POLICIES = ("lsh-mix", "random")
EPOCHS = 8
DRAWS_PER_EPOCH = 400
TOLERANCE = 0.03
"""Between the formula and draws over real selections, at any number of failures."""
ONE_BY_ONE = 0
"""Instead of a number of power domains: nodes fail each by itself."""
FORMULA = "formula"


def cases(scale: Scale) -> Iterator[Parameters]:
    kinds = [(groups, ONE_BY_ONE) for groups in GROUPS] + [(SIZES.groups, domains) for domains in DOMAINS]
    for preset in PRESETS:
        for members in POLICIES:
            for groups, domains in kinds:
                for seed in range(1, 11 if scale is Scale.FULL else 4):
                    yield {
                        "preset": preset,
                        "members": members,
                        "groups": groups,
                        "domains": domains,
                        "seed": seed,
                    }


def run(case: Parameters) -> list[Row]:
    seed, domains = case["seed"], case["domains"]
    sizes = Sizes(smart=SIZES.smart, groups=case["groups"], f=SIZES.f)
    topology, cluster_size = mesh_of(sizes, Shape.GRID, seed)
    if domains != ONE_BY_ONE:
        topology = in_power_domains(topology, domains)
    policy = {"cluster_size": cluster_size, "members": case["members"]}
    plan = plan_of(topology, setup(case["preset"], f=sizes.f, seed=seed, selection=policy).selection)
    together = alone(plan) if domains == ONE_BY_ONE else by_domain(plan, topology.power_domains.values())
    rule = plan.settings.power_domain_rule
    draws = stream(seed, "what fails")
    borne = failures_borne(seats_over_epochs(plan, EPOCHS), together, DRAWS_PER_EPOCH, draws)
    return [
        {"rule": rule, "failures": failures, "availability": mesh, "one_group": group}
        for failures, (mesh, group) in enumerate(zip(borne.mesh, borne.group, strict=True))
    ]


# -- what is told of it ------------------------------------------------------------------------------------


def _one_by_one(table: Table) -> dict[str, Table]:
    """By preset: where nodes fail each by itself. There are no power domains for the rule to spread."""
    rows = table.where(domains=ONE_BY_ONE)
    return by_preset(Table({name: one for name, one in row.items() if name != "rule"} for row in rows))


def _drawn(table: Table, **wanted: object) -> dict[int, float]:
    """From the number of failures to the availability, over all seeds."""
    found = table.where(**wanted).summary(("failures",), "availability")
    return {failures: share for (failures,), share in found.items()}


def _tolerated(drawn: dict[int, float], level: float) -> int:
    return max(failures for failures, share in drawn.items() if share >= level)


def _times_f(sizes: Sizes) -> str:
    """`24 = 4.8 f`: the most failures at which availability is 50 %."""
    failures = tolerated(sizes, 0.5)
    return f"{failures} = {failures / sizes.f:.1f} f"


def _arithmetic() -> str:
    """Where the paper's 9 f can come from, and where not."""
    most = tolerated(SIZES, 0.5)
    claimed = PAPER_TIMES_F * SIZES.f
    fits = [Sizes(smart=100, groups=30, f=1), Sizes(smart=200, groups=30, f=5)]
    others = ", or ".join(f"S = {one.smart}, G = {one.groups}, f = {one.f} ({_times_f(one)})" for one in fits)
    return (
        f"With S = {SIZES.smart}, G = {SIZES.groups}, f = {SIZES.f} the formula gives "
        f"{availability(SIZES, most):.1%} at F = {most} ({most / SIZES.f:.1f} f), "
        f"{availability(SIZES, most + 1):.1%} at F = {most + 1}, and {availability(SIZES, claimed):.1g} at "
        f"F = {claimed} ({PAPER_TIMES_F} f). {PAPER_TIMES_F} f fits other sizes: {others}."
    )


def compare(table: Table) -> list[Comparison]:
    return [
        _compare_text(),
        *(line for preset, rows in _one_by_one(table).items() for line in _compare_draws(rows, preset)),
        *(line for preset, rows in _one_by_one(table).items() for line in _compare_groups(rows, preset)),
        *(line for domains in DOMAINS for line in _compare_domains(table.where(domains=domains), domains)),
    ]


def _compare_text() -> Comparison:
    most = tolerated(SIZES, 0.5)
    agrees = most >= PAPER_TIMES_F * SIZES.f
    return Comparison(
        what="the most failures with 50 % availability, by the formula",
        ours=f"F = {_times_f(SIZES)}",
        paper=f"F = {PAPER_TIMES_F} f",
        verdict=judged(agrees=agrees),
        why="" if agrees else _arithmetic(),
        in_short=""
        if agrees
        else f"The paper's {PAPER_TIMES_F} f does not follow from its formula at the sizes that it names, "
        f"which gives {most / SIZES.f:.1f} f.",
    )


def _compare_draws(table: Table, preset: str) -> Iterator[Comparison]:
    for members in POLICIES:
        rows = table.where(members=members, groups=SIZES.groups)
        drawn = _drawn(rows)
        apart = [drawn[failures] - chance for failures, chance in curve(SIZES)]
        lowest, highest = (round(one, 3) + 0.0 for one in (min(apart), max(apart)))  # and never -0
        agrees, higher = max(map(abs, apart)) <= TOLERANCE, min(apart) >= -TOLERANCE
        why, short = _why_apart(rows)
        yield Comparison(
            what=f"nodes that fail each by itself, real groups, {members}, {preset}: F at 50, 90, 99 %",
            ours=", ".join(str(_tolerated(drawn, level)) for level in LEVELS)
            + f"; from {lowest:+.3f} to {highest:+.3f} off the formula",
            paper=", ".join(str(tolerated(SIZES, level)) for level in LEVELS) + " by the formula",
            verdict=judged(agrees=agrees, better=higher),
            why="" if agrees else why,
            in_short=""
            if higher
            else f"Groups of {members} bear fewer failures than by the formula: {short}.",
            bar=f"nowhere more than {TOLERANCE} below the formula",
            met=higher,
        )


def _why_apart(table: Table) -> tuple[str, str]:
    """Whether single groups are off the formula, or only all together: where they are farthest from it, which
    is below if they are anywhere."""
    drawn = _drawn(table)
    apart = {failures: drawn[failures] - chance for failures, chance in curve(SIZES)}
    is_below = min(apart.values()) < -TOLERANCE
    at = (
        min(apart, key=lambda failures: apart[failures])
        if is_below
        else max(apart, key=lambda one: apart[one])
    )
    formula = availability(SIZES, at)
    independent = table.where(failures=at).mean("one_group") ** SIZES.groups
    if abs(drawn[at] - independent) < abs(independent - formula):
        short = f"single groups fall {'earlier' if is_below else 'later'} than it says"
    else:
        short = f"they fall {'less' if is_below else 'more'} together than independent groups do"
    return (
        f"At F = {at} it is {drawn[at]:.3f}, by the formula {formula:.3f}, and {independent:.3f} if groups "
        f"that each bear what they do here fell independently of each other: {short}.",
        short,
    )


def _compare_groups(table: Table, preset: str) -> Iterator[Comparison]:
    few, many = min(GROUPS), max(GROUPS)
    root = (few / many) ** 0.5
    for level in LEVELS:
        by_formula = [tolerated(_of(groups), level) for groups in GROUPS]
        drawn = {
            members: [_tolerated(_drawn(table, members=members, groups=groups), level) for groups in GROUPS]
            for members in POLICIES
        }
        left = {name: borne[-1] / borne[0] for name, borne in {FORMULA: by_formula, **drawn}.items()}
        low = [name for name, share in left.items() if share <= root]
        yield Comparison(
            what=f"F at {level:.0%} with {', '.join(map(str, GROUPS))} groups, {preset}",
            ours=f"{', '.join(map(str, by_formula))} by the formula; real groups: "
            + "; ".join(f"{members} {', '.join(map(str, borne))}" for members, borne in drawn.items())
            + f". {many // few} times as many groups leave {min(left.values()):.0%} of it or more",
            paper="falls very slowly: less than with the root of the number of groups",
            verdict=judged(agrees=not low),
            why=f"It falls to {', '.join(f'{left[name]:.0%} ({name})' for name in low)}, and with the root "
            f"of the number of groups it would to {root:.0%}; {_of_formula(left[FORMULA], root)}."
            if low
            else "",
            in_short=f"F at {level:.0%} falls faster than with the root of the number of groups "
            f"({', '.join(low)}); {_of_formula(left[FORMULA], root)}."
            if low
            else "",
        )


def _of_formula(left: float, root: float) -> str:
    """Whether what the paper says is what its formula says."""
    if left <= root:
        return "the paper's formula has it fall so fast"
    return "the paper's formula, for independent groups, has it fall slower"


def _of(groups: int) -> Sizes:
    return Sizes(smart=SIZES.smart, groups=groups, f=SIZES.f)


def _compare_domains(table: Table, domains: int) -> Iterator[Comparison]:
    """One power domain out, by policy; the presets differ in the rule."""
    for members in POLICIES:
        on, off = (_drawn(table, rule=rule, members=members) for rule in (True, False))
        nodes = SIZES.smart // domains
        yield Comparison(
            what=f"availability with one of {domains} power domains ({nodes} nodes) out, {members}",
            ours=f"{on[1]:.0%} with the rule on power domains (default), {off[1]:.0%} without it (paper); "
            f"{nodes} nodes each by itself: {availability(SIZES, nodes):.1%} by the formula",
            verdict=Verdict.OURS,
            bar="100 % with the rule",
            met=on[1] == 1.0,
        )


def draw(table: Table) -> Figure:
    figure, axes = new_figure(1, 3, width=4.6)
    _draw_failures(axes[0], table)
    _draw_groups(axes[1], table)
    _draw_domains(axes[2], table)
    return figure


def _draw_failures(axes: Axes, table: Table) -> None:
    shown = {
        f"{members}, preset {preset}": points
        for preset, rows in _one_by_one(table).items()
        for members, points in (
            rows.where(groups=SIZES.groups).curves("members", "failures", "availability").items()
        )
    }
    lines(axes, shown)
    paper_line(axes, dict(curve(SIZES)), "the paper's formula")
    axes.axhline(0.5, color="#bbbbbb", linewidth=1)
    axes.set_xlim(0, PAPER_TIMES_F * SIZES.f)
    sizes = f"{SIZES.smart} nodes, {SIZES.groups} groups, f = {SIZES.f}"
    finish(axes, x=f"failures F ({sizes})", y="availability", title="P6: nodes fail each by itself")


def _draw_groups(axes: Axes, table: Table) -> None:
    presets = _one_by_one(table)
    for number, level in enumerate(LEVELS):
        paper_line(
            axes,
            {groups: tolerated(_of(groups), level) for groups in GROUPS},
            "" if number else "the paper's formula",
        )
        real = {
            f"availability {level:.0%}, preset {preset}": {
                groups: _tolerated(_drawn(rows, members="lsh-mix", groups=groups), level) for groups in GROUPS
            }
            for preset, rows in presets.items()
        }
        lines(axes, real, first=number * len(presets))
    axes.set_xscale("log")
    finish(axes, x="groups", y="failures F", title="P6b: failures borne, lsh-mix")


def _draw_domains(axes: Axes, table: Table) -> None:
    """Of the middle number of domains, by rule and policy."""
    domains = DOMAINS[len(DOMAINS) // 2]
    found = {
        f"{members}, rule {'on' if rule else 'off'}": {
            out: share
            for out, share in _drawn(table, rule=rule, members=members, domains=domains).items()
            if out <= domains // 2
        }
        for members in POLICIES
        for rule in (False, True)
    }
    lines(axes, found)
    finish(axes, x=f"power domains out, of {domains}", y="availability", title="Whole power domains fail")


CAMPAIGN = Campaign("availability", cases, run, about_s=lambda _: 0.2)
EXPERIMENT = Experiment(
    id="P6",
    title="Availability with more than f failures",
    campaign=CAMPAIGN,
    paper=(
        "Theorem 5 and its figure (S = 100, G = 30, f = 5): availability stays above 50 % up to F = 9 f; the "
        "F that is borne at 50, 90 and 99 % falls very slowly with the number of groups (P6b)."
    ),
    compare=compare,
    draw=draw,
    about=(
        f"{_arithmetic()} Beside the formula: real selections on grids, over {EPOCHS} epochs, "
        f"{DRAWS_PER_EPOCH} orders of failures drawn for each; available is a mesh all of whose groups keep "
        "f+1 members. If every node is as likely to fail as any other, the formula is exact for each single "
        "group, however its members were chosen; only that groups fall independently of each other is an "
        "assumption. Whole power domains (neighbours share one) are what it knows nothing of."
    ),
)

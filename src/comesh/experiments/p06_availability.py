"""P6, the paper's figure of availability: do all groups keep a majority when F > f nodes fail at once?

P6: against F, by the formula. P6b: the failures borne at 50, 90 and 99 %, against the number of groups.
The formula takes groups to be independent and failures uniform, so beside it: failures drawn over the groups
that nodes really select, one node after the other; and whole power domains, which the preset `default` knows
(at most f members of one), and the preset `paper` does not. Available is a mesh all of whose groups keep f+1
members.
"""

from comesh.core.streams import stream
from comesh.experiments import stage
from comesh.experiments.measures.availability import LEVELS, Sizes, curve, tolerated
from comesh.experiments.measures.outages import (
    alone,
    by_domain,
    failures_borne,
    in_power_domains,
    mesh_of,
    seats_over_epochs,
)
from comesh.experiments.measures.presets import PRESETS, setup
from comesh.experiments.measures.selections import plan_of
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
KINDS = [(groups, ONE_BY_ONE) for groups in GROUPS] + [(SIZES.groups, domains) for domains in DOMAINS]


def cases(scale: stage.Scale) -> stage.Cases:
    for one in stage.combinations(
        preset=PRESETS, members=POLICIES, kind=KINDS, seed=stage.seeds(scale, 3, 10)
    ):
        groups, domains = one.pop("kind")
        seed = one.pop("seed")
        yield {**one, "groups": groups, "domains": domains, "seed": seed}


def run(case: stage.Parameters) -> list[stage.Row]:
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


def _one_by_one(table: stage.Table) -> stage.Table:
    """Where nodes fail each by itself: there are no power domains for the rule to spread."""
    rows = table.where(domains=ONE_BY_ONE)
    return stage.merged(
        stage.Table({name: one for name, one in row.items() if name != "rule"} for row in rows)
    )


def _sizes(groups: int) -> Sizes:
    return Sizes(smart=SIZES.smart, groups=groups, f=SIZES.f)


def borne(table: stage.Table) -> list[int]:
    """The most failures at which the availability is still at each level."""
    drawn = table.summary("failures", "availability")
    return [max(failures for failures, share in drawn.items() if share >= level) for level in LEVELS]


def tables(table: stage.Table) -> dict[str, stage.Table]:
    kinds: list[tuple[str, str, int, list[int]]] = [
        ("", "formula", groups, [tolerated(_sizes(groups), level) for level in LEVELS]) for groups in GROUPS
    ] + [(*key, borne(rows)) for key, rows in _one_by_one(table).groups("preset", "members", "groups")]
    found = (
        {"preset": preset, "members": members, "groups": groups}
        | {f"at {level:.0%}": failures for level, failures in zip(LEVELS, borne_, strict=True)}
        for preset, members, groups, borne_ in kinds
    )
    out = stage.Table(row for row in table if row["domains"] != ONE_BY_ONE and row["failures"] == 1)
    return {
        "Failures borne, by availability": stage.Table(found),
        "Availability with one power domain out": stage.means(
            out, ("domains", "members", "rule"), ("availability",)
        ),
    }


def bars(table: stage.Table) -> list[stage.Bar]:
    found = []
    for (preset, members), rows in _one_by_one(table).where(groups=SIZES.groups).groups("preset", "members"):
        drawn = rows.summary("failures", "availability")
        below = max(chance - drawn[failures] for failures, chance in curve(SIZES))
        found.append(
            stage.Bar(f"availability below the formula at most, {members}, {preset}", below, TOLERANCE)
        )
    with_rule = table.where(rule=True, failures=1)
    for (domains, members), rows in with_rule.groups("domains", "members"):
        if domains != ONE_BY_ONE:
            name = f"availability with the rule and one of {domains} power domains out, {members}"
            found.append(stage.Bar(name, rows.mean("availability"), 1.0, ">="))
    return found


def draw(table: stage.Table) -> stage.Figure:
    figure, axes = stage.new_figure(1, 3, width=4.6)
    alone = _one_by_one(table).adding(line=lambda row: f"{row['members']}, preset {row['preset']}")
    stage.draw_means(axes[0], alone.where(groups=SIZES.groups), "line", "failures", "availability")
    stage.paper_line(axes[0], dict(curve(SIZES)), "the paper's formula")
    axes[0].axhline(0.5, color="#bbbbbb", linewidth=1)
    axes[0].set_xlim(0, PAPER_TIMES_F * SIZES.f)
    sizes = f"{SIZES.smart} nodes, {SIZES.groups} groups, f = {SIZES.f}"
    stage.finish(axes[0], x=f"failures F ({sizes})", y="availability", title="P6: nodes fail each by itself")
    for at, level in enumerate(LEVELS):
        by_formula = {groups: tolerated(_sizes(groups), level) for groups in GROUPS}
        stage.paper_line(axes[1], by_formula, "" if at else "the paper's formula")
        near = alone.where(members=POLICIES[0]).groups("preset")
        real = {
            f"{level:.0%}, preset {preset}": {
                groups: borne(some)[at] for (groups,), some in rows.groups("groups")
            }
            for (preset,), rows in near
        }
        stage.draw_lines(axes[1], real, first=at * len(near))
    axes[1].set_xscale("log")
    stage.finish(axes[1], x="groups", y="failures F", title=f"P6b: failures borne, {POLICIES[0]}")
    whole = table.where(domains=DOMAINS[1]).adding(
        line=lambda row: f"{row['members']}, rule {'on' if row['rule'] else 'off'}"
    )
    few = stage.Table(row for row in whole if row["failures"] <= DOMAINS[1] // 2)
    stage.draw_means(axes[2], few, "line", "failures", "availability")
    stage.finish(
        axes[2], x=f"power domains out, of {DOMAINS[1]}", y="availability", title="Whole power domains fail"
    )
    return figure


CAMPAIGN = stage.Campaign("availability", cases, run, about_s=lambda _: 0.2)
EXPERIMENT = stage.Experiment(
    id="P6",
    title="Availability with more than f failures",
    campaign=CAMPAIGN,
    paper="Theorem 5 and its figure (S = 100, G = 30, f = 5): availability stays above 50 % up to F = 9 f; "
    "the F that is borne at 50, 90 and 99 % falls very slowly with the number of groups (P6b).",
    about=__doc__,
    tables=tables,
    draw=draw,
    bars=bars,
)

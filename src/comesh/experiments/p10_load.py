"""P10, the paper's figure of load: how evenly the work is spread, over time and at once.

Grids of N = 250 devices, 100 of them nodes, f = 2: ten groups with fifty seats. Temporal load: the share of
the epochs in which a node serves in a role, in any group. Spatial load: how many groups a node serves in that
role at once. Roles: leader; member, which is not leader of that group; both together. Members and leader near
(LSH) against members and leader from anywhere.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from math import sqrt
from statistics import fmean, median, pstdev
from typing import Any

from matplotlib.figure import Figure

from comesh.core.ids import NodeId
from comesh.experiments.campaign import (
    Campaign,
    Comparison,
    Experiment,
    Parameters,
    Scale,
    Verdict,
    judged,
    within,
)
from comesh.experiments.measures.presets import PRESETS, by_preset
from comesh.experiments.measures.selections import LSH, RANDOM, plan_of, selection_of, views
from comesh.experiments.plots import COLOURS, STYLES, distribution, finish, new_figure
from comesh.experiments.table import Row, Table, percentile
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
EPOCHS = 200
"""Enough that what is uneven is the policy, and not the luck of a few draws."""
ROLES = ("leader", "member", "both")
NEAR = 0.1
"""Medians that differ by less are close to each other."""
APART = 0.05
"""Of what is uneven, what differs by less is alike: the paper's difference is then not to be seen."""
TAIL_PERCENT = 99


def cases(scale: Scale) -> Iterator[Parameters]:
    for preset in PRESETS:
        for members in (LSH, RANDOM):
            for seed in range(1, 11 if scale is Scale.FULL else 6):
                yield {"preset": preset, "members": str(members), "seed": seed}


def run(case: Parameters) -> list[Row]:
    """A row per node with its temporal loads, and one per number of groups with how often that was so."""
    topology = make_topology(Shape.GRID, devices=DEVICES, seed=case["seed"])
    plan = plan_of(topology, selection_of(case["preset"], case["members"], seed=case["seed"]))
    served: dict[str, Counter[NodeId]] = {role: Counter() for role in ROLES}
    at_once: dict[str, Counter[int]] = {role: Counter() for role in ROLES}
    for view in views(plan, EPOCHS):
        groups: dict[str, Counter[NodeId]] = {role: Counter() for role in ROLES}
        for cluster in plan.clusters:
            leader, *others = view.members(cluster.group)
            groups["leader"][leader] += 1
            groups["member"].update(others)
            groups["both"].update((leader, *others))
        for role in ROLES:
            served[role].update(groups[role].keys())
            at_once[role].update(groups[role][node.id] for node in plan.nodes)
    most = max(max(counts) for counts in at_once.values())
    moments = EPOCHS * len(plan.nodes)
    return [
        {"load": "temporal", "node": node.id, **{role: served[role][node.id] / EPOCHS for role in ROLES}}
        for node in plan.nodes
    ] + [
        {"load": "spatial", "groups": count, **{role: at_once[role][count] / moments for role in ROLES}}
        for count in range(most + 1)
    ]


def temporal(table: Table, members: str) -> dict[str, list[float]]:
    """By role: the load of each node of each mesh."""
    rows = table.where(load="temporal", members=members)
    return {role: rows.numbers(role) for role in ROLES}


def spatial(table: Table, members: str) -> dict[str, dict[int, float]]:
    """By role: from a number of groups to how often a node was in so many, over all meshes."""
    rows = table.where(load="spatial", members=members)
    meshes = len(rows.distinct("seed"))
    return {
        role: {
            count: number
            for (count,), number in rows.summary(("groups",), role, lambda all_: sum(all_) / meshes).items()
        }
        for role in ROLES
    }


def deviation(shares: dict[int, float]) -> float:
    """The standard deviation of groups at once."""
    mean = sum(count * share for count, share in shares.items())
    return sqrt(sum(share * (count - mean) ** 2 for count, share in shares.items()))


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset, rows in by_preset(table).items():
        near, anywhere = temporal(rows, LSH), temporal(rows, RANDOM)
        found += [_median(preset, role, near[role], anywhere[role]) for role in ("member", "both")]
        found.append(_tail(preset, near["member"], anywhere["member"]))
        found.append(_leaders(preset, near["leader"], anywhere["leader"]))
        found += [_evenness(preset, role, near[role], anywhere[role]) for role in ROLES]
        near_groups, anywhere_groups = spatial(rows, LSH), spatial(rows, RANDOM)
        found += [_at_once(preset, role, near_groups[role], anywhere_groups[role]) for role in ROLES]
    return found


def _median(preset: str, role: str, near: list[float], anywhere: list[float]) -> Comparison:
    name = "member" if role == "member" else "leader or member"
    medians = median(near), median(anywhere)
    agrees = within(*medians, NEAR)
    return Comparison(
        what=f"temporal load, median, {name}, {preset}",
        ours=f"LSH {medians[0]:.3f}, random {medians[1]:.3f}",
        paper="comparable",
        verdict=judged(agrees=agrees),
        why="" if agrees else f"LSH has {medians[0] / medians[1]:.2f} of it",
    )


def _tail(preset: str, near: list[float], anywhere: list[float]) -> Comparison:
    tails = percentile(near, TAIL_PERCENT), percentile(anywhere, TAIL_PERCENT)
    verdict = _random_lower(*tails)
    return Comparison(
        what=f"temporal load, 99th percentile, member, {preset}",
        ours=f"LSH {tails[0]:.3f}, random {tails[1]:.3f}",
        paper="LSH higher",
        verdict=verdict,
        why="" if verdict is Verdict.AGREES else f"LSH has {tails[0] / tails[1]:.2f} of it",
    )


def _leaders(preset: str, near: list[float], anywhere: list[float]) -> Comparison:
    medians = median(near), median(anywhere)
    agrees = medians[0] > (1 + NEAR) * medians[1]
    return Comparison(
        what=f"temporal load, median, leader, {preset}",
        ours=f"LSH {medians[0]:.3f}, random {medians[1]:.3f}",
        paper="LSH higher",
        verdict=judged(agrees=agrees),
        why=""
        if agrees
        else "The centre of a cluster is another device in every epoch, so the near nodes, one of which "
        "leads, change as well, and no few nodes lead again and again. The mean is almost the same under "
        f"any policy, {fmean(near):.3f} and {fmean(anywhere):.3f}: as many leaders as groups. So a lower "
        "median would not be better.",
    )


def _evenness(preset: str, role: str, near: list[float], anywhere: list[float]) -> Comparison:
    deviations = pstdev(near), pstdev(anywhere)
    verdict = _random_lower(*deviations)
    return Comparison(
        what=f"temporal load, standard deviation between nodes, {role}, {preset}",
        ours=f"LSH {deviations[0]:.3f}, random {deviations[1]:.3f}",
        paper="random most even",
        verdict=verdict,
        why="" if verdict is Verdict.AGREES else f"LSH has {deviations[0] / deviations[1]:.2f} of it",
    )


def _at_once(preset: str, role: str, near: dict[int, float], anywhere: dict[int, float]) -> Comparison:
    deviations = deviation(near), deviation(anywhere)
    verdict = _random_lower(*deviations)
    several = [sum(share for count, share in one.items() if count > 1) for one in (near, anywhere)]
    return Comparison(
        what=f"spatial load, standard deviation, {role}, {preset}",
        ours=f"LSH {deviations[0]:.3f}, random {deviations[1]:.3f} groups at once",
        paper="random most even",
        verdict=verdict,
        why=""
        if verdict is Verdict.AGREES
        else f"LSH has {deviations[0] / deviations[1]:.2f} of it: in several groups at once are "
        f"{several[0]:.1%} of the nodes, at random {several[1]:.1%}. Groups take their near members in "
        "different neighbourhoods, where at random all draw from one urn.",
    )


def _random_lower(near: float, anywhere: float) -> Verdict:
    """Of an unevenness that the paper finds lower at random: better if it is lower by LSH."""
    return judged(agrees=near > (1 + APART) * anywhere, better=near < (1 - APART) * anywhere)


def _cumulative(shares: dict[int, float]) -> dict[int, float]:
    counts = sorted(shares)
    return dict(zip(counts, accumulate(shares[count] for count in counts), strict=True))


def draw(table: Table) -> Figure:
    """LSH and random in one panel: what is compared lies side by side."""
    presets = by_preset(table)
    figure, _ = new_figure(len(presets), 2)
    for at, (preset, rows) in enumerate(presets.items()):
        left, right = figure.axes[2 * at : 2 * at + 2]
        for members, name, style in ((LSH, "LSH", STYLES[0]), (RANDOM, "random", STYLES[1])):
            loads, groups = temporal(rows, members), spatial(rows, members)
            for role, colour in zip(ROLES, COLOURS, strict=False):
                look: dict[str, Any] = {"color": colour, "linestyle": style, "label": f"{role}, {name}"}
                distribution(left, loads[role], **look)
                sums = _cumulative(groups[role])
                right.step(list(sums), list(sums.values()), where="post", **look)
        finish(left, x="share of the time", y="share of the nodes", title=f"temporal load, {preset}")
        finish(right, x="groups at once", y="share of the nodes", title=f"spatial load, {preset}", zero=False)
    return figure


CAMPAIGN = Campaign("load", cases, run, about_s=lambda _: 0.2)
EXPERIMENT = Experiment(
    id="P10",
    title="Load",
    campaign=CAMPAIGN,
    paper=(
        "Load distribution: random selection is the most even. The medians of temporal load for members, and "
        "for leaders and members, are comparable between LSH and random; members' tail is higher under LSH, "
        "and so is the median of leaders."
    ),
    compare=compare,
    draw=draw,
    about=(
        f"Selections of {EPOCHS} epochs without a simulation, everybody alive; a node that serves in several "
        "groups at once serves that time once in temporal load. The group of the deployment, which the paper "
        "has not, is left out. Medians within 10 % of each other are comparable. Tails and deviations within "
        "5 % are alike, and where the paper has LSH above random that differs; it is better where LSH is "
        "lower by more. The presets differ in who leads near members: one of them by hash with `paper`, who "
        "leads the fewest devices with `default`."
    ),
)

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
from msgspec.structs import replace

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
SAID = {"leader": "leader", "member": "member", "both": "leader or member"}
NEAR = 0.1
"""Medians that differ by less are close to each other."""
APART = 0.05
"""Of what is uneven, what differs by less is alike: the paper's difference is then not to be seen."""
TAIL_PERCENT = 99
GOES_ROUND = 0.2
"""If the tenth of the nodes that leads most does no more of it, no few nodes lead again and again."""
ALIKE = f"within {APART:.0%}"
NEIGHBOURHOODS = (
    "groups take their near members in different neighbourhoods, where at random all draw from one urn"
)


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
        found += _all_at_once(preset, spatial(rows, LSH), spatial(rows, RANDOM))
    return found


def _median(preset: str, role: str, near: list[float], anywhere: list[float]) -> Comparison:
    name = SAID[role]
    medians = median(near), median(anywhere)
    agrees = within(*medians, NEAR)
    return Comparison(
        what=f"temporal load, median, {name}, {preset}",
        ours=f"LSH {medians[0]:.3f}, random {medians[1]:.3f}",
        paper="comparable",
        verdict=judged(agrees=agrees),
        why="" if agrees else f"LSH has {medians[0] / medians[1]:.2f} of it; {_means(near, anywhere)}",
        in_short=""
        if agrees
        else f"The median of temporal load ({name}) is more than {NEAR:.0%} "
        f"{'lower' if medians[0] < medians[1] else 'higher'} under LSH than at random.",
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
        in_short=f"Members' 99th percentile of temporal load is the same under LSH as at random, {ALIKE}."
        if verdict is Verdict.DIFFERS
        else "",
    )


def _leaders(preset: str, near: list[float], anywhere: list[float]) -> Comparison:
    medians = median(near), median(anywhere)
    agrees = medians[0] > (1 + NEAR) * medians[1]
    tops = top_share(near), top_share(anywhere)
    why, short = _why_no_higher(*medians, tops[0])
    return Comparison(
        what=f"temporal load, median, leader, {preset}",
        ours=f"LSH {medians[0]:.3f}, random {medians[1]:.3f}",
        paper="LSH higher",
        verdict=judged(agrees=agrees),
        why=""
        if agrees
        else f"The tenth of the nodes that leads most does {tops[0]:.1%} of it under LSH, {tops[1]:.1%} at "
        f"random; {why}. As to the median, {_means(near, anywhere)}.",
        in_short="" if agrees else f"The median node leads {short}.",
    )


def _why_no_higher(near: float, anywhere: float, top: float) -> tuple[str, str]:
    """Of medians of leading, at length and in short. top: what the tenth has under LSH that leads most."""
    is_alike = near >= (1 - NEAR) * anywhere
    often = "about as often under LSH as at random" if is_alike else "less often under LSH than at random"
    if top > GOES_ROUND:
        why = "the more a few nodes lead, the less is left to the median one"
        return why, f"{often}: a tenth of the nodes does over {GOES_ROUND:.0%} of it"
    if is_alike:
        why = "the centre of a cluster is drawn anew in every epoch, and with it who is near and may lead"
        return f"no few nodes lead again and again, for {why}", f"{often}: {why}"
    return "what does not explain it is that a few nodes lead much", often


def top_share(loads: list[float]) -> float:
    """What share of it the tenth of the nodes has that has most."""
    most = sorted(loads, reverse=True)[: max(1, len(loads) // 10)]
    return sum(most) / sum(loads)


def _means(near: list[float], anywhere: list[float]) -> str:
    means = fmean(near), fmean(anywhere)
    told = f"the means are {means[0]:.3f} and {means[1]:.3f}"
    if within(*means, NEAR):
        told += ", about the same, for there are as many seats under any policy: lower would not be better"
    return told


def _evenness(preset: str, role: str, near: list[float], anywhere: list[float]) -> Comparison:
    deviations = pstdev(near), pstdev(anywhere)
    verdict = _random_lower(*deviations)
    return Comparison(
        what=f"temporal load, standard deviation between nodes, {SAID[role]}, {preset}",
        ours=f"LSH {deviations[0]:.3f}, random {deviations[1]:.3f}",
        paper="random most even",
        verdict=verdict,
        why="" if verdict is Verdict.AGREES else f"LSH has {deviations[0] / deviations[1]:.2f} of it",
        in_short=f"Temporal load ({SAID[role]}) is spread over the nodes under LSH as at random, {ALIKE}."
        if verdict is Verdict.DIFFERS
        else "",
    )


def _all_at_once(
    preset: str, near: dict[str, dict[int, float]], anywhere: dict[str, dict[int, float]]
) -> list[Comparison]:
    """All roles whose rows differ are told in one sentence."""
    found = {role: _at_once(preset, role, near[role], anywhere[role]) for role in ROLES}
    alike = [role for role in ROLES if found[role].verdict is Verdict.DIFFERS]
    roles = ", ".join(SAID[role] for role in alike)
    short = f"Spatial load ({roles}) is spread over the nodes under LSH as at random, {ALIKE}"
    if all(_is_less_crowded(near[role], anywhere[role]) for role in alike):
        short += f", and a little more evenly: {NEIGHBOURHOODS}"
    return [replace(one, in_short=f"{short}.") if role in alike else one for role, one in found.items()]


def _at_once(preset: str, role: str, near: dict[int, float], anywhere: dict[int, float]) -> Comparison:
    deviations = deviation(near), deviation(anywhere)
    verdict = _random_lower(*deviations)
    reason = f": {NEIGHBOURHOODS}" if _is_less_crowded(near, anywhere) else ""
    return Comparison(
        what=f"spatial load, standard deviation, {SAID[role]}, {preset}",
        ours=f"LSH {deviations[0]:.3f}, random {deviations[1]:.3f} groups at once",
        paper="random most even",
        verdict=verdict,
        why=""
        if verdict is Verdict.AGREES
        else f"LSH has {deviations[0] / deviations[1]:.2f} of it; in several groups at once are "
        f"{_several(near):.1%} of the nodes, at random {_several(anywhere):.1%}{reason}",
    )


def _several(shares: dict[int, float]) -> float:
    return sum(share for count, share in shares.items() if count > 1)


def _is_less_crowded(near: dict[int, float], anywhere: dict[int, float]) -> bool:
    """What neighbourhoods of their own explain: fewer nodes in several groups, and a smaller deviation."""
    return _several(near) < _several(anywhere) and deviation(near) < deviation(anywhere)


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
                look: dict[str, Any] = {"color": colour, "linestyle": style, "label": f"{SAID[role]}, {name}"}
                distribution(left, loads[role], **look)
                sums = _cumulative(groups[role])
                right.step(list(sums), list(sums.values()), where="post", **look)
        finish(left, x="share of the time", y="share of the nodes", title=f"temporal load, preset {preset}")
        finish(
            right,
            x="groups at once",
            y="share of the nodes",
            title=f"spatial load, preset {preset}",
            zero=False,
        )
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
        f"Grids of {DEVICES} devices, 100 of them nodes, f = 2: ten groups of five. Temporal load: the share "
        "of the epochs in which a node has a role in any group; spatial load: in how many groups at once. A "
        f"member is who does not lead that group. Selections of {EPOCHS} epochs without a simulation, "
        "everybody alive; a node that serves in several "
        "groups at once serves that time once in temporal load. The group of the deployment, which the paper "
        "has not, is left out. Medians within 10 % of each other are comparable. Tails and deviations within "
        "5 % are alike, and where the paper has LSH above random that differs; it is better where LSH is "
        "lower by more. The presets differ in who leads near members: one of them by hash with `paper`, who "
        "leads the fewest devices with `default`."
    ),
)

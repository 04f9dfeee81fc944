"""P10, the paper's figure of load: how evenly the work is spread, over time and at once.

Grids of N = 250 devices, 100 of them nodes, f = 2: ten groups with fifty seats. Temporal load: the share of
the epochs in which a node serves in a role, in any group. Spatial load: how many groups a node serves in that
role at once. Roles: leader; member, which is not leader of that group; both together. Members and leader near
(LSH) against members and leader from anywhere.
"""

from collections import Counter
from itertools import accumulate
from math import sqrt
from statistics import median, pstdev
from typing import Any

from comesh.core.ids import NodeId
from comesh.experiments import stage
from comesh.experiments.measures.presets import PRESETS
from comesh.experiments.measures.selections import LSH, RANDOM, plan_of, selection_of, views
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
EPOCHS = 200
"""Enough that what is uneven is the policy, and not the luck of a few draws."""
ROLES = {"leader": "leader", "member": "member", "both": "leader or member"}
TAIL_PERCENT = 99


def cases(scale: stage.Scale) -> stage.Cases:
    for preset in PRESETS:
        for members in (LSH, RANDOM):
            for seed in range(1, 11 if scale is stage.Scale.FULL else 6):
                yield {"preset": preset, "members": str(members), "seed": seed}


def run(case: stage.Parameters) -> list[stage.Row]:
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


def temporal(table: stage.Table, members: str) -> dict[str, list[float]]:
    """By role: the load of each node of each mesh."""
    rows = table.where(load="temporal", members=members)
    return {role: rows.numbers(role) for role in ROLES}


def spatial(table: stage.Table, members: str) -> dict[str, dict[int, float]]:
    """By role: from a number of groups to how often a node was in so many, over all meshes."""
    rows = table.where(load="spatial", members=members)
    meshes = len(rows.distinct("seed"))
    return {role: rows.summary("groups", role, lambda all_: sum(all_) / meshes) for role in ROLES}


def deviation(shares: dict[int, float]) -> float:
    """The standard deviation of groups at once."""
    mean = sum(count * share for count, share in shares.items())
    return sqrt(sum(share * (count - mean) ** 2 for count, share in shares.items()))


def top_share(loads: list[float]) -> float:
    """What share of it the tenth of the nodes has that has most."""
    most = sorted(loads, reverse=True)[: max(1, len(loads) // 10)]
    return sum(most) / sum(loads)


def tables(table: stage.Table) -> dict[str, stage.Table]:
    found: list[stage.Row] = []
    for (preset, members), rows in stage.merged(table).groups("preset", "members"):
        loads, groups = temporal(rows, members), spatial(rows, members)
        found += [
            {
                "preset": preset,
                "role": ROLES[role],
                "members": members,
                "temporal: median": median(loads[role]),
                "99th percentile": stage.percentile(loads[role], TAIL_PERCENT),
                "deviation": pstdev(loads[role]),
                "share of the busiest tenth": top_share(loads[role]),
                "spatial: deviation": deviation(groups[role]),
                "in several groups": sum(share for count, share in groups[role].items() if count > 1),
            }
            for role in ROLES
        ]
    return {"Load of the nodes": stage.Table(sorted(found, key=lambda row: (row["preset"], row["role"])))}


def draw(table: stage.Table) -> stage.Figure:
    """LSH and random in one panel: what is compared lies side by side."""
    presets = stage.merged(table).groups("preset")
    figure, _ = stage.new_figure(len(presets), 2)
    for at, ((preset,), rows) in enumerate(presets):
        left, right = figure.axes[2 * at : 2 * at + 2]
        for members, style in ((LSH, stage.STYLES[0]), (RANDOM, stage.STYLES[1])):
            loads, groups = temporal(rows, members), spatial(rows, members)
            for role, colour in zip(ROLES, stage.COLOURS, strict=False):
                look: dict[str, Any] = {
                    "color": colour,
                    "linestyle": style,
                    "label": f"{ROLES[role]}, {members}",
                }
                stage.distribution(left, loads[role], **look)
                counts = sorted(groups[role])
                right.step(
                    counts, list(accumulate(groups[role][one] for one in counts)), where="post", **look
                )
        title = stage.named("preset", preset)
        stage.finish(left, x="share of the time", y="share of the nodes", title=f"temporal load, {title}")
        stage.finish(
            right, x="groups at once", y="share of the nodes", title=f"spatial load, {title}", zero=False
        )
    return figure


CAMPAIGN = stage.Campaign("load", cases, run, about_s=lambda _: 0.2)
EXPERIMENT = stage.Experiment(
    id="P10",
    title="Load",
    campaign=CAMPAIGN,
    paper=(
        "Load distribution: random selection is the most even. The medians of temporal load for members, "
        "and for leaders and members, are comparable between LSH and random; members' tail is higher under "
        "LSH, and so is the median of leaders."
    ),
    tables=tables,
    draw=draw,
    about=__doc__,
)

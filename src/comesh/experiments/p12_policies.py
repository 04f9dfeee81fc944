"""P12: election, quorum and state transfer by policy: clusters, members, leaders by locality or at random.

The paper's defaults: grids of 250 devices, 100 of them nodes, f = 2. What is measured:
measures/mesh_operations.py.
Means are over all operations of all seeds, in hops. An election lasts from the winner's first question, the
pre-vote, which the paper has not.
"""

from itertools import product

from comesh.core.plan import Locality
from comesh.deployment.settings import MemberPolicy
from comesh.experiments import stage
from comesh.experiments.measures.mesh_operations import OPERATIONS, operation_means, operations
from comesh.experiments.measures.presets import PRESETS, Preset, running
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
CHOICES = ("clusters", "members", "leaders")
ALL = frozenset(CHOICES)
POLICIES = tuple(
    frozenset(name for name, random in zip(CHOICES, chosen, strict=True) if random)
    for chosen in product((False, True), repeat=3)
)
"""What each has at random."""
EPOCHS = {Preset.PAPER: 4.0, Preset.DEFAULT: 1.1}


def name_of(policy: frozenset[str]) -> str:
    if not policy:
        return "all by locality"
    return "all random" if policy == ALL else f"{' and '.join(sorted(policy))} random"


QUICK = {
    Preset.PAPER: [name_of(policy) for policy in POLICIES if len(policy) in (0, 1, 3)],
    Preset.DEFAULT: [name_of(POLICIES[0]), name_of(POLICIES[-1])],
}
"""Of the paper's preset the policies that the paper names."""


def cases(scale: stage.Scale) -> stage.Cases:
    named, seeds = [name_of(policy) for policy in POLICIES], stage.seeds(scale, 1, 10)
    for case in stage.combinations(preset=PRESETS, policy=named, devices=[DEVICES], seed=seeds):
        if scale is stage.Scale.FULL or case["policy"] in QUICK[case["preset"]]:
            yield case


def run(case: stage.Parameters) -> list[stage.Row]:
    policy = next(policy for policy in POLICIES if name_of(policy) == case["policy"])

    def locality(choice: str) -> Locality:
        return Locality.RANDOM if choice in policy else Locality.LOCALITY

    selection = {
        "clusters": locality("clusters"),
        "members": MemberPolicy.RANDOM if "members" in policy else MemberPolicy.LSH_MIX,
        "leaders": locality("leaders"),
    }
    topology = make_topology(Shape.GRID, devices=case["devices"], seed=case["seed"])
    setup = running(case["preset"], seed=case["seed"], selection=selection)
    return operations(topology, setup, seed=case["seed"], epochs=EPOCHS[Preset(case["preset"])])


def tables(table: stage.Table) -> dict[str, stage.Table]:
    near, far = name_of(frozenset()), name_of(ALL)
    some = stage.Table(row for row in table if row["operation"] in OPERATIONS)
    by, names = ("preset", "operation"), {"mean": "times"}
    against = stage.ratios(some, by, names, across="policy", one=near, other=far, weight="count")
    return {
        "Means in hops": operation_means(table, ("preset", "policy"), OPERATIONS),
        "All by locality against all random": against,
    }


def draw(table: stage.Table) -> stage.Figure:
    figure, axes = stage.new_figure(1, len(OPERATIONS), width=4.0)
    for one, operation in zip(axes, OPERATIONS, strict=True):
        heights = {
            stage.named("preset", preset): {
                policy: stage.pooled(some, "mean", "count") for (policy,), some in rows.groups("policy")
            }
            for (preset,), rows in table.where(operation=operation).groups("preset")
        }
        stage.draw_bars(one, heights)
        one.tick_params(axis="x", labelrotation=40, labelsize=7)
        stage.finish(one, x="", y="mean delay, hops", title=operation)
    return figure


CAMPAIGN = stage.Campaign("policies", cases, run, about_s=lambda _: 8.0)
EXPERIMENT = stage.Experiment(
    id="P12",
    title="Operations inside groups, by policy",
    campaign=CAMPAIGN,
    paper="Locality lowers election, quorum and state transfer; state transfer least.",
    tables=tables,
    draw=draw,
    about=__doc__,
)

"""P12: election, quorum and state transfer by policy: clusters, members, leaders by locality or at random.

The paper's defaults: grids of 250 devices, 100 of them nodes, f = 2. What is measured:
measures/mesh_operations.py.
"""

from collections.abc import Iterator
from itertools import product

from matplotlib.figure import Figure

from comesh.core.plan import Locality
from comesh.deployment.settings import MemberPolicy
from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, judged
from comesh.experiments.measures.mesh_operations import OPERATIONS, operations
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.measures.running import running
from comesh.experiments.operation_panels import delay, joined, mean_delay, presets_of
from comesh.experiments.plots import COLOURS, finish, new_figure
from comesh.experiments.table import Row, Table
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
CHOICES = ("clusters", "members", "leaders")
ALL = frozenset(CHOICES)
POLICIES = tuple(
    frozenset(name for name, random in zip(CHOICES, chosen, strict=True) if random)
    for chosen in product((False, True), repeat=3)
)
"""What each has at random."""
NAMED = tuple(policy for policy in POLICIES if len(policy) in (0, 1, 3))
"""By the paper."""
QUICK = {Preset.PAPER: NAMED, Preset.DEFAULT: (POLICIES[0], POLICIES[-1])}
EPOCHS = {Preset.PAPER: 4.0, Preset.DEFAULT: 1.1}
LOWER = 0.05
"""What is lowered by less than this is not lowered; two that differ by no more are lowered alike."""
ROUND_TRIPS = 3
"""Of an election: it asks, claims and commits."""


def name_of(policy: frozenset[str]) -> str:
    if not policy:
        return "all by locality"
    return "all random" if policy == ALL else f"{' and '.join(sorted(policy))} random"


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    for preset in PRESETS:
        for policy in POLICIES if full else QUICK[preset]:
            for seed in range(1, 11 if full else 2):
                yield {"preset": preset, "policy": name_of(policy), "devices": DEVICES, "seed": seed}


def run(case: Parameters) -> list[Row]:
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


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    near, far = name_of(frozenset()), name_of(ALL)
    for preset in presets_of(table):
        rows = table.where(preset=preset)
        means = {
            operation: {
                policy: mean_delay(rows, operation=operation, policy=policy)
                for policy in rows.distinct("policy")
            }
            for operation in OPERATIONS
        }
        saved = {operation: 1 - delays[near] / delays[far] for operation, delays in means.items()}
        for operation, delays in means.items():
            medians = [delay(rows, operation, policy=policy) for policy in (near, far)]
            counts = [
                sum(rows.where(operation=operation, policy=policy).numbers("count")) for policy in (near, far)
            ]
            lower = saved[operation] >= LOWER
            found.append(
                Comparison(
                    what=f"{operation}: all by locality against all random, {preset}",
                    ours=(
                        f"{joined(delays)} hops, mean; {100 * saved[operation]:.0f} % less "
                        f"(medians {medians[0]:.1f} and {medians[1]:.1f}, "
                        f"of {counts[0]:.0f} and {counts[1]:.0f})"
                    ),
                    paper="locality lowers it",
                    verdict=judged(agrees=lower),
                    why="" if lower else _why(operation, means),
                    in_short="" if lower else _not_lowered(operation, means),
                )
            )
        found.append(_least(saved, means, preset))
    return found


def _least(saved: dict[str, float], means: dict[str, dict[str, float]], preset: str) -> Comparison:
    least = [operation for operation in OPERATIONS if saved[operation] <= min(saved.values()) + LOWER]
    agrees = "state transfer" in least
    each = ", ".join(f"{name} by {100 * one:.0f} %" for name, one in saved.items())
    return Comparison(
        what=f"what locality lowers least, {preset}",
        ours=f"{' and '.join(least)} ({each})",
        paper="state transfer",
        verdict=judged(agrees=agrees),
        why="" if agrees else " ".join(_why(operation, means) for operation in least),
        in_short="" if agrees else _least_in_short(least, means),
    )


def _quorums(operation: str, means: dict[str, dict[str, float]]) -> tuple[float, float]:
    """As long as how many it takes, by locality and at random."""
    near, far = (
        means[operation][policy] / means["quorum"][policy] for policy in (name_of(frozenset()), name_of(ALL))
    )
    return near, far


def _needs_a_far_one(means: dict[str, dict[str, float]]) -> bool:
    """Whether elections by locality show that."""
    near, far = _quorums("election", means)
    return near > max(ROUND_TRIPS, far)


def _why(operation: str, means: dict[str, dict[str, float]]) -> str:
    """Why locality does little for it, or less than for others."""
    if operation == "quorum":
        near, far = (means[operation][policy] for policy in (name_of(frozenset()), name_of(ALL)))
        transfers = _quorums("state transfer", means)
        return (
            f"A quorum is the way to the f-th nearest member and back: {near:.1f} hops by locality and "
            f"{far:.1f} at random; a state transfer takes as long as {transfers[0]:.1f} of them by locality "
            f"and {transfers[1]:.1f} at random."
        )
    near, far = _quorums(operation, means)
    name = operation.capitalize()
    told = f"{name}: it takes as long as {near:.1f} quorums by locality and {far:.1f} at random."
    if operation == "election" and _needs_a_far_one(means):
        told += (
            f" Its {ROUND_TRIPS} round trips reach farther than those of a quorum: a leader by locality is "
            "one of the f+1 near members, and once it fell, one of the f from anywhere has to answer. "
            f"{_where_a_far_one_falls(means)}The paper elects when a group is formed and all members live."
        )
    return told


def _not_lowered(operation: str, means: dict[str, dict[str, float]]) -> str:
    found = f"Locality lowers {operation}s by less than {100 * LOWER:.0f} %"
    if operation == "quorum":
        return f"{found}: the f-th nearest member is hardly nearer by it."
    return f"{found}: {_reason(operation, means)}."


def _reason(operation: str, means: dict[str, dict[str, float]]) -> str:
    if operation == "election" and _needs_a_far_one(means):
        return "once a near leader is dead, a far member has to answer"
    near, far = _quorums(operation, means)
    if near > far:
        return f"{operation}s take more quorums by locality than at random"
    return "quorums are hardly lowered either"


def _least_in_short(least: list[str], means: dict[str, dict[str, float]]) -> str:
    """A state transfer is lowered by more than these. If quorums are among them, it takes fewer of them. If
    not, it is an election alone, which takes more of them."""
    found = f"Locality lowers {' and '.join(f'{one}s' for one in least)} least, not state transfers"
    if "quorum" in least:
        return f"{found}, which take fewer quorums by locality than at random."
    return f"{found}: {_reason('election', means)}."


def _where_a_far_one_falls(means: dict[str, dict[str, float]]) -> str:
    hops = means["election"].get(name_of(frozenset({"leaders"})))
    if hops is None or hops >= means["election"][name_of(frozenset())]:
        return ""
    return f"With leaders at random it is often a far one that fell, and {hops:.1f} hops are enough. "


def draw(table: Table) -> Figure:
    presets = presets_of(table)
    policies = table.distinct("policy")
    figure, axes = new_figure(1, len(OPERATIONS), width=4.0)
    for one, operation in zip(axes, OPERATIONS, strict=True):
        for number, preset in enumerate(presets):
            delays = [
                mean_delay(table, operation=operation, preset=preset, policy=policy) for policy in policies
            ]
            places = [place + 0.4 * number for place in range(len(policies))]
            one.bar(places, delays, width=0.38, label=f"preset {preset}", color=COLOURS[number])
        one.set_xticks(range(len(policies)), policies, rotation=40, ha="right", fontsize=7)
        finish(one, x="", y="mean delay, hops", title=operation)
    return figure


CAMPAIGN = Campaign("policies", cases, run, about_s=lambda _: 8.0)
EXPERIMENT = Experiment(
    id="P12",
    title="Operations inside groups, by policy",
    campaign=CAMPAIGN,
    paper="Locality lowers election, quorum and state transfer; state transfer least.",
    compare=compare,
    draw=draw,
    about=(
        "Measured and averaged as P11. What is lowered by less than 5 % is not lowered; what is "
        "lowered by at most 5 points more than the least is lowered least as well. Clusters, members "
        "and leaders each by locality or at random; with `paper` the quick scale has the combinations that "
        "the paper names, with `default` the two extremes; the full one has all eight."
    ),
)

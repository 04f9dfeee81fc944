"""G: what each protection that we have beyond the paper costs, in messages and delay.

Not in the paper. It starts from `preset: paper` and switches on one at a time what can be switched; of what
cannot be switched off the share of messages is counted. What is measured: measures/protections.py.
"""

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.measures.protections import cost, shares, with_floors
from comesh.experiments.measures.running import running
from comesh.experiments.operation_panels import presets_of
from comesh.experiments.plots import COLOURS, finish, new_figure, uncertainty
from comesh.experiments.table import Row, Table
from comesh.sim.topology import Shape, make_topology

BASE = "paper"
ORDERED = {"order": "cluster", "batch": "none"}
BATCHED = {"order": "cluster", "batch": "cluster"}
VARIANTS: dict[str, dict[str, Any]] = {
    BASE: {},
    "order by cluster": {"locks": ORDERED},
    "order and batch by cluster": {"locks": BATCHED},
    "power domain rule": {"selection": {"power_domain_rule": True}},
    "estimated timeouts": {"timeouts": "estimated"},
    "strict durability": {"durability": "strict"},
    "lease of half the length": {"lease": "100ms"},
    "lease of twice the length": {"lease": "400ms"},
    "all but the leases": {
        "locks": BATCHED,
        "selection": {"power_domain_rule": True},
        "timeouts": "estimated",
        "durability": "strict",
    },
}
MEASURED = {
    "messages_per_node_s": "messages per node and second",
    "messages_per_run": "messages per run",
    "delay_mean": "client delay, hops",
}


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    size = {"devices": 250, "seconds": 30.0} if full else {"devices": 100, "seconds": 18.0}
    for seed in range(1, 6 if full else 2):
        for variant in VARIANTS:
            yield {"preset": Preset.PAPER, "variant": variant, "by": "variant", "seed": seed, **size}
        for preset in PRESETS:
            yield {"preset": preset, "variant": "", "by": "purpose", "seed": seed, **size}


def run(case: Parameters) -> list[Row]:
    seed, seconds = case["seed"], case["seconds"]
    topology = with_floors(make_topology(Shape.GRID, devices=case["devices"], seed=seed))
    if case["by"] == "purpose":
        return shares(topology, running(case["preset"], seed=seed), seed=seed, seconds=seconds)
    setup = running(case["preset"], seed=seed, **VARIANTS[case["variant"]])
    return [cost(topology, setup, seed=seed, seconds=seconds)]


def compare(table: Table) -> list[Comparison]:
    costs, counted = table.where(by="variant"), table.where(by="purpose")
    base = costs.where(variant=BASE)
    found = [_measured(variant, costs.where(variant=variant), base) for variant in costs.distinct("variant")]
    for preset in presets_of(counted):
        rows = counted.where(preset=preset)
        for purpose in rows.distinct("purpose"):
            one = rows.where(purpose=purpose)
            messages, size = 100 * one.mean("share_of_messages"), 100 * one.mean("share_of_bytes")
            found.append(
                Comparison(
                    what=f"counted: {purpose}, {preset}",
                    ours=f"{messages:.2f} % of the messages, {size:.2f} % of the bytes",
                    verdict=Verdict.OURS,
                    why=DELAYS.get(purpose, ""),
                )
            )
    return found


def _measured(variant: str, rows: Table, base: Table) -> Comparison:
    def told(column: str, digits: int = 0) -> str:
        value = f"{rows.mean(column):,.{digits}f}"
        return value if variant == BASE else f"{value} ({_change(rows, base, column)})"

    always = f"{told('messages_per_node_s', 1)} messages, {told('bytes_per_node_s')} bytes"
    per_run = ", ".join(
        f"{told(f'{what}_per_run', 1)} {name}"
        for what, name in (
            ("messages", "messages"),
            ("bytes", "bytes"),
            ("commits", "commits"),
            ("appended", "journal entries"),
        )
    )
    return Comparison(
        what=f"measured: {variant}",
        ours=f"per node and second {always}; per run {per_run}; client delay {told('delay_mean', 1)} hops",
        verdict=Verdict.OURS,
        why=WHY.get(variant, ""),
    )


def _change(rows: Table, base: Table, column: str) -> str:
    """Of the same meshes, in percent; where other meshes might as well show none, how far apart they are."""
    before = {row["seed"]: row[column] for row in base}
    changes = [100 * (row[column] / before[row["seed"]] - 1) for row in rows]
    if len(changes) == 1:
        return f"{changes[0]:+.0f} % in one mesh"
    noise = uncertainty(changes)
    sure = abs(fmean(changes)) > noise
    return (
        f"{fmean(changes):+.0f} %" if sure or noise < 1 else f"{fmean(changes):+.0f} ± {noise:.0f} %: noise"
    )


DELAYS = {
    "leases": (
        "Delay: none while a leader lives, whose updates and touches carry it. A new one is elected only "
        "after leases: P11 tells how long after a crash."
    ),
    "leaders doubted": "Delay: none; it shortens the wait for a leader that crashed.",
    "pre-vote": "Delay: none of a run, but a round of questions in each election: P11 tells how long it is.",
    "claims": (
        "Delay: none of a run. That a claim is flushed before it is sent takes no time in the simulator; the "
        "elections of P16's real trials have it in them."
    ),
    "fences": (
        "Delay: none, until the leader of a routine with a live run changes. Then a round to the groups of "
        "its devices, before the next command."
    ),
    "releases acknowledged": (
        "Delay: none. The release itself frees the device, and who waits for it is granted it in the same "
        "entry."
    ),
    "handoffs": "Delay: a run that meets one waits for the end of it; P11 to P13 tell how long they are.",
    "readings until seen": "Delay: none. The first reading counts; it is said again only where it was lost.",
    "silent runs asked about": "Delay: none. It frees what would wait for ever.",
}
"""Of what is counted and is on no run's way or on few: what it delays, as the critical path of a run shows
(measures/delays.py). Commits, locks and commands are on it; F compares the delays of runs with it."""

WHY = {
    "strict durability": (
        "Flushing takes no time in the simulator and no message anywhere: what strict costs is a flush for "
        "each of the journal entries."
    ),
    "estimated timeouts": (
        "They decide when a device that does not answer counts as suspect. Here all devices answer."
    ),
}


def draw(table: Table) -> Figure:
    costs = table.where(by="variant")
    variants = costs.distinct("variant")
    figure, axes = new_figure(1, len(MEASURED), width=4.0)
    for one, (column, name) in zip(axes, MEASURED.items(), strict=True):
        values = [costs.where(variant=variant).numbers(column) for variant in variants]
        errors = [uncertainty(some) for some in values]
        one.barh(variants, [fmean(some) for some in values], xerr=errors, color=COLOURS[0], ecolor=COLOURS[6])
        one.tick_params(axis="y", labelsize=7)
        one.invert_yaxis()
        finish(one, x=name, legend=False, zero=False)
    return figure


CAMPAIGN = Campaign("protections", cases, run, about_s=lambda _: 10.0)
EXPERIMENT = Experiment(
    id="G",
    title="What protections cost",
    campaign=CAMPAIGN,
    paper="What does each protection cost in messages and delay, against the paper's protocol?",
    compare=compare,
    draw=draw,
    about=(
        "Measured: one setting switched on at a time, each run with the same routines; a run's cost is that "
        "of a mesh at work less that of the same mesh at rest, and the delay is a mean and includes the wait "
        "for the next poll. Counted: journaled claims, fences, leases, pre-votes and acknowledged releases "
        "cannot be switched off, so their share of what nodes send is told, in a mesh of which a leader "
        "crashes every four seconds. What they delay is not measured here but argued from the way of a run "
        "(measures/delays.py); of pre-votes P11 measures it. "
        "Changes are means over meshes of the change of each, and how far off "
        "such a mean is in 95 of 100 tries at most (Student's t): a change within that is noise; of one "
        "mesh, as at the quick scale, nobody knows. A second is a hundred hops. The quick scale has 100 "
        "devices."
    ),
)

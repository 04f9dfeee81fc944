"""P13: election, quorum and state transfer while 0 to 80 % of the nodes come or go.

The paper's defaults: grids of 250 devices, 100 of them nodes, f = 2. What is measured:
measures/mesh_operations.py; what churn is: measures/group_churn.py.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict, judged
from comesh.experiments.measures.group_churn import under_churn
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.measures.running import running
from comesh.experiments.operation_panels import delay, joined, panels, presets_of
from comesh.experiments.table import Row, Table
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
QUICK_DEVICES = 100
SHARES = (0, 20, 40, 60, 80)
"""Percent of the nodes."""
FLAT = 0.25
QUICK_EPOCHS = {Preset.PAPER: 10.0, Preset.DEFAULT: 1.5}
FULL_EPOCHS = {Preset.PAPER: 20.0, Preset.DEFAULT: 6.0}
"""How long nodes come and go; the paper does not say."""
BAR = "at 20, 40 and 60 % within 25 % of no churn"


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    epochs = FULL_EPOCHS if full else QUICK_EPOCHS
    for preset in PRESETS:
        for share in SHARES:
            for seed in range(1, 11 if full else 2):
                yield {
                    "preset": preset,
                    "devices": DEVICES if full else QUICK_DEVICES,
                    "churn": share,
                    "epochs": epochs[preset],
                    "seed": seed,
                }


def run(case: Parameters) -> list[Row]:
    topology = make_topology(Shape.GRID, devices=case["devices"], seed=case["seed"])
    setup = running(case["preset"], seed=case["seed"])
    return under_churn(topology, setup, share=case["churn"] / 100, seed=case["seed"], epochs=case["epochs"])


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in presets_of(table):
        rows = table.where(preset=preset)
        for operation in ("quorum", "state transfer"):
            found.append(_flat(rows, operation, f"{operation} by churn in %, {preset}"))
        elections = {share: delay(rows, "election", churn=share) for share in SHARES}
        counts = table.where(preset=preset, operation="election").summary(("churn",), "count", sum)
        found.append(
            Comparison(
                what=f"election by churn in %, {preset}",
                ours=f"{joined(elections)} hops, of {int(sum(counts.values()))} elections; without churn "
                "nobody has to be elected",
                paper="unaffected until about 60 %",
                verdict=Verdict.OURS,
            )
        )
        lived = rows.where(operation="quorum if all lived").summary(("churn",), "mean")
        found.append(
            Comparison(
                what=f"quorum, mean, if all members lived and all stations relayed, by churn in %, {preset}",
                ours=f"{joined({share: one for (share,), one in lived.items()})} hops",
                verdict=Verdict.OURS,
            )
        )
        served = rows.where(operation="served").summary(("churn",), "share")
        found.append(
            Comparison(
                what=f"share of the time that groups are served, by churn in %, {preset}",
                ours=", ".join(f"{share}: {100 * one:.1f} %" for (share,), one in served.items()),
                verdict=Verdict.OURS,
            )
        )
    return found


def _flat(rows: Table, operation: str, what: str) -> Comparison:
    delays = {share: delay(rows, operation, churn=share) for share in SHARES}
    means = rows.where(operation=operation).summary(("churn",), "mean")
    changes = {share: delays[share] / delays[0] - 1 for share in SHARES if 0 < share <= 60}
    flat = all(abs(change) <= FLAT for change in changes.values())
    slower = max(changes.values()) > FLAT
    return Comparison(
        what=what,
        ours=(
            f"{joined(delays)} hops, median; "
            f"{joined({share: one for (share,), one in means.items()})} hops, mean"
        ),
        paper="unaffected until about 60 %",
        verdict=judged(agrees=flat, better=not slower),
        why="" if flat else (WHY_SLOWER if slower else WHY_FASTER),
        bar=BAR,
        met=flat,
    )


WHY_SLOWER = (
    "A member that crashed is replaced at the end of the epoch, or when f are gone: until then quorums of a "
    "group that lost a near member reach to one from anywhere. And fewer living nodes are farther apart. The "
    "mean if all members lived, below, has only the second. How much it is depends on crashes per epoch, of "
    "which the paper says nothing."
)
WHY_FASTER = "Groups that move because members are gone are made of others, who happen to be nearer."


def draw(table: Table) -> Figure:
    return panels(table, lambda rows: rows.curves("preset", "churn", "median"), x="nodes that come or go, %")


CAMPAIGN = Campaign("churn-in-groups", cases, run)
EXPERIMENT = Experiment(
    id="P13",
    title="Operations inside groups, under churn",
    campaign=CAMPAIGN,
    paper="Election, quorum and state transfer are unaffected until about 60 % of the nodes churn.",
    compare=compare,
    draw=draw,
    about=(
        "Measured as P11, while each chosen node crashes or joins once at a uniform time; elections are "
        "those that crashes of leaders cause. A delay is that of an operation that came to its end: how "
        "long groups were served at all is told beside it. The quick scale has 100 devices."
    ),
)

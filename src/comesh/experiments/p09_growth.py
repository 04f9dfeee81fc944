"""P9: sync delay and client delay grow less than fourfold from 50 to 750 devices; on P8's campaign."""

from matplotlib.figure import Figure

from comesh.experiments.campaign import Comparison, Experiment, judged
from comesh.experiments.p08_churn import CAMPAIGN
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Table
from comesh.experiments.verdicts import growth

MOST_GROWTH = 4.0
WHY = (
    "50 devices are two groups, so that many runs stay inside one of them; with churn, one firing that meets "
    "a leader's crash is worth many that do not"
)
MEASURES = {"client_hops": "client delay", "sync_hops": "sync delay"}


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in table.distinct("preset"):
        for column, name in MEASURES.items():
            curves = table.where(preset=preset).curves("churn", "devices", column)
            for churn, curve in curves.items():
                times = growth(curve)
                first, last = min(curve), max(curve)
                found.append(
                    Comparison(
                        what=f"{name} from N = {first} to {last}, churn {float(churn):.0%}, {preset}",
                        ours=f"{times:.2f}x ({curve[first]:.1f} to {curve[last]:.1f} hops)",
                        paper="less than 4x from 50 to 750",
                        verdict=judged(agrees=times < MOST_GROWTH),
                        why="" if times < MOST_GROWTH else WHY,
                        bar="less than 4x",
                        met=times < MOST_GROWTH,
                    )
                )
    return found


def draw(table: Table) -> Figure:
    figure, axes = new_figure(1, len(MEASURES))
    calm = table.where(churn=0.0)
    for at, (column, name) in enumerate(MEASURES.items()):
        lines(axes[at], calm.curves("preset", "devices", column))
        finish(axes[at], x="devices", y=f"{name} (hops)", title=name)
    return figure


EXPERIMENT = Experiment(
    id="P9",
    title="Growth of sync and client delay",
    campaign=CAMPAIGN,
    paper="From 50 to 750 devices (15 times as many) sync delay and client delay grow less than fourfold.",
    compare=compare,
    draw=draw,
    about=(
        "Sync delay: the last device of a run is free, committed by its group, until the first command of "
        "the next run of the same routine, which waited. The figure shows meshes without churn."
    ),
)

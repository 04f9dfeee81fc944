"""P4, the paper's figure of overlaps by N: how many of a group's members are members in the next epoch too.

Grids of 50 to 1,000 devices, 40 % of them nodes, m = 2, l = 2, r = 4; f = 2, so groups have five members. Who
stays has the group's data already, which makes epochs cheaper to change.
"""

from matplotlib.figure import Figure

from comesh.experiments.campaign import Comparison, Experiment, judged
from comesh.experiments.measures.presets import F, by_preset
from comesh.experiments.measures.selection_campaign import CAMPAIGN, DEFAULTS, NOTE, SIZES, cases, run
from comesh.experiments.measures.selections import LSH, RANDOM
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Table
from comesh.sim.topology import SMART_SHARE

__all__ = ["CAMPAIGN", "EXPERIMENT", "cases", "compare", "draw", "run"]

WELL_ABOVE = 2.0
MEMBERS = 2 * F + 1


def overlaps(table: Table) -> dict[str, dict[int, float]]:
    """By policy: from N to members kept."""
    return table.where(**DEFAULTS).curves("members", "devices", "kept")


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset, rows in by_preset(table).items():
        curves = overlaps(rows)
        lsh, random = curves[LSH], curves[RANDOM]
        found += [_at(preset, devices, lsh[devices], random[devices]) for devices in lsh]
        small, large = min(lsh), max(lsh)
        found.append(
            Comparison(
                what=f"members kept, LSH, N = {small} to {large}, {preset}",
                ours=f"{lsh[small]:.2f} to {lsh[large]:.2f} of {MEMBERS}",
                paper="falls for large N: fewer in the largest than in the smallest",
                verdict=judged(agrees=lsh[large] < lsh[small]),
                why=""
                if lsh[large] < lsh[small]
                else f"of random members {random[small]:.2f} stay in the smallest mesh and "
                f"{random[large]:.2f} in the largest, by chance alone: what LSH adds to that grows by more "
                "than chance loses",
            )
        )
    return found


def _at(preset: str, devices: int, lsh: float, random: float) -> Comparison:
    agrees = lsh >= WELL_ABOVE * random
    nodes = round(devices * SMART_SHARE)
    return Comparison(
        what=f"members kept at N = {devices}, {preset}",
        ours=f"{lsh:.2f} of {MEMBERS}, random {random:.2f}: {lsh / random:.1f} times as many",
        paper=f"much larger than random: at least {WELL_ABOVE:.0f} times as many",
        verdict=judged(agrees=agrees),
        why=""
        if agrees
        else f"Here a group has {MEMBERS} of only {nodes} nodes, so {MEMBERS**2 / nodes:.2f} stay by chance. "
        "The centre of a cluster, to which the near members are nearest, is another device in every epoch "
        f"(which keeps the load even, P10), so LSH adds {lsh - random:.2f} to that.",
    )


def draw(table: Table) -> Figure:
    figure, axes = new_figure()
    for number, (preset, rows) in enumerate(by_preset(table).items()):
        curves = {f"{members}, {preset}": points for members, points in overlaps(rows).items()}
        lines(axes, curves, first=2 * number)
    axes.set_xlim(0, max(SIZES) * 1.05)
    finish(axes, x="devices (40 % of them nodes)", y=f"members kept, of {MEMBERS}")
    return figure


EXPERIMENT = Experiment(
    id="P4",
    title="Members kept from epoch to epoch",
    campaign=CAMPAIGN,
    paper="Section 3.6: the overlap under LSH falls for large N, and is much larger than under random.",
    compare=compare,
    draw=draw,
    about=NOTE,
)

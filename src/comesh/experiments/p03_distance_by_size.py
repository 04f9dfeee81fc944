"""P3, the paper's figure of quorum distances by N: LSH keeps groups small in space however large the mesh.

Grids of 50 to 1,000 devices, 40 % of them nodes, m = 2, l = 2, r = 4, f = 2; quorum distance as in P2.
"""

from math import log
from statistics import correlation, linear_regression

from matplotlib.figure import Figure

from comesh.experiments.campaign import Comparison, Experiment, judged
from comesh.experiments.measures.presets import by_preset
from comesh.experiments.measures.selection_campaign import CAMPAIGN, DEFAULTS, NOTE, SIZES, cases, run
from comesh.experiments.measures.selections import LSH, RANDOM
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Table

__all__ = ["CAMPAIGN", "EXPERIMENT", "cases", "compare", "draw", "run"]

STAYS = 1.5
"""What is less than so many times as large in a mesh twenty times as large, stays small."""
GROWS = 2.0
LINEAR = 0.75
"""What grows with N to a power not below this, grows about linearly."""
PAPER_LSH_HOPS = 2.4
"""P2's, of the largest mesh: what the paper calls small."""


def distances(table: Table) -> dict[str, dict[int, float]]:
    """By policy: from N to hops."""
    return table.where(**DEFAULTS).curves("members", "devices", "quorum_hops")


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset, rows in by_preset(table).items():
        curves = distances(rows)
        lsh, random = curves[LSH], curves[RANDOM]
        small, large = min(lsh), max(lsh)
        stays = lsh[large] <= STAYS * lsh[small] and max(lsh.values()) <= PAPER_LSH_HOPS
        grows = random[large] >= GROWS * random[small]
        found += [
            Comparison(
                what=f"quorum distance, LSH, N = {small} to {large}, {preset}",
                ours=f"{lsh[small]:.2f} to {lsh[large]:.2f} hops",
                paper=f"stays small: at most {PAPER_LSH_HOPS} hops, and {STAYS} times from the smallest to "
                "the largest",
                verdict=judged(agrees=stays),
                why=""
                if stays
                else f"at most {max(lsh.values()):.2f} hops, {lsh[large] / lsh[small]:.2f} times from the "
                f"smallest to the largest mesh: small is at most {PAPER_LSH_HOPS} hops and {STAYS} times",
            ),
            Comparison(
                what=f"quorum distance, random, N = {small} to {large}, {preset}",
                ours=f"{random[small]:.2f} to {random[large]:.2f} hops",
                paper=f"grows: at least {GROWS:.0f} times from the smallest to the largest",
                verdict=judged(agrees=grows),
                why=""
                if grows
                else f"{random[large] / random[small]:.2f} times from the smallest to the largest mesh: "
                f"{GROWS:.0f} times is what counts as growing",
            ),
            _growth(preset, random),
        ]
    return found


def _growth(preset: str, random: dict[int, float]) -> Comparison:
    """How it grows, by a straight line through the logarithms."""
    sizes, hops = list(random), list(random.values())
    exponent = linear_regression([log(size) for size in sizes], [log(one) for one in hops]).slope
    straight = correlation(sizes, hops) ** 2
    linear = exponent >= LINEAR
    return Comparison(
        what=f"how it grows, random, {preset}",
        ours=f"as N to the power {exponent:.2f}",
        paper=f"linearly: to the power {LINEAR} at least",
        verdict=judged(agrees=linear),
        why=""
        if linear
        else "Paths in a grid of three dimensions are as long as its edges, which grow as the cube root of "
        f"N. Over these sizes that is not far from a straight line (r² = {straight:.2f}), but no mesh of "
        "this kind has paths that grow in proportion to N.",
    )


def draw(table: Table) -> Figure:
    figure, axes = new_figure()
    for number, (preset, rows) in enumerate(by_preset(table).items()):
        curves = {f"{members}, {preset}": points for members, points in distances(rows).items()}
        lines(axes, curves, first=2 * number)
    axes.set_xlim(0, max(SIZES) * 1.05)
    finish(axes, x="devices (40 % of them nodes)", y="quorum distance in hops")
    return figure


EXPERIMENT = Experiment(
    id="P3",
    title="Quorum distance by size",
    campaign=CAMPAIGN,
    paper="Section 3.6: it grows linearly with N for random selection, and stays small for LSH.",
    compare=compare,
    draw=draw,
    about=NOTE,
)

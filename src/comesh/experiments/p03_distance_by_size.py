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
NEAR = 0.08
"""Powers that are no further apart are about the same."""
STRAIGHT = 0.9
"""With such an r² points are not far from a straight line."""
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
        found += [
            Comparison(
                what=f"quorum distance, LSH, N = {small} to {large}, {preset}",
                ours=f"{lsh[small]:.2f} to {lsh[large]:.2f} hops",
                paper=f"stays small: at most {PAPER_LSH_HOPS} hops, and {STAYS} times from the smallest to "
                "the largest",
                verdict=judged(agrees=not _too_far(lsh)),
                why=", and ".join(_too_far(lsh)),
                in_short=" ".join(f"Under LSH {one}." for one in _too_far(lsh).values()),
            ),
            _grows(preset, random),
            _growth(preset, random),
        ]
    return found


def _too_far(lsh: dict[int, float]) -> dict[str, str]:
    """What does not stay small: from what to write at length to what in short."""
    small, large, most = min(lsh), max(lsh), max(lsh, key=lambda devices: lsh[devices])
    found = {}
    if lsh[most] > PAPER_LSH_HOPS:
        found[f"{lsh[most]:.2f} hops at N = {most}, which is more than {PAPER_LSH_HOPS}"] = (
            f"a quorum is farther than {PAPER_LSH_HOPS} hops at N = {most}"
        )
    if lsh[large] > STAYS * lsh[small]:
        times = lsh[large] / lsh[small]
        found[f"{times:.2f} times from the smallest to the largest mesh, which is more than {STAYS}"] = (
            f"a quorum is more than {STAYS} times as far in the largest mesh as in the smallest"
        )
    return found


def _grows(preset: str, random: dict[int, float]) -> Comparison:
    small, large = min(random), max(random)
    times = random[large] / random[small]
    grows = times >= GROWS
    return Comparison(
        what=f"quorum distance, random, N = {small} to {large}, {preset}",
        ours=f"{random[small]:.2f} to {random[large]:.2f} hops",
        paper=f"grows: at least {GROWS:.0f} times from the smallest to the largest",
        verdict=judged(agrees=grows),
        why=""
        if grows
        else f"{times:.2f} times from the smallest to the largest mesh: {GROWS:.0f} times is what counts as "
        "growing",
        in_short=""
        if grows
        else f"At random a quorum is less than {GROWS:.0f} times as far in the largest mesh as in the "
        "smallest.",
    )


def _growth(preset: str, random: dict[int, float]) -> Comparison:
    """How it grows, by a straight line through the logarithms."""
    sizes, hops = list(random), list(random.values())
    exponent = linear_regression([log(size) for size in sizes], [log(one) for one in hops]).slope
    linear = exponent >= LINEAR
    straight = correlation(sizes, hops) ** 2 if len(set(hops)) > 1 else 0.0
    grows = _beside_paths(exponent)
    if exponent > 0 and straight >= STRAIGHT:
        grows += "; over these sizes that is not far from a straight line"
    return Comparison(
        what=f"how it grows, random, {preset}",
        ours=f"as N to the power {exponent:.2f}",
        paper=f"linearly: to the power {LINEAR} at least",
        verdict=judged(agrees=linear),
        why="" if linear else f"It {grows} (r² = {straight:.2f}).",
        in_short="" if linear else f"At random quorum distance {grows}.",
    )


def _beside_paths(exponent: float) -> str:
    """How it grows if not linearly, beside the paths of a grid, which are as long as its edges."""
    paths, root = "paths in a grid of three dimensions", "with the cube root of N"
    if exponent <= 0:
        return "does not grow"
    if abs(exponent - 1 / 3) <= NEAR:
        return f"grows about as {paths} do, {root}"
    if exponent < 1 / 3:
        return f"grows slower than {paths}, which do {root}"
    return f"grows slower than N, and faster than {paths}, which do {root}"


def draw(table: Table) -> Figure:
    figure, axes = new_figure()
    for number, (preset, rows) in enumerate(by_preset(table).items()):
        curves = {f"{members}, preset {preset}": points for members, points in distances(rows).items()}
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
    about=f"{NOTE} f = 2: groups of five.",
    looks_at=lambda case: DEFAULTS.items() <= case.items(),
)

"""P5, the paper's figures by m, l and r: what the parameters of the hashing do.

Grids of N = 500 devices, 200 of them nodes, f = 2. One parameter is varied, the others are the default ones
(m = 2, l = 2, r = 4).
"""

from itertools import pairwise

from matplotlib.figure import Figure

from comesh.experiments.campaign import Comparison, Experiment, Verdict, judged
from comesh.experiments.measures.presets import by_preset
from comesh.experiments.measures.selection_campaign import (
    CAMPAIGN,
    DEFAULTS,
    NOTE,
    VARIED,
    VARIED_SIZE,
    cases,
    run,
)
from comesh.experiments.measures.selections import LSH
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Table

__all__ = ["CAMPAIGN", "EXPERIMENT", "cases", "compare", "draw", "run"]

MEASURED = {
    "candidates": "candidates",
    "quorum_hops": "quorum distance in hops",
    "kept": "members kept, of 5",
}
SAID = {"m": "fewer for larger m", "l": "more for larger l", "r": "more for larger r"}


def varied(table: Table, parameter: str, column: str) -> dict[float, float]:
    """From the values of a parameter, the others being the default ones, to means of a column."""
    others = {name: value for name, value in DEFAULTS.items() if name != parameter}
    rows = table.where(devices=VARIED_SIZE, members=LSH, **others)
    return {value: number for (value,), number in sorted(rows.summary((parameter,), column).items())}


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset, rows in by_preset(table).items():
        for parameter in VARIED:
            for column, name in MEASURED.items():
                points = varied(rows, parameter, column)
                numbers = list(points.values())
                if parameter == "m":
                    numbers.reverse()
                rises = all(one < following for one, following in pairwise(numbers))
                is_said = column == "candidates"
                found.append(
                    Comparison(
                        what=f"{name}, {parameter} = {', '.join(map(str, points))}, {preset}",
                        ours=", ".join(
                            f"{number:.1f}" if is_said else f"{number:.2f}" for number in points.values()
                        ),
                        paper=SAID[parameter] if is_said else "",
                        verdict=judged(agrees=rises) if is_said else Verdict.OURS,
                        why=""
                        if rises or not is_said
                        else "not at every step: one draw of the hash functions differs much from the next",
                    )
                )
    return found


def draw(table: Table) -> Figure:
    figure, axes = new_figure(len(MEASURED), len(VARIED), width=3.6, height=2.6)
    for row, (column, name) in enumerate(MEASURED.items()):
        for place, parameter in enumerate(VARIED):
            here = axes[row][place]
            curves = {preset: varied(rows, parameter, column) for preset, rows in by_preset(table).items()}
            lines(here, curves)
            here.set_xticks(VARIED[parameter])
            finish(here, x=parameter, y="" if place else name, legend=row == place == 0)
    return figure


EXPERIMENT = Experiment(
    id="P5",
    title="Hash parameters",
    campaign=CAMPAIGN,
    paper=(
        "Section 3.6, at N = 500 with 200 nodes: large m reduce the number of candidates, while large l and "
        "r may increase it. Its figures show quorum distance and overlap, without numbers in the text."
    ),
    compare=compare,
    draw=draw,
    about=NOTE,
)

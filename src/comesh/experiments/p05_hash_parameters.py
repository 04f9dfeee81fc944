"""P5, the paper's figures by m, l and r: what the parameters of the hashing do.

Grids of N = 500 devices, 200 of them nodes, f = 2. One parameter is varied, the others are the default ones
(m = 2, l = 2, r = 4).
"""

from itertools import pairwise
from typing import NamedTuple

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
from comesh.experiments.plots import finish, lines, new_figure, of_presets, uncertainty
from comesh.experiments.table import Table

__all__ = ["CAMPAIGN", "EXPERIMENT", "cases", "compare", "draw", "run"]

MEASURED = {
    "candidates": "candidates",
    "quorum_hops": "quorum distance in hops",
    "kept": "members kept, of 5",
}
SAID = {"m": "fewer for larger m", "l": "more for larger l", "r": "more for larger r"}


def chosen(table: Table, parameter: str) -> Table:
    """The rows in which a parameter is varied, the others being the default ones."""
    others = {name: value for name, value in DEFAULTS.items() if name != parameter}
    return table.where(devices=VARIED_SIZE, members=LSH, **others)


def varied(table: Table, parameter: str, column: str) -> dict[float, float]:
    """From the values of a parameter to means of a column."""
    found = chosen(table, parameter).summary((parameter,), column)
    return {value: number for (value,), number in sorted(found.items())}


def compare(table: Table) -> list[Comparison]:
    return [
        _compared(preset, rows, parameter, column)
        for preset, rows in by_preset(table).items()
        for parameter in VARIED
        for column in MEASURED
    ]


def _compared(preset: str, table: Table, parameter: str, column: str) -> Comparison:
    points = varied(table, parameter, column)
    what = f"{MEASURED[column]}, {parameter} = {', '.join(map(str, points))}, {preset}"
    if column != "candidates":
        ours = ", ".join(f"{number:.2f}" for number in points.values())
        return Comparison(what=what, ours=ours, verdict=Verdict.OURS)
    wrong = [step for step in _steps(table, parameter) if step.by <= 0]
    return Comparison(
        what=what,
        ours=", ".join(f"{number:.1f}" for number in points.values()),
        paper=SAID[parameter],
        verdict=judged(agrees=not wrong),
        why="; ".join(one.told for one in wrong),
        in_short=f"Candidates are not {SAID[parameter]} at every step{_explained(wrong)}." if wrong else "",
    )


class _Step(NamedTuple):
    """From one value of a parameter to the next, in the same meshes."""

    name: str
    by: float
    """How many candidates it changes as the paper says; below 0: against that."""
    may_be_off: float
    """For the draw of meshes and hash functions."""
    meshes: int

    @property
    def is_by_chance(self) -> bool:
        return abs(self.by) < self.may_be_off

    @property
    def told(self) -> str:
        wrong = f"by {-self.by:.1f} against that" if self.by else "no change"
        if self.meshes < 2:
            return f"{self.name}: {wrong}, in one mesh, which does not tell how much others differ"
        return (
            f"{self.name}: {wrong}, which may be {self.may_be_off:.1f} off (95 %) for the draw of meshes and "
            f"hash functions: {'no more than' if self.is_by_chance else 'not explained by'} that draw"
        )


def _steps(table: Table, parameter: str) -> list[_Step]:
    up = -1 if parameter == "m" else 1
    found = []
    means = varied(table, parameter, "candidates")
    for one, following in pairwise(means):
        before, after = (_by_mesh(table, parameter, value) for value in (one, following))
        changes = [up * (after[mesh] - before[mesh]) for mesh in before if mesh in after]
        name = f"{parameter} = {one} to {following}"
        found.append(_Step(name, up * (means[following] - means[one]), uncertainty(changes), len(changes)))
    return found


def _by_mesh(table: Table, parameter: str, value: float) -> dict[int, float]:
    found = chosen(table, parameter).where(**{parameter: value}).summary(("seed",), "candidates")
    return {seed: number for (seed,), number in found.items()}


def _explained(wrong: list[_Step]) -> str:
    if all(one.is_by_chance for one in wrong):
        return ", by no more than the draw of meshes and hash functions may change"
    return ", by more than the draw of meshes and hash functions explains" if wrong[0].meshes > 1 else ""


def draw(table: Table) -> Figure:
    figure, axes = new_figure(len(MEASURED), len(VARIED), width=3.6, height=2.6)
    for row, (column, name) in enumerate(MEASURED.items()):
        for place, parameter in enumerate(VARIED):
            here = axes[row][place]
            curves = {preset: varied(rows, parameter, column) for preset, rows in by_preset(table).items()}
            lines(here, of_presets(curves))
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
    about=f"{NOTE} f = 2: groups of five.",
    looks_at=lambda case: case["devices"] == VARIED_SIZE and case["members"] == LSH,
)

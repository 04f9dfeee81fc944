"""An experiment that takes no time: numbers and their squares, with cases that can be made to fail."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Row, Table


def cases(scale: Scale) -> Iterator[Parameters]:
    for number in range(8 if scale is Scale.FULL else 4):
        yield {"number": number, "seed": 1}


def run(case: Parameters) -> list[Row]:
    if case["number"] > 6:
        raise ValueError("seven is too much")
    return [{"square": case["number"] ** 2}]


def compare(table: Table) -> list[Comparison]:
    most = max(table.numbers("square"))
    return [
        Comparison(
            what="the largest | square",
            ours=f"{most:.0f}",
            paper="9",
            verdict=Verdict.AGREES,
            bar="at least 9",
            met=most >= 9,
        )
    ]


def draw(table: Table) -> Figure:
    figure, axes = new_figure()
    lines(axes, {"squares": {row["number"]: row["square"] for row in table}})
    finish(axes, x="number", y="square")
    return figure


EXPERIMENT = Experiment(
    id="P1",
    title="Squares",
    campaign=Campaign("squares", cases, run),
    paper="Squares <grow>.",
    compare=compare,
    draw=draw,
    about="By hand.",
)

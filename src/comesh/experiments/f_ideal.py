"""F: how far we are from the ideal client delay, by strategy and topology; on P7's campaign.

The ideal is the critical path of commits and messages at shortest-path distances (`measures/delays.py`). It
asks for locks by group; the preset `paper` asks for them one by one, which is part of what is measured.
"""

from collections.abc import Mapping
from typing import Final

from matplotlib.figure import Figure

from comesh.core.strategies import Strategy
from comesh.experiments.campaign import Comparison, Experiment, Verdict
from comesh.experiments.p07_client_delay import CAMPAIGN, NAMES, SHAPES
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Table

BARS: Final[Mapping[Strategy, float]] = {
    Strategy.OPTIMISTIC: 1.5,
    Strategy.PRIORITY: 1.5,
    Strategy.SEQUENTIAL: 2.5,
}
"""Of our defaults. With `paper` there is a handoff every 200 hops, which the ideal knows nothing of."""


def ratio(table: Table) -> float:
    """Of the means: a run whose ideal is a few hops counts as much as its hops."""
    return table.mean("client_hops") / table.mean("ideal_hops")


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in table.distinct("preset"):
        for strategy, bar in BARS.items():
            here = table.where(preset=preset, strategy=str(strategy))
            told = {shape: ratio(here.where(topology=str(shape))) for shape in SHAPES}
            found.append(
                Comparison(
                    what=f"client delay against the ideal, {NAMES[strategy]}, {preset}",
                    ours=", ".join(f"{shape} {times:.2f}x" for shape, times in told.items()),
                    verdict=Verdict.OURS,
                    bar=f"at most {bar}x",
                    met=max(told.values()) <= bar,
                )
            )
    return found


def draw(table: Table) -> Figure:
    presets = table.distinct("preset")
    figure, axes = new_figure(1, len(presets))
    for at, preset in enumerate(presets):
        curves: dict[str, dict[int, float]] = {}
        for strategy, name in NAMES.items():
            here = table.where(preset=preset, strategy=str(strategy))
            curves[name] = {size: ratio(here.where(devices=size)) for size in here.distinct("devices")}
        lines(axes[at], curves)
        finish(axes[at], x="devices", y="client delay / ideal", title=preset)
    return figure


EXPERIMENT = Experiment(
    id="F",
    title="Distance from the ideal",
    campaign=CAMPAIGN,
    paper="How many times the ideal client delay do our runs take?",
    compare=compare,
    draw=draw,
    about=(
        "The ideal counts hops only. What the size of messages adds is in the delay (with `default` up to "
        "a whole hop per hop, with `paper` about a hundredth), and so are handoffs: one every 200 hops in "
        "every group with `paper`."
    ),
)

"""F: how far we are from the ideal client delay, by strategy and topology; on P7's campaign.

The ideal is the critical path of commits and messages at shortest-path distances (`measures/delays.py`). It
asks for locks by group; the preset `paper` asks for them one by one, which is part of what is measured.
"""

from collections.abc import Mapping
from statistics import median
from typing import Final

from matplotlib.figure import Figure

from comesh.core.strategies import Strategy
from comesh.experiments.campaign import Comparison, Experiment, Verdict
from comesh.experiments.p07_client_delay import CAMPAIGN, NAMES
from comesh.experiments.plots import finish, lines, new_figure
from comesh.experiments.table import Table
from comesh.experiments.verdicts import few_meshes, slow_runs, with_lost

BARS: Final[Mapping[Strategy, float]] = {
    Strategy.OPTIMISTIC: 1.5,
    Strategy.PRIORITY: 1.5,
    Strategy.SEQUENTIAL: 2.5,
}
"""Set for our defaults at the paper's sizes (N = 250, f = 2); both presets are held to them at every size."""


def ratio(table: Table) -> float:
    """Of the means: a run whose ideal is a few hops counts as much as its hops."""
    return table.mean("client_hops") / table.mean("ideal_hops")


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in table.distinct("preset"):
        for strategy, bar in BARS.items():
            here = with_lost(table.where(preset=preset, strategy=str(strategy)))
            told = {shape: _by_size(here.where(topology=shape)) for shape in here.distinct("topology")}
            sizes = ", ".join(str(size) for size in sorted(here.distinct("devices")))
            far = [
                (shape, size)
                for shape, by_size in told.items()
                for size, times in by_size.items()
                if times > bar
            ]
            few = few_meshes(here)
            reasons = [
                f"{shape}, N = {size}: {_why_far(here.where(topology=shape, devices=size))}"
                for shape, size in far
            ]
            found.append(
                Comparison(
                    what=f"client delay against the ideal, {NAMES[strategy]}, N = {sizes}, {preset}",
                    ours=(
                        f"{'; '.join(f'{shape} {_listed(by_size)}' for shape, by_size in told.items())}; the "
                        f"median run {_median(here):.2f}x; {len(slow_runs(here))} of {len(here)} runs more "
                        "than 3x"
                    ),
                    verdict=Verdict.OURS,
                    why="; ".join(filter(None, [*reasons, few])),
                    bar=f"at most {bar}x",
                    met=None if few else not far,
                )
            )
    return found


def _by_size(table: Table) -> dict[int, float]:
    return {size: ratio(table.where(devices=size)) for size in sorted(table.distinct("devices"))}


def _listed(by_size: Mapping[int, float]) -> str:
    return ", ".join(f"{times:.2f}x" for times in by_size.values())


def _median(table: Table) -> float:
    seen = (row for row in table if row["ideal_hops"] is not None)
    return median(float(row["client_hops"] / row["ideal_hops"]) for row in seen)


def _why_far(table: Table) -> str:
    """Whether all are slow, or few are very slow."""
    slow = slow_runs(table)
    if not len(slow):
        return f"no run took more than 3x, the median run takes {_median(table):.2f}x"
    if len(slow) == len(table):
        return "every run took more than 3x"
    others = Table(row for row in table if row not in slow.rows)
    share = sum(slow.numbers("client_hops")) / sum(table.numbers("client_hops"))
    return (
        f"the {len(slow)} of {len(table)} runs that took more than 3x have {share:.0%} of all "
        f"hops, {slow.mean('client_hops'):.0f} each; without them it is {ratio(others):.2f}x"
    )


def draw(table: Table) -> Figure:
    presets = table.distinct("preset")
    figure, axes = new_figure(1, len(presets))
    for at, preset in enumerate(presets):
        curves: dict[str, dict[int, float]] = {}
        for strategy, name in NAMES.items():
            here = with_lost(table.where(preset=preset, strategy=str(strategy)))
            curves[name] = _by_size(here)
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
        "a whole hop per hop, with `paper` about a hundredth). The bars were set for our defaults at the "
        "paper's sizes (N = 250, f = 2), where SLA asks for the locks of a group together and has the "
        "request passed on from group to group, as its ideal does; both presets are held to them. With "
        "`paper` SLA asks for one lock after the other, its ideal for those of one group after the other, "
        "and every group hands off every 200 hops: a run that meets that waits, and the ideal does not. "
        "Priority is measured at fewer sizes than SLA and OLA, N = 50 and at the full scale 250."
    ),
)

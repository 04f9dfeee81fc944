"""P8: 40 % of the nodes churn, each crashes or joins once; client delay and sync delay, on the grid, SLA.

Each routine is fired twice, back to back; `measures/firings.py` says how, and what churn does. The same
routines on the same devices without churn are what it is compared with. P9 looks at the same campaign.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, median
from typing import NamedTuple

from matplotlib.figure import Figure

from comesh.core.strategies import Strategy
from comesh.experiments.campaign import (
    Campaign,
    Comparison,
    Experiment,
    Parameters,
    Scale,
    Verdict,
    judged,
)
from comesh.experiments.measures.firings import MAX_CHURN, measure, timed
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.plots import finish, means, new_figure
from comesh.experiments.table import Row, Table
from comesh.experiments.verdicts import INTERVALS, few_meshes, ratio_interval, with_interval, with_lost
from comesh.sim.topology import Shape, make_topology

SIZES = (50, 250, 750)
QUICK_SIZES = (50, 250)
CHURNS = (0.0, MAX_CHURN)
MAX_INCREASE = 1.25
SYNC_DELAY = (
    "Sync delay: the last device of a run is free, committed by its group, until the first command of the "
    "next run of the same routine, which waited. How long the release takes to reach that group and to be "
    "committed there is not in it; in P15, where a device counts as free once its holder begins to release "
    "it, that is."
)
ROUTINES, QUICK_ROUTINES = 10, 5
SECONDS_AT_MOST = {Preset.PAPER: 150.0, Preset.DEFAULT: 20.0}
"""Of a case with the most devices; of others about by the square of theirs."""


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    for preset in PRESETS:
        for devices in SIZES if full else QUICK_SIZES:
            for churn in CHURNS:
                for seed in range(1, 11 if full else 3):
                    yield {
                        "preset": str(preset),
                        "devices": devices,
                        "churn": churn,
                        "routines": ROUTINES if full else QUICK_ROUTINES,
                        "seed": seed,
                    }


def run(case: Parameters) -> list[Row]:
    topology = make_topology(Shape.GRID, devices=case["devices"], seed=case["seed"])
    made = timed(case["preset"], case["seed"])
    found = measure(
        topology,
        made,
        strategy=Strategy.SEQUENTIAL,
        routines=case["routines"],
        seed=case["seed"],
        churn=case["churn"],
        twice=True,
        spare=True,
    )
    return found.rows()


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in table.distinct("preset"):
        pairs = pairs_of(table.where(preset=preset))
        found += [_client(preset, pairs), _sync(preset, pairs), _polling(preset, pairs), _lost(preset, pairs)]
    return found


class Pairs(NamedTuple):
    """The same firings in the same order, without churn and with it."""

    calm: Table
    churned: Table

    def ratio(self, column: str, of: Callable[[Sequence[float]], float] = fmean) -> float:
        return of(self.churned.numbers(column)) / of(self.calm.numbers(column))

    def of_size(self, devices: int) -> "Pairs":
        return Pairs(self.calm.where(devices=devices), self.churned.where(devices=devices))

    def told(self, column: str) -> str:
        """The ratio, with its interval over meshes."""
        return with_interval(self.ratio(column), ratio_interval(self.churned, self.calm, column))

    def with_both(self, column: str) -> "Pairs":
        """Those of which either has a number in that column."""
        both = [
            (calm, churned)
            for calm, churned in zip(self.calm, self.churned, strict=True)
            if calm[column] is not None and churned[column] is not None
        ]
        return Pairs(Table(calm for calm, _ in both), Table(churned for _, churned in both))


def pairs_of(table: Table) -> Pairs:
    """Of one preset: the same routine on the same mesh is fired at the same time, with churn or without."""
    calm, churned = (
        {(row["devices"], row["seed"], row["routine"]): row for row in table.where(churn=churn)}
        for churn in CHURNS
    )
    both = [key for key in calm if key in churned]
    return Pairs(Table(calm[key] for key in both), Table(churned[key] for key in both))


def _client(preset: str, pairs: Pairs) -> Comparison:
    counted = Pairs(with_lost(pairs.calm), with_lost(pairs.churned))
    ratio, medians = counted.ratio("client_hops"), counted.ratio("client_hops", median)
    sizes = {
        devices: counted.of_size(devices).ratio("client_hops") for devices in counted.calm.distinct("devices")
    }
    slower = [devices for devices, times in sizes.items() if times > MAX_INCREASE]
    by_size = ", ".join(f"{devices}: {counted.of_size(devices).told('client_hops')}" for devices in sizes)
    few = few_meshes(counted.calm)
    reasons = [f"N = {devices}: {_why_longer(counted.of_size(devices))}" for devices in slower]
    return Comparison(
        what=f"client delay with 40 % churn against without, {preset}",
        ours=(
            f"{ratio:.2f}x on average (N = {by_size}), "
            f"{medians:.2f}x in the median; without lost ones "
            f"{pairs.with_both('client_hops').ratio('client_hops'):.2f}x on average"
        ),
        paper="at most 1.25x: at every N",
        verdict=judged(agrees=not slower),
        why="; ".join(filter(None, [*reasons, few])),
        in_short=_longer([counted.of_size(devices) for devices in slower]) if slower else "",
        bar="at most 1.25x on average at every N, lost ones as long as they had",
        met=None if few else not slower,
    )


def _longer_by(pairs: Pairs) -> tuple[list[float], list[float]]:
    """By how much: the tenth of the firings that churn delayed most, and the others."""
    longer = sorted(
        (
            churned["client_hops"] - calm["client_hops"]
            for calm, churned in zip(pairs.calm, pairs.churned, strict=True)
        ),
        reverse=True,
    )
    tenth = -(-len(longer) // 10)
    return longer[:tenth], longer[tenth:]


def _why_longer(pairs: Pairs) -> str:
    most, others = _longer_by(pairs)
    told = (
        f"the {len(most)} of {len(pairs.calm)} firings that churn delayed most waited {fmean(most):.0f} hops "
        f"longer on average{f', the others {fmean(others):.0f}' if others else ''}"
    )
    lost = pairs.churned.where(lost=1)
    if lost:
        told += f"; lost are {len(lost)}, and count {lost.mean('client_hops'):.0f} hops on average"
    return told


def _longer(missing: Sequence[Pairs]) -> str:
    """Of the sizes that miss it: whether a tenth of the firings does."""
    few = all(
        sum(_longer_by(pairs)[1]) <= (MAX_INCREASE - 1) * sum(pairs.calm.numbers("client_hops"))
        for pairs in missing
    )
    found = f"With churn client delay is more than {100 * (MAX_INCREASE - 1):.0f} % longer at some N"
    return f"{found}, {'by' if few else 'not only by'} the tenth of the firings that churn delays most."


def _sync(preset: str, pairs: Pairs) -> Comparison:
    both = pairs.with_both("sync_hops")

    def missing(table: Table) -> int:
        return len(table) - len(table.numbers("sync_hops"))

    return Comparison(
        what=f"sync delay with 40 % churn against without, {preset}",
        ours=(
            f"{both.ratio('sync_hops'):.2f}x on average, {both.ratio('sync_hops', median):.2f}x in the "
            f"median; {missing(pairs.churned)} of {len(pairs.churned)} have none with churn, "
            f"{missing(pairs.calm)} without"
        ),
        verdict=Verdict.OURS,
    )


def _polling(preset: str, pairs: Pairs) -> Comparison:
    def told(table: Table) -> str:
        waits = table.numbers("polling_hops")
        return f"{fmean(waits):.0f} hops on average, at most {max(waits):.0f}"

    return Comparison(
        what=f"polling wait before it (not part of the delay), {preset}",
        ours=f"with churn {told(pairs.churned)}; without {told(pairs.calm)}",
        verdict=Verdict.OURS,
    )


def _lost(preset: str, pairs: Pairs) -> Comparison:
    def told(table: Table) -> str:
        return f"{sum(table.numbers('lost')):.0f} lost, {sum(table.numbers('repeated')):.0f} without cause"

    return Comparison(
        what=f"firings of {len(pairs.calm)}, {preset}",
        ours=f"with churn {told(pairs.churned)}; without {told(pairs.calm)}",
        verdict=Verdict.OURS,
    )


def _churn(share: str) -> str:
    return f"churn {float(share):.0%}"


def draw(table: Table) -> Figure:
    presets = table.distinct("preset")
    figure, axes = new_figure(len(presets), 2)
    for row, preset in enumerate(presets):
        for column, what in enumerate(("client", "sync")):
            here = with_lost(table.where(preset=preset))
            means(axes[row][column], here, "churn", "devices", f"{what}_hops", called=_churn)
            finish(
                axes[row][column],
                x="devices",
                y=f"{what} delay (hops)",
                title=f"{what} delay, preset {preset}",
            )
    return figure


def about_s(case: Parameters) -> float:
    return float(SECONDS_AT_MOST[Preset(case["preset"])] * (case["devices"] / max(SIZES)) ** 2)


CAMPAIGN = Campaign("two-firings", cases, run, about_s)
EXPERIMENT = Experiment(
    id="P8",
    title="Churn",
    campaign=CAMPAIGN,
    paper="With 40 % of the nodes churning the client delay is at most 25 % higher.",
    compare=compare,
    draw=draw,
    about=(
        f"Half of the chosen nodes crash, half join, at uniform times while {QUICK_ROUTINES} routines (at "
        f"the full scale {ROUTINES}) fire, 800 hops apart as in P7: {800 * QUICK_ROUTINES:,} hops in all "
        f"({800 * ROUTINES:,}), which are {4 * QUICK_ROUTINES} of the paper's epochs ({4 * ROUTINES}). How "
        "long its experiment lasts the paper does not say; the shorter, the more churn meets each firing. A "
        "leader is missed after a number of leases, and a lease is 20 hops with `paper`, 100 with "
        "`default`. Each firing is compared with that of the same routine on the same mesh without churn. "
        "One that was lost has no delay: it counts as long as it had until the next one, and waited for "
        "longer. Nobody who crashed comes back here: a group that loses more than f members before they are "
        "replaced, which is at the end of an epoch (200 hops, 6,000 with `default`) or 300 hops after one is "
        "believed dead, serves no more. "
        f"{INTERVALS} {SYNC_DELAY}"
    ),
)

"""P9: sync delay and client delay grow less than fourfold from 50 to 750 devices; on P8's campaign."""

from collections.abc import Iterator, Mapping
from statistics import median

from matplotlib.figure import Figure

from comesh.core.group.member import BUSY_LEASES, IDLE_LEASES
from comesh.experiments.campaign import Comparison, Experiment, Verdict, judged
from comesh.experiments.p08_churn import CAMPAIGN, SYNC_DELAY
from comesh.experiments.plots import finish, means, new_figure
from comesh.experiments.table import Table
from comesh.experiments.verdicts import (
    CHANCE,
    INTERVALS,
    OF_SIZES,
    Interval,
    by_devices,
    either_way,
    growth,
    growth_interval,
    max_growth,
    told_growth,
    with_lost,
)

PAPER_LARGEST = 750
"""With fewer devices it is told how delays grow, and not judged."""
SLOW = 2
"""Medians: a firing that took longer was held up."""
MEASURES = {"client_hops": "client delay", "sync_hops": "sync delay"}


def compare(table: Table) -> list[Comparison]:
    return [
        _grows(with_lost(table.where(preset=preset, churn=churn)), column, f"churn {churn:.0%}, {preset}")
        for preset in table.distinct("preset")
        for column in MEASURES
        for churn in table.distinct("churn")
    ]


def _grows(table: Table, column: str, where: str) -> Comparison:
    curve, interval = by_devices(table, column), growth_interval(table, column)
    first, last = min(curve), max(curve)
    slowly = growth(curve) < max_growth(curve)
    is_judged = last >= PAPER_LARGEST
    return Comparison(
        what=f"{MEASURES[column]} from N = {first} to {last}, {where}",
        ours=(
            f"{told_growth(curve, interval)} ({curve[first]:.1f} to {curve[last]:.1f} hops)"
            f"{_not_seen(table, column)}"
        ),
        paper="less than 4x from 50 to 750",
        verdict=judged(agrees=slowly) if is_judged else Verdict.OURS,
        why=_why(table, column, interval)
        if is_judged
        else f"not judged: the paper goes to {PAPER_LARGEST} devices, as --full does",
        in_short=_in_short(table, column, interval) if is_judged and not slowly else "",
        bar=f"less than {max_growth(curve):.0f}x" if is_judged else "",
        met=slowly if is_judged else None,
    )


def _why(table: Table, column: str, interval: Interval | None) -> str:
    curve = by_devices(table, column)
    steep = growth(curve) >= max_growth(curve)
    either = either_way(interval, max_growth(curve))
    return ". ".join(filter(None, (_why_steep(table, column) if steep else "", either)))


def _in_short(table: Table, column: str, interval: Interval | None) -> str:
    curve, medians = by_devices(table, column), by_devices(table, column, median)
    most = max_growth(curve)
    chance = CHANCE if either_way(interval, most) else ""
    return (
        f"The mean {MEASURES[column]} grows by {most:.0f}x or more, the median "
        f"{'less' if growth(medians) < most else 'too'}{chance}."
    )


def _not_seen(table: Table, column: str) -> str:
    if column == "client_hops":
        lost = len(table.where(lost=1))
        return f"; {lost} of {len(table)} were lost and count as long as they had" if lost else ""
    missing = len(table) - len(table.numbers(column))
    return f"; {missing} of {len(table)} have none" if missing else ""


def _why_steep(table: Table, column: str) -> str:
    """What the middle does, what the slowest have, and what the ideal does."""
    medians, ideal = by_devices(table, column, median), by_devices(table, "ideal_hops")
    first, last = min(medians), max(medians)
    shares = [_of_slowest_tenth(table.where(devices=size).numbers(column)) for size in (first, last)]
    told = [
        f"the median grows {growth(medians):.2f}x; the slowest tenth has {shares[0]:.0%} of all hops at N = "
        f"{first} and {shares[1]:.0%} at {last}",
        *_met_crashes(table, column, medians),
    ]
    if {first, last} <= ideal.keys():
        told.append(f"The ideal client delay, which is hops alone, grows {growth(ideal):.2f}x")
    return ". ".join(told)


def _met_crashes(table: Table, column: str, medians: Mapping[int, float]) -> Iterator[str]:
    """How many firings churn held up, by size, and what the lost ones make of it."""
    if not any(table.numbers("churn")):
        return
    slow = {
        size: sum(hops > SLOW * medians[size] for hops in table.where(devices=size).numbers(column))
        for size in sorted(medians)
    }
    yield "Took more than twice the median: " + ", ".join(f"{many} at N = {at}" for at, many in slow.items())
    if slow[max(slow)] > slow[min(slow)]:
        yield (
            f"A leader that dies is missed after {BUSY_LEASES} or {IDLE_LEASES} leases, by whether it was "
            "busy, however large the mesh is, and a routine of a large one needs the leaders of more groups"
        )
    seen = by_devices(table.where(lost=0), column)
    if column == "client_hops" and len(table.where(lost=1)) and seen.keys() == medians.keys():
        yield f"Without the lost it grows {growth(seen):.2f}x"


def _of_slowest_tenth(delays: list[float]) -> float:
    return sum(sorted(delays, reverse=True)[: -(-len(delays) // 10)]) / sum(delays)


def draw(table: Table) -> Figure:
    figure, axes = new_figure(1, len(MEASURES))
    named = Table(
        {**row, "line": f"preset {row['preset']}, churn {row['churn']:.0%}"} for row in with_lost(table)
    )
    for at, (column, name) in enumerate(MEASURES.items()):
        means(axes[at], named, "line", "devices", column)
        finish(axes[at], x="devices", y=f"{name} (hops)", title=name)
    return figure


EXPERIMENT = Experiment(
    id="P9",
    title="Growth of sync and client delay",
    campaign=CAMPAIGN,
    paper=(
        "From 50 to 750 devices (15 times as many) sync delay and client delay grow less than fourfold. Said "
        "of the figure with 40 % churn; here without churn as well."
    ),
    compare=compare,
    draw=draw,
    about=(
        f"{SYNC_DELAY} Who never came so far has none, and is told. The client delay of a firing that was "
        f"lost is as long as it had. {INTERVALS} {OF_SIZES}"
    ),
)

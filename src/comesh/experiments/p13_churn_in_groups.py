"""P13: election, quorum and state transfer while 0 to 80 % of the nodes come or go.

The paper's defaults: grids of 250 devices, 100 of them nodes, f = 2. What is measured:
measures/mesh_operations.py; what churn is: measures/group_churn.py.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from matplotlib.figure import Figure

from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict, judged
from comesh.experiments.measures.group_churn import under_churn
from comesh.experiments.measures.mesh_operations import OPERATIONS
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.measures.running import running
from comesh.experiments.operation_panels import delay, joined, mean_delay, panels, presets_of
from comesh.experiments.table import Row, Table
from comesh.experiments.verdicts import (
    INTERVALS,
    Interval,
    either_way,
    few_meshes,
    growth,
    means_interval,
    with_interval,
)
from comesh.sim.topology import Shape, make_topology

DEVICES = 250
SHARES = (0, 20, 40, 60, 80)
"""Percent of the nodes."""
QUICK_SHARES = (0, 40, 60)
FLAT, FLAT_TO = 0.25, 60
"""Up to this churn delays grow by no more than this share."""
FEWEST = 8
"""Elections at one churn; of fewer it is not judged how long they take: one takes half to twice the mean."""
LIVED = "quorum if all lived"
QUICK_EPOCHS = {Preset.PAPER: 10.0, Preset.DEFAULT: 1.5}
FULL_EPOCHS = {Preset.PAPER: 20.0, Preset.DEFAULT: 6.0}
"""How long nodes come and go; the paper does not say."""


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    epochs = FULL_EPOCHS if full else QUICK_EPOCHS
    for preset in PRESETS:
        for share in SHARES if full else QUICK_SHARES:
            for seed in range(1, 11 if full else 3):
                yield {
                    "preset": preset,
                    "devices": DEVICES,
                    "churn": share,
                    "epochs": epochs[preset],
                    "seed": seed,
                }


def run(case: Parameters) -> list[Row]:
    topology = make_topology(Shape.GRID, devices=case["devices"], seed=case["seed"])
    setup = running(case["preset"], seed=case["seed"])
    return under_churn(topology, setup, share=case["churn"] / 100, seed=case["seed"], epochs=case["epochs"])


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in presets_of(table):
        rows = table.where(preset=preset)
        found += [_flat(rows, operation, preset) for operation in OPERATIONS]
        found += [_lived(rows, preset), _served(rows, preset), _counts(rows, preset)]
    return found


def _means(rows: Table, operation: str) -> dict[int, float]:
    """By share, of those at which there was any."""
    found = {share: mean_delay(rows, operation=operation, churn=share) for share in SHARES}
    return {share: mean for share, mean in found.items() if not math.isnan(mean)}


def _flat(rows: Table, operation: str, preset: str) -> Comparison:
    means = _means(rows, operation)
    medians = {share: delay(rows, operation, churn=share) for share in means}
    judging = [share for share in rows.distinct("churn") if 0 < share <= FLAT_TO]
    if operation == "election":  # of a share at which hardly a leader happened to crash nothing can be said
        counts = rows.where(operation=operation).summary(("churn",), "count", sum)
        judging = [share for share in judging if counts.get((share,), 0) >= FEWEST]
    bar = f"at {', '.join(map(str, judging))} % at most {100 * FLAT:.0f} % above no churn"
    slow = [share for share in judging if share not in means or means[share] > (1 + FLAT) * means[0]]
    against = _against_none(rows, operation, means)
    reasons = [_why_slower(rows, operation, slow)] if slow else []
    reasons += _unsure(against, judging, flat=not slow)
    few = few_meshes(rows)
    times = ", ".join(f"{share}: {one}" for share, one in against.items())
    return Comparison(
        what=f"{operation} by churn in %, {preset}",
        ours=f"{joined(means)} hops, mean ({times}); {joined(medians)} hops, median",
        paper="unaffected until about 60 %",
        verdict=judged(agrees=not slow) if judging else Verdict.OURS,
        why="; ".join(filter(None, [*reasons, few])) if judging else f"fewer than {FEWEST} at each churn",
        in_short=_slower(rows, operation, slow) if slow else "",
        bar=bar if judging else "",
        met=None if few or not judging else not slow,
    )


class _Times(NamedTuple):
    """How many times as long as without churn."""

    times: float
    interval: Interval | None

    def __str__(self) -> str:
        return with_interval(self.times, self.interval)


def _against_none(rows: Table, operation: str, means: dict[int, float]) -> dict[int, _Times]:
    here = rows.where(operation=operation)
    return {
        share: _Times(mean / means[0], means_interval(here, "churn", [0, share], growth))
        for share, mean in means.items()
        if share
    }


def _unsure(against: dict[int, _Times], judging: list[int], *, flat: bool) -> list[str]:
    """Where other meshes may be judged otherwise; and whether more churn shows what the paper says of it."""
    found = [
        f"at {share} % {either}"
        for share in judging
        if share in against and (either := either_way(against[share].interval, 1 + FLAT))
    ]
    beyond = [share for share, one in against.items() if share > FLAT_TO and one.times <= 1 + FLAT]
    if flat and beyond:
        told = ", ".join(f"{share} %" for share in beyond)
        found.append(
            f"at {told} it is no more than {FLAT:.0%} longer either, so {FLAT_TO} % is no limit here"
        )
    return found


def _why_slower(rows: Table, operation: str, slow: list[int]) -> str:
    means, lived = _means(rows, operation), _means(rows, LIVED)
    told = ", ".join(
        f"at {share} % by {means[share] / means[0] - 1:.0%}" if share in means else f"none at {share} %"
        for share in slow
    )
    if operation == "election":
        counts = rows.where(operation=operation).summary(("churn",), "count", sum)
        crashed = ", ".join(f"{counts.get((share,), 0):.0f} at {share} %" for share in slow)
        return (
            f"{told}: elections under churn are those of leaders that happened to crash ({crashed}), and "
            "other members of their groups may have crashed as well. Without churn one leader of each group "
            "is crashed, while all its members live"
        )
    farther = ", ".join(
        f"{lived[share] / lived[0] - 1:.0%} at {share} %" for share in slow if {0, share} <= lived.keys()
    )
    return (
        f"{told}: a member that crashed is replaced at the end of the epoch, or a while after it is believed "
        f"dead; until then the others do without it. By fewer living nodes alone a quorum, all members of "
        f"which live, is longer by {farther or 'what is not known'}"
    )


def _slower(rows: Table, operation: str, slow: list[int]) -> str:
    means, lived = _means(rows, operation), _means(rows, LIVED)
    most = max(slow)
    if most not in means:
        return f"Under churn there are no {operation}s at some share of the nodes."
    found = f"Under churn {operation}s take more than {FLAT:.0%} longer"
    if operation == "election":
        return f"{found}: of a group whose leader crashes other members may have crashed as well."
    if {0, most} <= lived.keys() and lived[most] / lived[0] >= math.sqrt(means[most] / means[0]):
        return f"{found}, mostly as fewer nodes live, which are farther apart."
    return f"{found}, and less than half of it is that fewer nodes live, which are farther apart."


def _lived(rows: Table, preset: str) -> Comparison:
    return Comparison(
        what=f"quorum if all members lived and all stations relayed, by churn in %, {preset}",
        ours=f"{joined(_means(rows, LIVED))} hops, mean",
        verdict=Verdict.OURS,
    )


def _served(rows: Table, preset: str) -> Comparison:
    served = rows.where(operation="served").summary(("churn",), "share")
    return Comparison(
        what=f"share of the time that groups are served, by churn in %, {preset}",
        ours=", ".join(f"{share}: {100 * one:.1f} %" for (share,), one in served.items()),
        verdict=Verdict.OURS,
    )


def _counts(rows: Table, preset: str) -> Comparison:
    """A delay is that of what came to its end: so it matters how much did."""
    told = []
    for operation in OPERATIONS:
        counts = rows.where(operation=operation).summary(("churn",), "count", sum)
        told.append(f"{operation} {', '.join(f'{share}: {int(one)}' for (share,), one in counts.items())}")
    return Comparison(
        what=f"how many there were, by churn in %, {preset}",
        ours="; ".join(told),
        verdict=Verdict.OURS,
        why="elections without churn are those of leaders that were crashed on purpose, one of each group",
    )


def draw(table: Table) -> Figure:
    def curves(rows: Table) -> dict[str, dict[int, float]]:
        return {
            preset: {
                share: mean_delay(rows, preset=preset, churn=share)
                for share in sorted(rows.distinct("churn"))
            }
            for preset in presets_of(rows)
        }

    return panels(table, curves, x="nodes that come or go, %", y="mean delay, hops")


def about_s(case: Parameters) -> float:
    """An epoch is 2 s with `paper` and 20 s by default, of which each second costs less."""
    return float(case["epochs"]) * (1.0 if case["preset"] == Preset.PAPER else 3.5)


CAMPAIGN = Campaign("churn-in-groups", cases, run, about_s)
EXPERIMENT = Experiment(
    id="P13",
    title="Operations inside groups, under churn",
    campaign=CAMPAIGN,
    paper="Election, quorum and state transfer are unaffected until about 60 % of the nodes churn.",
    compare=compare,
    draw=draw,
    about=(
        "Measured as P11, while each chosen node crashes or joins once at a uniform time; elections are "
        "those that crashes of leaders cause. Routines touch devices that no churn takes away. A delay is "
        "that of an operation that came to its end: how many did, and how long groups were served, is told "
        "beside it. How long nodes come and go the paper does not say: here 20 epochs with `paper`, 6 with "
        f"`default`; the quick scale has 10 and 1.5, two seeds, and 0, 40 and {FLAT_TO} % alone. Of fewer "
        f"than {FEWEST} elections it is not judged how long they take. {INTERVALS}"
    ),
)

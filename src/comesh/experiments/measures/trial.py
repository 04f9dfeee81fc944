"""One trial of the paper's 11-node deployment (P14 to P16), on real processes or simulated: what it is, and
the rows that both come to.

Of delays a row has the median (`value`), mean, P90 and how many there were, in milliseconds; of bandwidth the
mean over the nodes (`value`) and the busiest node (`most`), in bytes per second. Delays that end in the
dropped beginning do not count. Leaders are killed when all else is measured: what comes after counts for
elections only.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import fmean, median
from typing import Final

import msgspec

from comesh.core.effects import RunTraced
from comesh.core.traces import Executing, Fired
from comesh.experiments.measures.deployed_workload import CENTRAL, MESH
from comesh.experiments.measures.histories import Moment, Sample, elections, quorums, transfers
from comesh.experiments.measures.lock_delays import lock_delays
from comesh.experiments.stage import Row, percentile
from comesh.lab.shapes import Shape

DROPPED_S: Final = 10.0
"""At the beginning, as the paper does."""
HOP: Final = "10ms"
LEASES_PER_EPOCH: Final = 10
"""As the preset `paper` has it."""


class Mode(StrEnum):
    MESH = "mesh"
    CENTRAL = "central"


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    shape: Shape
    routines: int
    seed: int
    mode: Mode
    preset: str
    epoch_s: int
    seconds: float
    """Measured, after what is dropped."""
    kills: int
    """Leaders that are killed afterwards, one after the other."""

    @property
    def lasts_s(self) -> float:
        return DROPPED_S + self.seconds

    @property
    def settings(self) -> dict[str, str]:
        """Of its document. preset paper: with the hops and epochs of the deployment, and its own number of
        leases in an epoch."""
        if self.mode is Mode.CENTRAL:
            return dict(CENTRAL)
        mesh = {**MESH, "epoch": f"{self.epoch_s}s"}
        if self.preset != "paper":
            return mesh
        lease_ms = 1000 * self.epoch_s // LEASES_PER_EPOCH
        return {"preset": "paper", **mesh, "hop": HOP, "lease": f"{lease_ms}ms"}


class Window(msgspec.Struct, frozen=True):
    """What is measured, by the clock of the history."""

    from_ms: float
    until_ms: float
    ends_ms: float
    """When the last leader that was killed was replaced. What comes then is the end of the trial, when nodes
    leave and hand over."""

    def of(self, samples: Sequence[Sample]) -> list[float]:
        return [one.took_ms for one in samples if self.from_ms <= one.at_ms <= self.until_ms]


def delay_rows(moments: Sequence[Moment], window: Window) -> list[Row]:
    locks = lock_delays(moments)
    measured = {
        "quorum": window.of(quorums(moments)),
        "state transfer": window.of(transfers(moments)),
        "lock acquisition": window.of(locks.acquisitions),
        "lock wait": window.of(locks.waits),
        "sync delay": window.of(locks.syncs),
        "sync delay, conflict": window.of(locks.conflict_syncs),
        "election": Window(window.from_ms, window.ends_ms, window.ends_ms).of(elections(moments)),
    }
    rows = [_delay_row(measure, took_ms) for measure, took_ms in measured.items() if took_ms]
    return [*rows, *_run_rows(moments, window)]


def _delay_row(measure: str, took_ms: Sequence[float]) -> Row:
    return {
        "measure": measure,
        "value": round(median(took_ms), 3),
        "mean": round(fmean(took_ms), 3),
        "p90": round(percentile(took_ms, 90), 3),
        "count": len(took_ms),
    }


def _run_rows(moments: Sequence[Moment], window: Window) -> list[Row]:
    """How many runs fired, and how many executed."""
    told = {
        what: {
            moment.what.run
            for moment in moments
            if isinstance(moment.what, RunTraced)
            and isinstance(moment.what.trace, kind)
            and window.from_ms <= moment.at_ms <= window.until_ms
        }
        for what, kind in (("fired", Fired), ("executing", Executing))
    }
    return [{"measure": f"runs {what}", "value": len(runs)} for what, runs in told.items()]


def bandwidth_row(measure: str, bytes_per_s: Mapping[str, float]) -> Row:
    """By node."""
    return {
        "measure": f"bandwidth: {measure}",
        "value": round(fmean(bytes_per_s.values()), 2),
        "most": round(max(bytes_per_s.values()), 2),
    }


def bandwidth_rows(parts: Mapping[str, Mapping[str, float]]) -> list[Row]:
    """End to end, by part and node: `devices`, `groups` and `membership`; work is the first two."""
    work = {node: parts["devices"][node] + parts["groups"][node] for node in parts["devices"]}
    return [bandwidth_row(name, by_node) for name, by_node in {"work": work, **parts}.items()]

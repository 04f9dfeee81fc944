"""Findings of the checkers: a broken promise, or a loss that the protocol admits and reports."""

from collections.abc import Collection
from enum import StrEnum
from typing import Protocol

import msgspec

from comesh.core.ids import DeviceId, GroupId
from comesh.core.stamps import RunId


class Promise(StrEnum):
    """A guarantee of the protocol (section 9), and what it rests on."""

    SAFETY = "1 safety"
    ONE_HISTORY = "2 one history"
    INHERITANCE = "3 inheritance"
    NO_LOSS = "4 no loss"
    PROGRESS = "5 progress"
    NO_STRAY = "6 no stray command"
    FIRED_ONCE = "fired once"
    QUORUM = "committed by a quorum"
    ORDERS = "orders are kept"


class Violation(msgspec.Struct, frozen=True):
    promise: Promise
    at_ms: float
    what: str
    history: tuple[str, ...]
    """Lines that concern the violation, in order of time."""

    def __str__(self) -> str:
        told = "".join(f"\n  {line}" for line in self.history)
        return f"{self.promise}, at {self.at_ms / 1000:.3f} s: {self.what}{told}"


class Loss(msgspec.Struct, frozen=True):
    """A reported lossy election continued from an older state: no violation, but always reported."""

    at_ms: float
    group: GroupId
    entries: int
    """Number of committed entries that are lost."""
    runs: tuple[RunId, ...]
    """Committed firings that are lost."""


class BrokenPromiseError(Exception):
    """A promise was broken, and the checks stop at the first violation."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


class Verdicts(Protocol):
    """Collects the findings of checkers. The subjects choose the lines of the history."""

    def broken(
        self,
        promise: Promise,
        at_ms: float,
        what: str,
        *,
        group: GroupId | None = None,
        runs: Collection[RunId] = (),
        devices: Collection[DeviceId] = (),
    ) -> None: ...

    def lost(self, loss: Loss) -> None: ...

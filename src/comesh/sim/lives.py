"""Records the lives of processes: when each began and ended, and how."""

from enum import StrEnum

import msgspec


class LifeChange(StrEnum):
    STARTED = "started"
    CRASHED = "crashed"
    KILLED = "killed"
    STOPPED = "stopped"


class Life(msgspec.Struct, frozen=True):
    """A process began or ended; why is the reason it gave when it stopped by itself."""

    at_ms: float
    machine: str
    change: LifeChange
    why: str = ""

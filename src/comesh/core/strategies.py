"""How a run gets the locks of its devices (protocol, section 7)."""

from enum import StrEnum


class Strategy(StrEnum):
    SEQUENTIAL = "sequential"
    OPTIMISTIC = "optimistic"
    PRIORITY = "priority"


class Batch(StrEnum):
    CLUSTER = "cluster"
    NONE = "none"


class LockOrder(StrEnum):
    CLUSTER = "cluster"
    DEVICE = "device"

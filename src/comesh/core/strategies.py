"""How a run gets the locks of its devices (protocol, section 7)."""

from enum import StrEnum

from comesh.core.words import Word


class Strategy(Word):
    SEQUENTIAL = 1
    OPTIMISTIC = 2
    PRIORITY = 3


class Batch(StrEnum):
    CLUSTER = "cluster"
    NONE = "none"


class LockOrder(StrEnum):
    CLUSTER = "cluster"
    DEVICE = "device"

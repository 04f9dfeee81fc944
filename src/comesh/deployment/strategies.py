"""Strategies as a document names them."""

from enum import StrEnum


class Strategy(StrEnum):
    SEQUENTIAL = "sequential"
    OPTIMISTIC = "optimistic"
    PRIORITY = "priority"

"""Nodes that an earlier deployment version had and this one has not.

They may speak, and be spoken of, until everybody has heard of the new version: that is nothing to complain
about for a while.
"""

from collections.abc import Iterable

from comesh.core.ids import NodeId

MAX_FORMER = 4096
"""Maximum number of former nodes; those that left first are forgotten."""


class Former:
    __slots__ = ("_since_ms", "_while_ms")

    def __init__(self, while_ms: float) -> None:
        self._while_ms = while_ms
        self._since_ms: dict[NodeId, float] = {}

    def __contains__(self, node: NodeId) -> bool:
        return node in self._since_ms

    def adopt(self, gone: Iterable[NodeId], back: Iterable[NodeId], now_ms: float) -> None:
        """A new version came without those that are gone, and with those that are back."""
        for node in back:
            self._since_ms.pop(node, None)
        for node in gone:
            self._since_ms[node] = now_ms
        while len(self._since_ms) > MAX_FORMER:
            del self._since_ms[next(iter(self._since_ms))]

    def is_expected(self, node: NodeId, now_ms: float) -> bool:
        """It may not have heard yet that it left, or others may not."""
        since_ms = self._since_ms.get(node)
        return since_ms is not None and now_ms - since_ms < self._while_ms

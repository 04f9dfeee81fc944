"""Names of things, as the vocabulary in docs has them.

Ids come from the deployment document and match `[a-z][a-z0-9_]*`. They are text on the wire too: an
index into a list would be shorter, but two nodes at different deployment versions would disagree on it.
"""

from typing import Annotated, NewType

import msgspec

Counter = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""Checked when it comes from the wire."""
DurationMs = Annotated[float, msgspec.Meta(ge=0, le=86_400_000)]
"""At most a day, and a number: checked likewise."""

NodeId = NewType("NodeId", str)
DeviceId = NewType("DeviceId", str)
RoutineId = NewType("RoutineId", str)
GroupId = NewType("GroupId", str)


class Incarnation(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """Which life of a node speaks. Compared in this order; a higher one overrides what lower ones said.

    boot rises with every process start and is flushed before use; nonce is drawn at each start, so that
    two processes that run from copies of one disk are never mistaken for each other; refutation rises
    when a living node has to contradict an update of its death.
    """

    boot: Counter
    nonce: Counter
    refutation: Counter = 0

    @property
    def life(self) -> tuple[int, int]:
        """What stays the same as long as one process lives."""
        return (self.boot, self.nonce)


NEVER = Incarnation(boot=0, nonce=0)
"""The incarnation of a node that the deployment names but nobody has heard of yet."""

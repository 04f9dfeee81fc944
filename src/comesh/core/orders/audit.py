"""The audit log of a group: the latest orders that were carried out, who gave them, and when.

It is part of the committed state, so it outlives its leader and moves with the group. It is a ring: a new
entry replaces the oldest, so that each costs one small record. A request that is in it was carried out, and
is not again.
"""

from typing import Final

from comesh.core.group.serving import Serving
from comesh.core.records import AuditRecord
from comesh.core.stamps import RunId

SLOTS: Final = 64
MAX_WHAT: Final = 200
"""Characters of what was done."""
MAX_BY: Final = 80


def remembered(serving: Serving, request: str) -> AuditRecord | None:
    """The entry of this request; None: it was not carried out, or long ago."""
    return next((one for one in serving.all(AuditRecord) if one.request == request), None)


def remember(
    serving: Serving, at_ms: float, by: str, what: str, *, request: str, run: RunId | None = None
) -> None:
    number = 1 + max((one.number for one in serving.all(AuditRecord)), default=0)
    entry = AuditRecord(number % SLOTS, number, at_ms, by[:MAX_BY], what[:MAX_WHAT], request, run)
    serving.put(entry)

"""Whom an elected leader goes on telling that it leads."""

from types import SimpleNamespace
from typing import Any, cast

from comesh.core.group.patience import SILENT_LEASES, lack_sync
from comesh.core.stamps import OPENING, Ballot
from comesh.core.step import Step

LEASE_MS = 1000.0


def told(ballot: Ballot, silent_ms: float, heard: tuple[int, ...] = ()) -> list[int]:
    replica = SimpleNamespace(peers=(0, 2, 3), lease_ms=LEASE_MS)
    leadership = SimpleNamespace(
        ballot=ballot, was_heard=lambda rank: rank in heard, silent_ms=lambda _rank, _step: silent_ms
    )
    return lack_sync(cast("Any", replica), cast("Any", leadership), Step(1.0, 1.0))


def test_one_lost_acknowledgement_does_not_make_a_member_a_lost_one() -> None:
    """It is told again until it has acknowledged; who is dead is told no more when it counts as silent."""
    assert told(Ballot(1, 1), 100.0, heard=(2,)) == [0, 3]
    assert told(Ballot(1, 1), SILENT_LEASES * LEASE_MS + 1) == []


def test_of_a_first_leader_start_tells() -> None:
    assert told(OPENING, 100.0) == []

"""Tests that a patch restores the whole record, or is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from comesh.core.group.ledger import MAX_PATCHED_BYTES, Ledger, said, whole
from comesh.core.ids import DeviceId, RoutineId
from comesh.core.records import Changed, DeviceRecord, DocumentRecord, Gone, Hold, Record, ReleaseMark
from comesh.core.stamps import OPENING, RunId, Stamp
from comesh.core.strategies import Strategy

RUN = RunId(RoutineId("evening"), 1, Stamp(1, OPENING, 7))
HOLD = Hold(RUN, 1, Strategy.SEQUENTIAL, 1234.5, Stamp(2, OPENING, 8))
LAMP = DeviceRecord(
    DeviceId("lamp"),
    hold=HOLD,
    released={RoutineId(f"routine_{number}"): ReleaseMark(RUN, number) for number in range(5)},
)
FREE = replace(LAMP, hold=None)


def test_a_patch_is_small_and_restores_the_record() -> None:
    (changed,) = said((FREE,), (LAMP,))
    assert isinstance(changed, Changed)
    assert len(changed.patch) < 40
    assert whole((changed,), {LAMP.key: LAMP}) == (FREE,)


def test_new_removed_and_much_changed_records_are_sent_whole() -> None:
    gone = Gone(LAMP.key)
    long = DocumentRecord(2, "x" * MAX_PATCHED_BYTES)
    entry: tuple[Record, ...] = (LAMP, gone, long)
    assert said(entry, (None, LAMP, DocumentRecord(1, "x"))) == entry
    assert whole(entry, {}) == entry


@pytest.mark.parametrize("held", [{}, {LAMP.key: replace(LAMP, sequence=9)}])
def test_a_patch_of_another_base_is_refused(held: dict[str, Record]) -> None:
    assert whole(said((FREE,), (LAMP,)), held) is None


def test_a_patch_of_another_key_is_refused() -> None:
    (changed,) = said((FREE,), (LAMP,))
    assert isinstance(changed, Changed)
    assert whole((replace(changed, key="device/fan"),), {"device/fan": LAMP}) is None


@given(st.binary(max_size=60))
def test_garbage_is_refused(patch: bytes) -> None:
    assert whole((Changed(LAMP.key, patch),), {LAMP.key: LAMP}) is None


@given(st.lists(st.sampled_from([LAMP, FREE, replace(LAMP, sequence=3), Gone(LAMP.key)]), min_size=1))
def test_a_follower_holds_what_the_leader_holds(entries: list[Record]) -> None:
    leader, follower = Ledger({LAMP.key: LAMP}, 4), Ledger({LAMP.key: LAMP}, 4)
    for record in entries:
        leader.append((record,))
    told = leader.said_since(4)
    assert told is not None
    assert [follower.follow(entry) for entry in told] == [(record,) for record in entries]
    assert (follower.number, follower.digest, follower.records) == (
        leader.number,
        leader.digest,
        leader.records,
    )


def test_a_refused_patch_leaves_the_ledger_unchanged() -> None:
    ledger = Ledger({}, 4)
    digest = ledger.digest
    assert ledger.follow(said((FREE,), (LAMP,))) is None
    assert (ledger.number, ledger.digest) == (4, digest)

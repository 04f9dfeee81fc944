"""Random records of the core that fit each other, and what tests compare images by."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from comesh.core.group.config import Config, Seat
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.journal import (
    Appended,
    BootRaised,
    ConfigDropped,
    ConfigKept,
    DocumentKept,
    Image,
    JournalRecord,
    PowerLost,
    Promised,
    StateTaken,
    Tombstone,
)
from comesh.core.records import DeviceRecord, Gone, GroupRecord, Record, RoutineRecord, Status
from comesh.core.stamps import Ballot
from comesh.runtime.journal import Journal


def config(number: int) -> Config:
    seats = (Seat(NodeId("n1"), 0), Seat(NodeId("n2"), 17), Seat(NodeId("n3"), -1))
    return Config(GroupId(f"lamps_{number % 2}"), number, 0, seats, 1000, 1)


CONFIGS = [config(number) for number in range(3)]
ballots = st.builds(Ballot, st.integers(0, 5), st.integers(0, 2))
records: st.SearchStrategy[Record] = st.one_of(
    st.just(GroupRecord()),
    st.builds(DeviceRecord, st.sampled_from(["lamp", "door"]).map(DeviceId), st.sampled_from(Status)),
    st.builds(
        RoutineRecord,
        st.sampled_from(["night", "day"]).map(RoutineId),
        st.integers(0, 9),
        instant_ms=st.none() | st.floats(0, 1e13),
    ),
)
entries = st.lists(records | st.builds(Gone, st.just("device/lamp")), max_size=3).map(tuple)
states = st.lists(records, max_size=3, unique_by=lambda one: one.key).map(tuple)
marks = st.sampled_from([one.mark for one in CONFIGS])
numbers = st.integers(0, 100)
any_record: st.SearchStrategy[JournalRecord] = st.one_of(
    st.builds(ConfigKept, st.sampled_from(CONFIGS), st.just(5), numbers, states, st.booleans()),
    st.builds(Promised, marks, ballots),
    st.builds(Appended, marks, ballots, numbers, entries),
    st.builds(StateTaken, marks, ballots, numbers, st.none() | states),
    st.just(PowerLost()),
    st.builds(ConfigDropped, marks),
    st.builds(Tombstone, st.sampled_from(CONFIGS)),
    st.builds(DocumentKept, st.integers(1, 4), st.text(max_size=40)),
    st.builds(BootRaised, st.integers(0, 3)),
)


def fitting(drawn: Sequence[JournalRecord]) -> list[JournalRecord]:
    """Without records of configs that are not there, which the core never writes."""
    kept: set[int] = set()
    found: list[JournalRecord] = []
    for one in drawn:
        if isinstance(one, Promised | Appended | StateTaken) and one.mark not in kept:
            continue
        if isinstance(one, ConfigKept):
            kept.add(one.config.mark)
        elif isinstance(one, ConfigDropped):
            kept.discard(one.mark)
        found.append(one)
    return found


histories = st.lists(any_record, max_size=25).map(fitting)


def folded(history: Sequence[JournalRecord]) -> Image:
    image = Image()
    for one in history:
        image.apply(one)
    return image


def shape(image: Image, *, boot: bool = True) -> Any:
    """All that an image holds, comparable."""
    configs = {
        mark: (
            kept.config,
            kept.store,
            kept.installed,
            kept.whole,
            kept.promised,
            kept.accepted,
            kept.number,
            list(kept.records.items()),
        )
        for mark, kept in image.configs.items()
    }
    return (image.boot if boot else None, configs, dict(image.tombstones), dict(image.documents))


HISTORY: list[JournalRecord] = [
    DocumentKept(1, "site: office"),
    ConfigKept(CONFIGS[0], 0, 0, (), True),
    Promised(CONFIGS[0].mark, Ballot(1, 1)),
    Appended(CONFIGS[0].mark, Ballot(1, 1), 1, (DeviceRecord(DeviceId("lamp"), Status.UP),)),
    ConfigKept(CONFIGS[1], 5, 3, (GroupRecord(),), False),
    Tombstone(CONFIGS[2]),
    Appended(CONFIGS[0].mark, Ballot(1, 1), 2, (GroupRecord(), Gone("device/lamp"))),
]
"""A little of everything."""
FIRST, SECOND = "boot of the kernel 1", "boot of the kernel 2"


def begin(data: Path, *, strict: bool = False, boot_id: str = FIRST) -> Journal:
    return Journal.open(data, create="initialise", strict=strict, boot_id=boot_id)


def written(data: Path, history: Sequence[JournalRecord] = HISTORY, *, strict: bool = False) -> Journal:
    """A journal with some records, of which the last is not flushed."""
    journal = begin(data, strict=strict)
    journal.append(history[:-1])
    journal.flush()
    journal.append(history[-1:])
    return journal

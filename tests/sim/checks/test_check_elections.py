"""Lossy elections that were not due, or went on from too old a state: on scripted disks, and in the swarm."""

from collections.abc import Callable

import pytest
from told_groups import NODES, Told, config, held

from comesh.core.effects import LeaderChanged
from comesh.core.group.config import Config, Seat
from comesh.core.group.election import Election
from comesh.core.group.ledger import Ledger
from comesh.core.group_messages import Promise as PromiseGiven
from comesh.core.ids import NodeId
from comesh.core.journal import Appended, ConfigKept, PowerLost, Promised, StateTaken
from comesh.core.records import GroupRecord
from comesh.core.stamps import OPENING, Ballot, Era
from comesh.core.step import Step
from comesh.sim.checks import Checks, Promise
from comesh.sim.checks.elections import Elections
from comesh.sim.disk import Disk
from comesh.sim.machine import Clock, Machine
from comesh.sim.swarm import Swarm

BALLOT = Ballot(1, 0)
"""The ballot that n1 claims."""
WHOLE, NOT_WHOLE = False, True


class Claimed:
    """A config of three, in which n1 claims; entries: how many each has; lost: who lost power before."""

    def __init__(self, entries: tuple[int, int, int], lost: tuple[bool, bool, bool], group: Config) -> None:
        self.config = group
        self.machines: dict[str, Machine] = {}
        for station, name in enumerate(NODES):
            disk = Disk(10 + station, initialised=True, flush_ms=50.0)
            disk.write(ConfigKept(group, 0, 0, (), True), flush=True, now_ms=0.0)
            for number in range(1, entries[station] + 1):
                entry = (held(f"d{number}", None),)
                disk.write(Appended(group.mark, OPENING, number, entry), flush=True, now_ms=0.0)
            if lost[station]:
                disk.write(PowerLost(), flush=True, now_ms=0.0)
            self.machines[name] = Machine(name, NodeId(name), station, Clock(), disk)
        self.elections = Elections(self.machines)

    def promise(self, *names: str) -> "Claimed":
        for name in names:
            record = Promised(self.config.mark, BALLOT)
            self.machines[name].disk.write(record, flush=True, now_ms=1.0)
            self.elections.on_written(1.0, NodeId(name), record)
        return self

    def open(self, number: int) -> list[str]:
        """Let n1 begin an era after this number of entries, and report it once it is written."""
        era = Era(self.config.number, BALLOT)
        ledger = Ledger({}, 0)
        for one in range(1, number + 1):
            ledger.append((held(f"d{one}", None),))
        ledger.append((GroupRecord(era),))
        records = ledger.snapshot()
        taken = StateTaken(self.config.mark, BALLOT, ledger.number, records)
        self.machines["n1"].disk.write(taken, flush=True, now_ms=2.0)
        told = LeaderChanged(
            self.config.group,
            self.config,
            BALLOT,
            "lossy",
            ledger.number,
            ledger.digest,
            era,
            records=records,
        )
        return self.elections.unfounded(told, self.config.mark)


def claimed(
    entries: tuple[int, int, int] = (2, 2, 2),
    lost: tuple[bool, bool, bool] = (NOT_WHOLE, NOT_WHOLE, WHOLE),
    group: Config | None = None,
) -> Claimed:
    return Claimed(entries, lost, group or config())


def test_a_loss_is_due_when_a_quorum_is_not_whole() -> None:
    assert claimed().promise("n1", "n2").open(2) == []
    one = claimed(lost=(NOT_WHOLE, WHOLE, WHOLE)).promise("n1", "n2").open(2)
    assert one == ["ballot 1.0 of g is lossy, but n2, n3 are whole"]
    assert len(claimed(lost=(WHOLE, WHOLE, WHOLE)).promise("n1", "n2", "n3").open(2)) == 1


def test_an_absent_member_is_judged_by_its_disk() -> None:
    made = claimed(lost=(NOT_WHOLE, WHOLE, WHOLE)).promise("n1", "n2")
    made.machines["n3"].disk.lost_power = True
    assert made.open(2) == []
    made = claimed(lost=(NOT_WHOLE, WHOLE, WHOLE)).promise("n1", "n2")
    made.machines["n3"].disk = Disk(77, initialised=False, flush_ms=50.0)
    assert made.open(2) == []


def test_a_seat_that_nobody_took_is_not_whole() -> None:
    seats = (Seat(NodeId("n1"), 0), Seat(NodeId("n2"), 0), Seat(NodeId("n3"), -1))
    made = claimed(lost=(NOT_WHOLE, WHOLE, WHOLE), group=Config(config().group, 1, 0, seats, 1000, 1))
    assert made.promise("n1", "n2").open(2) == []


def test_a_member_is_judged_by_its_state_at_the_promise() -> None:
    made = claimed().promise("n1", "n2")
    later = Ballot(2, 2)
    taken = StateTaken(made.config.mark, later, 2, None)
    made.machines["n2"].disk.write(taken, flush=True, now_ms=1.5)
    assert made.open(2) == [], "n3 came to lead in between, and made n2 whole"


def test_an_era_begins_with_the_newest_of_two_states() -> None:
    made = claimed((1, 2, 3)).promise("n1", "n2")
    assert made.open(1) == [
        "the era of ballot 1.0 of g begins at 2, but n2, who promised it, has 2 of ballot 0.0"
    ]
    assert claimed((1, 2, 3)).promise("n1", "n2").open(2) == []
    assert len(claimed((2, 1, 1)).promise("n1", "n2").open(1)) == 1, "its own"


def test_one_of_three_promises_may_have_been_late() -> None:
    assert claimed((1, 2, 3)).promise("n1", "n2", "n3").open(3) == []
    assert claimed((1, 2, 3)).promise("n1", "n2", "n3").open(2) == []
    assert len(claimed((1, 2, 3)).promise("n1", "n2", "n3").open(1)) == 1


def test_an_era_does_not_begin_with_an_invented_state() -> None:
    told = claimed((1, 1, 1)).promise("n1", "n2").open(2)
    assert told == ["the era of ballot 1.0 of g begins at 3, with a state that nobody had who promised it"]


def test_the_state_of_a_lost_disk_is_unknown() -> None:
    made = claimed((1, 2, 1)).promise("n1", "n2")
    made.machines["n2"].disk = Disk(77, initialised=False, flush_ms=50.0)
    assert made.open(2) == []


# -- what an operator excuses ----------------------------------------------------------------------------


def alone() -> Told:
    """A world in which entries are on the leader's disk only, and no loss is due."""
    checks = Checks(
        [],
        lacking=lambda of, mark, ballot, number: [NodeId("n2")],
        unfounded=lambda told, mark: ["not due"],
    )
    told = Told(checks)
    told.lead(0.0, "n1")
    era = Era(1, BALLOT)
    told.ledger("g").append((GroupRecord(era),))
    told.lead(1.0, "n1", ballot=BALLOT, state="lossy", era=era, alone=True)
    told.lead(1.0, "n1", ballot=BALLOT, era=era, alone=True)
    told.commit(2.0, held("d1", None))
    return told


def test_an_operator_needs_no_reason_and_no_quorum() -> None:
    assert alone().promises == []


def test_an_operator_excuses_one_ballot() -> None:
    told = alone()
    told.lead(3.0, "n2", ballot=Ballot(2, 1), era=Era(1, BALLOT))
    assert told.promises == [Promise.QUORUM]


def test_a_reason_without_evidence_excuses_nothing() -> None:
    told = Told(Checks([], unfounded=lambda told, mark: ["not due"]))
    told.lead(1.0, "n1", ballot=BALLOT, state="lossy", era=Era(1, BALLOT))
    assert told.promises == [Promise.INHERITANCE]


# -- in the swarm ----------------------------------------------------------------------------------------


def _always_lossy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every election lossy: no promise counts, and no member waits for whole members."""
    monkeypatch.setattr(Election, "_counts", lambda self, promise: False)
    monkeypatch.setattr(Election, "_is_prevoted", lambda self, whole, quorum: len(self._would) >= quorum)
    monkeypatch.setattr(Election, "_is_cold", lambda self, not_whole, step: True)


def _takes_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an election choose the promised state with the fewest entries."""

    def oldest(self: Election, promise: PromiseGiven, rank: int) -> tuple[int, int]:
        never = promise.accepted.round < 0
        return (-(10**6) if never else -promise.accepted.round, -promise.number)

    monkeypatch.setattr(Election, "_newness", oldest)
    whole = Election._enough

    def only_lossy(self: Election, step: Step, *, late: bool) -> dict[int, PromiseGiven] | None:
        among = whole(self, step, late=late)
        if among is not None and not self._lossy:
            newest = max(among, key=lambda rank: (among[rank].accepted, among[rank].number))
            return {newest: among[newest]}
        return among

    monkeypatch.setattr(Election, "_enough", only_lossy)


@pytest.mark.parametrize(
    ("break_it", "sentence", "seeds"),
    [(_always_lossy, "is lossy, but", (1, 2)), (_takes_the_oldest, "who promised it, has", range(1, 9))],
)
def test_a_loss_that_was_not_due_is_reported(
    break_it: Callable[[pytest.MonkeyPatch], None],
    sentence: str,
    seeds: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    break_it(monkeypatch)
    found = [violation for seed in seeds for violation in Swarm(seed).run().broken]
    inherited = [one.what for one in found if one.promise is Promise.INHERITANCE]
    assert any(sentence in what for what in inherited), found

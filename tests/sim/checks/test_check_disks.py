"""Tests of the check that committed entries are on a quorum of disks."""

from told_groups import NODES, config, held

from comesh.core.group.config import UNBOUND_STORE, Config, Seat
from comesh.core.ids import NodeId
from comesh.core.journal import Appended, ConfigKept, PowerLost, Tombstone
from comesh.core.stamps import OPENING, Ballot
from comesh.sim.checks.disks import Disks
from comesh.sim.disk import Disk
from comesh.sim.machine import Clock, Machine

GROUP = config()
MARK = GROUP.mark
ENTRY = (held("d1", None),)
SECOND = Ballot(1, 1)


def machines() -> dict[str, Machine]:
    """Returns machines that all have a seat in the config, with an empty state."""
    made = {
        name: Machine(
            name, NodeId(name), station, Clock(), Disk(10 + station, initialised=True, flush_ms=50.0)
        )
        for station, name in enumerate(NODES)
    }
    for machine in made.values():
        machine.disk.write(ConfigKept(GROUP, 0, 0, (), True), flush=True, now_ms=0.0)
    return made


def append(machine: Machine, number: int = 1, ballot: Ballot = OPENING) -> None:
    machine.disk.write(Appended(MARK, ballot, number, ENTRY), flush=False, now_ms=1000.0)


def lacking(
    of: dict[str, Machine], number: int = 1, ballot: Ballot = OPENING, group: Config = GROUP
) -> list[NodeId]:
    return Disks(of).lacking(group, MARK, ballot, number)


def test_an_entry_on_a_quorum_of_disks_is_committed() -> None:
    made = machines()
    append(made["n1"])
    assert lacking(made) == ["n2", "n3"]
    append(made["n3"])
    assert lacking(made) == []
    assert lacking(made, number=2) == ["n1", "n2", "n3"]


def test_an_entry_under_an_older_ballot_does_not_count() -> None:
    made = machines()
    append(made["n1"], ballot=SECOND)
    append(made["n2"], ballot=OPENING)
    assert lacking(made, ballot=SECOND) == ["n2", "n3"]
    append(made["n3"], ballot=Ballot(2, 2))
    assert lacking(made, ballot=SECOND) == []


def test_an_installed_member_has_the_first_state() -> None:
    made = machines()
    for name in ("n1", "n2"):
        made[name].disk.write(ConfigKept(GROUP, 0, 7, (), True), flush=True, now_ms=0.0)
    assert lacking(made, number=7) == []
    assert lacking(made, number=7, ballot=SECOND) == ["n1", "n2", "n3"]


def test_an_invited_member_does_not_have_the_first_state() -> None:
    made = machines()
    for machine in made.values():
        machine.disk.write(ConfigKept(GROUP, 0, 7, (), False), flush=True, now_ms=0.0)
    assert lacking(made, number=7) == ["n1", "n2", "n3"]


def test_a_member_that_lost_power_or_its_disk_may_have_had_the_entry() -> None:
    made = machines()
    append(made["n1"])
    made["n2"].disk.lost_power = True
    assert lacking(made) == []
    made["n2"].disk.lost_power = False
    assert lacking(made) == ["n2", "n3"]
    made["n2"].disk.write(PowerLost(), flush=True, now_ms=0.0)
    assert lacking(made) == []
    made = machines()
    append(made["n1"])
    made["n3"].disk = Disk(77, initialised=False, flush_ms=50.0)
    assert lacking(made) == []


def test_a_member_of_a_later_config_had_the_entry() -> None:
    made = machines()
    append(made["n1"])
    later = config(number=2)
    made["n2"].disk.write(Tombstone(later), flush=True, now_ms=0.0)
    assert lacking(made) == []
    made = machines()
    append(made["n1"])
    made["n3"].disk.write(ConfigKept(later, 12, 1, (), True), flush=True, now_ms=0.0)
    assert lacking(made) == []


def test_an_unbound_seat_belongs_to_no_disk() -> None:
    made = machines()
    for machine in made.values():
        append(machine)
    seats = (Seat(NodeId("n1"), 10), Seat(NodeId("n2"), UNBOUND_STORE), Seat(NodeId("n3"), UNBOUND_STORE))
    assert lacking(made, group=Config(GROUP.group, 1, 0, seats, 1000, 1)) == ["n2", "n3"]

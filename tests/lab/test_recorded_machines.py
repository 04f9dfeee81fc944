"""Tests of disks and lives reconstructed from recordings."""

from comesh.core.group.config import Config, Seat
from comesh.core.ids import GroupId, NodeId
from comesh.core.journal import Appended, ConfigKept
from comesh.core.stamps import OPENING
from comesh.lab.recorded import RecordedDisk, RecordedMachine, RecordedMachines
from comesh.runtime.recording import Began

CONFIG = Config(GroupId("c1"), 1, 0, (Seat(NodeId("n1"), 0),), 1000, 1)


def began(*, store: int = 7, power_lost: bool = False, at_byte: int | None = None) -> Began:
    return Began(1, store, True, power_lost, 1, at_byte)


def written(entries: int, flushed_byte: int) -> RecordedMachine:
    """A config, and entries of ten bytes each behind it."""
    machine = RecordedMachine("n1", NodeId("n1"))
    machine.begin(0.0, began())
    machine.disk.write(ConfigKept(CONFIG, 0, 0, (), True), 10)
    for number in range(1, entries + 1):
        machine.disk.write(Appended(CONFIG.mark, OPENING, number, ()), 10 + 10 * number)
    machine.disk.flush(flushed_byte)
    return machine


def number_of(disk: RecordedDisk) -> int:
    return disk.image().configs[CONFIG.mark].number


def test_a_killed_process_leaves_all_its_records() -> None:
    machine = written(5, flushed_byte=20)
    machine.end(began())
    assert machine.process is None
    assert (number_of(machine.disk), machine.disk.lost_power) == (5, False)
    machine.begin(1.0, began())
    assert machine.disk.image().configs[CONFIG.mark].whole


def test_a_power_loss_takes_unflushed_records() -> None:
    machine = written(5, flushed_byte=30)
    machine.end(began(power_lost=True))
    assert (number_of(machine.disk), machine.disk.lost_power) == (2, True)
    machine.begin(1.0, began(power_lost=True))
    assert not machine.disk.lost_power, "from now on the journal itself says so"
    assert not machine.disk.image().configs[CONFIG.mark].whole


def test_the_next_process_finds_the_remaining_records() -> None:
    machine = written(5, flushed_byte=30)
    machine.end(began(power_lost=True, at_byte=45))
    assert number_of(machine.disk) == 3


def test_an_unannounced_power_cut_counts_too() -> None:
    machine = written(5, flushed_byte=30)
    machine.end(None)
    machine.disk.cut(40)
    machine.begin(1.0, began())
    assert number_of(machine.disk) == 3
    machine.disk.write(Appended(CONFIG.mark, OPENING, 4, ()), 55)
    assert number_of(machine.disk) == 4


def test_another_store_is_another_disk() -> None:
    machine = written(5, flushed_byte=60)
    machine.end(began(store=8))
    assert machine.disk.image().configs == {}
    assert machine.disk.store == 8


def test_records_missing_at_the_end_make_a_disk_uncertain() -> None:
    longer = written(2, flushed_byte=30)
    longer.end(began(at_byte=50))
    longer.begin(1.0, began(at_byte=50))
    assert longer.disk.unsure
    assert longer.disk.lost_power, "it may have anything"
    stranger = RecordedMachine("n1", NodeId("n1"))
    stranger.disk.write(Appended(CONFIG.mark, OPENING, 1, ()), 10)
    assert stranger.disk.unsure


def test_lives_are_known_by_time() -> None:
    machines = RecordedMachines()
    machine = machines.of("n1", NodeId("n1"))
    assert not machines.runs_since(NodeId("n1"), 5.0)
    machine.begin(5.0, began())
    assert machines.runs_since(NodeId("n1"), 5.0)
    assert not machines.runs_since(NodeId("n1"), 4.0)
    twin = machines.of("n1 again", NodeId("n1"))
    twin.begin(2.0, began(store=9))
    assert machines.runs_since(NodeId("n1"), 4.0)
    twin.end(None)
    assert not machines.runs_since(NodeId("n1"), 4.0)
    assert machines["n2"].disk.initialised, "one that never ran is as the deployment began"

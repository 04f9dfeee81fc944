"""Disks: what survives a kill, a crash, a wipe and a copy; what happens when one is full."""

import pytest
from toys import LIFE, PING, TICK, Scripted, Toys, line, once

from comesh.core.draws import Draws
from comesh.core.effects import Effect, Persist, Send, SetTimer
from comesh.core.events import JournalFailed, JournalMended, MessageReceived, Started, TimerFired
from comesh.core.group.config import Config, Seat
from comesh.core.ids import GroupId, NodeId
from comesh.core.journal import ConfigKept, DocumentKept, Image, Tombstone
from comesh.core.node import AnyEvent
from comesh.sim.disk import Disk, store_of
from comesh.sim.world import World
from comesh.sim.world_settings import WorldSettings

N0, N1 = NodeId("n0"), NodeId("n1")
AT_ONCE = WorldSettings(start_spread_ms=0.0)
STRICT = WorldSettings(start_spread_ms=0.0, strict=True)
CONFIG = Config(GroupId("hall"), 1, 0, (Seat(N0, 0), Seat(N1, 0)), 1000, 1)


def document(version: int) -> DocumentKept:
    return DocumentKept(version, "text")


class Writer:
    """Writes document 1, 2, 3, ... one every 10 ms, unflushed but for one of them."""

    def __init__(self, flush_at: int = 0) -> None:
        self._flush_at = flush_at
        self._written = 0

    def __call__(self, event: AnyEvent, now_ms: float) -> list[Effect]:
        if isinstance(event, Started) and event.boot > 1:
            return []
        if not isinstance(event, Started | TimerFired):
            return []
        self._written += 1
        flush = self._written == self._flush_at
        return [Persist(document(self._written), flush=flush), SetTimer(TICK, 10.0)]


def last_start(life: Scripted) -> Started:
    return life.given(Started)[-1]


def journal(life: Scripted) -> Image:
    image = last_start(life).journal
    assert image is not None
    return image


def restarted(world: World, node: str) -> None:
    world.start(world.machines[node])


def test_the_first_disk_is_initialised_and_each_has_a_store_of_its_own() -> None:
    toys = Toys(line(3), {})
    toys.world.run_until(1.0)
    starts = [last_start(toys[f"n{number}"]) for number in range(3)]
    assert [(start.boot, start.initialised, start.power_lost) for start in starts] == [(1, True, False)] * 3
    assert len({start.store for start in starts}) == 3
    assert all(start.store > 0 for start in starts)
    assert starts[0].store == store_of(1, "n0", 1) == toys.world.machines["n0"].disk.store


@pytest.mark.parametrize("settings", [AT_ONCE, STRICT])
def test_after_a_kill_the_journal_is_whole(settings: WorldSettings) -> None:
    toys = Toys(line(1), {"n0": Writer()}, settings=settings)
    world = toys.world
    world.run_until(1005.0)
    world.kill(world.machines["n0"])
    assert world.radio.up[0], "its machine relays on"
    restarted(world, "n0")
    start = last_start(toys["n0"])
    assert (start.boot, start.power_lost, start.initialised) == (2, False, True)
    assert list(journal(toys["n0"]).documents) == list(range(1, 102))
    assert journal(toys["n0"]).boot == 2


@pytest.mark.parametrize("seed", range(8))
def test_power_loss_cuts_the_tail_that_is_younger_than_the_flush(seed: int) -> None:
    """At 1005 ms, of documents written at 0, 10, ... 1000, those up to 950 are durable."""
    toys = Toys(line(1), {"n0": Writer()}, seed=seed)
    world = toys.world
    world.run_until(1005.0)
    store = world.machines["n0"].disk.store
    world.crash(world.machines["n0"])
    restarted(world, "n0")
    start = last_start(toys["n0"])
    assert (start.boot, start.power_lost, start.store, start.initialised) == (2, True, store, True)
    kept = list(journal(toys["n0"]).documents)
    assert kept == list(range(1, len(kept) + 1)), "a first part"
    assert 96 <= len(kept) <= 101


def test_where_the_tail_is_cut_is_drawn() -> None:
    kept = set()
    for seed in range(40):
        disk = Disk(1, initialised=True, flush_ms=50.0)
        for version in range(1, 6):
            disk.write(document(version), flush=False, now_ms=float(version))
        assert disk.lose_power(6.0, Draws(seed)) == 5 - len(disk.image().documents)
        assert disk.unflushed == 0
        kept.add(len(disk.image().documents))
    assert kept == {0, 1, 2, 3, 4, 5}


def test_a_flush_makes_everything_before_it_durable() -> None:
    disk = Disk(1, initialised=True, flush_ms=50.0)
    disk.write(document(1), flush=False, now_ms=0.0)
    disk.write(document(2), flush=True, now_ms=1.0)
    disk.write(document(3), flush=False, now_ms=2.0)
    assert list(disk.image().documents) == [1, 2, 3]
    assert disk.unflushed == 1
    keeps_nothing = next(seed for seed in range(99) if Draws(seed).below(2) == 0)
    assert disk.lose_power(3.0, Draws(keeps_nothing)) == 1
    assert list(disk.image().documents) == [1, 2]


def test_records_older_than_flush_ms_are_durable() -> None:
    disk = Disk(1, initialised=True, flush_ms=50.0)
    disk.write(document(1), flush=False, now_ms=0.0)
    assert disk.lose_power(50.0, Draws(1)) == 0
    assert list(disk.image().documents) == [1]


def test_strict_durability_loses_all_unflushed_records_without_a_report() -> None:
    toys = Toys(line(1), {"n0": Writer(flush_at=30)}, settings=STRICT)
    world = toys.world
    world.run_until(1005.0)
    world.crash(world.machines["n0"])
    restarted(world, "n0")
    assert not last_start(toys["n0"]).power_lost
    assert list(journal(toys["n0"]).documents) == list(range(1, 31))


def test_lost_power_is_in_the_journal_until_a_leader_mends_it() -> None:
    kept = ConfigKept(CONFIG, 0, 0, (), True)
    toys = Toys(line(2), {"n0": lambda event, now_ms: [Persist(kept)] if boot(event) == 1 else []})
    world = toys.world
    machine = world.machines["n0"]
    world.run_until(1.0)
    for _ in range(2):
        world.kill(machine)
        world.start(machine)
    assert journal(toys["n0"]).configs[CONFIG.mark].whole
    world.crash(machine)
    world.crash(machine)
    world.start(machine)
    assert last_start(toys["n0"]).power_lost
    world.kill(machine)
    world.start(machine)
    assert not last_start(toys["n0"]).power_lost, "it was told once"
    assert not journal(toys["n0"]).configs[CONFIG.mark].whole, "but the journal knows"


def boot(event: AnyEvent) -> int | None:
    return event.boot if isinstance(event, Started) else None


def test_a_machine_that_never_ran_lost_nothing() -> None:
    toys = Toys(line(1), {})
    world = toys.world
    world.crash(world.machines["n0"])
    world.run_until(1.0)
    assert not last_start(toys["n0"]).power_lost


def test_a_wiped_disk_has_a_new_store() -> None:
    toys = Toys(line(1), {"n0": once(Persist(document(1)))})
    world = toys.world
    machine = world.machines["n0"]
    world.run_until(1.0)
    with pytest.raises(ValueError, match="n0 runs"):
        world.wipe(machine)
    first = machine.disk.store
    stores = [first]
    for _ in range(2):
        world.crash(machine)
        world.wipe(machine)
        world.start(machine)
        start = last_start(toys["n0"])
        assert (start.boot, start.initialised, start.power_lost) == (1, False, False)
        stores.append(start.store)
    assert len(set(stores)) == 3
    assert toys.lives["n0"][1].given(Started)[0].journal is not None
    assert journal(toys.lives["n0"][1]).documents == {}


def test_a_copied_card_is_a_strangers_journal() -> None:
    records = (ConfigKept(CONFIG, 0, 0, (), True), Tombstone(CONFIG), document(3))
    toys = Toys(line(3), {"n0": once(*(Persist(record, flush=False) for record in records))})
    world = toys.world
    world.run_until(1.0)
    original = world.machines["n0"].disk
    copy = world.copy_card(N0, station=2)
    assert copy is not None
    start = last_start(toys["n0"])
    assert (start.boot, start.initialised, start.power_lost) == (2, False, False)
    assert start.store == copy.disk.store != original.store
    image = journal(toys["n0"])
    assert (image.configs, image.tombstones, image.documents) == ({}, {"hall": CONFIG}, {3: "text"})
    assert list(original.image().configs) == [CONFIG.mark], "the original is as it was"


def test_the_process_owns_the_journal_that_it_is_given() -> None:
    toys = Toys(line(1), {"n0": once(Persist(document(1)))})
    world = toys.world
    world.run_until(1.0)
    restarted_journal = []
    for _ in range(2):
        world.kill(world.machines["n0"])
        restarted(world, "n0")
        restarted_journal.append(dict(journal(toys["n0"]).documents))
        journal(toys["n0"]).documents.clear()
    assert restarted_journal == [{1: "text"}] * 2


def full_disk_script(event: AnyEvent, now_ms: float) -> list[Effect]:
    """Returns a script that writes a record between two messages at each tick."""
    if isinstance(event, Started | TimerFired):
        record = Persist(document(round(now_ms)), flush=False)
        return [SetTimer(TICK, 100.0), Send(N1, LIFE, PING), record, Send(N1, LIFE, PING)]
    return []


def test_a_full_disk_stops_the_step_and_says_so_next() -> None:
    toys = Toys(line(2), {"n0": full_disk_script})
    world = toys.world
    machine = world.machines["n0"]
    world.engine.at(150.0, 0, world.set_full, machine, True)
    world.engine.at(350.0, 0, world.set_full, machine, False)
    world.run_until(399.0)
    kinds = [(round(at_ms), type(event)) for at_ms, event in toys["n0"].seen[1:]]
    assert kinds == [
        (100, TimerFired),
        (200, TimerFired),
        (200, JournalFailed),
        (300, TimerFired),
        (300, JournalFailed),
        (350, JournalMended),
    ]
    (mended,) = toys["n0"].given(JournalMended)
    assert list(mended.journal.documents) == [0, 100]
    assert len(toys["n1"].times(MessageReceived)) == 2 + 2 + 1 + 1, "what came after the record was not sent"
    world.run_until(450.0)
    assert list(machine.disk.image().documents) == [0, 100, 400]


def test_a_failed_write_is_reported_before_waiting_events() -> None:
    """On a slow machine a message waits when the write fails, and a record is written before it is mended."""
    toys = Toys(line(2), {"n0": full_disk_script, "n1": once(Send(N0, LIFE, PING))})
    world = toys.world
    machine = world.machines["n0"]
    machine.step_ms = 30.0
    machine.disk.full = True
    world.run_until(80.0)
    assert [type(event) for _, event in toys["n0"].seen] == [Started, JournalFailed, MessageReceived]
    world.run_until(140.0)
    assert toys["n0"].times(TimerFired) == [130.0]
    world.set_full(machine, False)
    world.run_until(200.0)
    (mended,) = toys["n0"].given(JournalMended)
    assert list(mended.journal.documents) == [130], "the step that was under way has written"


def test_a_process_starts_from_a_full_disk_and_loses_waiting_events_when_it_dies() -> None:
    toys = Toys(line(2), {"n0": full_disk_script})
    world = toys.world
    machine = world.machines["n0"]
    machine.disk.full = True
    world.run_until(10.0)
    world.kill(machine)
    world.start(machine)
    world.kill(machine)
    world.set_full(machine, False)
    world.run_until(500.0)
    assert [type(event) for _, event in toys["n0"].seen] == [Started]
    world.start(machine)
    assert last_start(toys["n0"]).boot == 3

"""The host performs effects in their order, around a disk that may be slow, full or broken."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from comesh.core.effects import (
    Effect,
    MemberChanged,
    Observe,
    Persist,
    ReadDevice,
    Send,
    SetTimer,
    Stop,
)
from comesh.core.events import AnnouncementPosted, JournalFailed, JournalMended, Timer, TimerFired
from comesh.core.ids import DeviceId, Incarnation, NodeId
from comesh.core.journal import BootRaised, Image, JournalRecord
from comesh.core.messages import WIRE_VERSION, Datagram, Gossip, GossipItems, encode
from comesh.runtime.host import DeviceEffect, Host
from comesh.runtime.transport import Rest, no_rest

LIFE = Incarnation(1, 1)
PEER = NodeId("n2")
NEWS = Gossip(GossipItems())


class DiskError(Exception):
    pass


class Wire:
    """A transport that writes down what it is given."""

    def __init__(self, done: list[str]) -> None:
        self._done = done
        self._pending = False
        self.left: list[list[str]] = []
        """What had been done each time that something left."""
        self.counters: Counter[str] = Counter()

    async def open(self, deliver: Callable[[NodeId, bytes], None], rest: Rest = no_rest) -> None:
        pass

    async def close(self) -> None:
        pass

    def send(self, to: NodeId, message: bytes) -> None:
        self._done.append(f"send {to}")
        self._pending = True

    def flush(self) -> None:
        if self._pending:
            self.left.append(list(self._done))
        self._pending = False


class Everything:
    """Node, journal, devices and clock in one, which writes down what happened in order."""

    def __init__(self, *, fast: bool = True) -> None:
        self.id = NodeId("n1")
        self.deployment = 1
        self.script: list[list[Effect]] = []
        self.events: list[object] = []
        self.done: list[str] = []
        self.flush_is_fast = fast
        self.may_flush = threading.Event()
        self.broken = False
        self.compaction_is_due = False
        self.may_compact = threading.Event()
        self.threads: list[str] = []
        self.image = Image()
        self.stopped = ""
        self.wire = Wire(self.done)
        self.host = Host(
            self,
            journal=self,
            transport=self.wire,
            devices=self,
            clock=self,
            flush_ms=5.0,
            on_stop=self.end,
            journal_error=DiskError,
        )

    def end(self, why: str) -> None:
        self.stopped = why

    def steps(self, events: Sequence[object], now_ms: float, wall_ms: float | None = None) -> list[Effect]:
        effects: list[Effect] = []
        for event in events:
            self.events.append(event)
            effects += self.script.pop(0) if self.script else []
        return effects

    # the journal

    def append(self, records: list[JournalRecord]) -> None:
        if self.broken:
            raise DiskError("no room")
        for record in records:
            assert isinstance(record, BootRaised)
            self.done.append(f"write {record.boot}")

    def flush(self) -> None:
        if not self.flush_is_fast:
            assert self.may_flush.wait(5.0)
            self.may_flush.clear()
        if self.broken:
            raise DiskError("broken")
        self.done.append("flush")

    def retry(self) -> bool:
        return not self.broken

    def compact_if_due(self) -> None:
        if self.compaction_is_due:
            assert self.may_compact.wait(5.0)
            self.threads.append(threading.current_thread().name)
            self.compaction_is_due = False
            self.done.append("compact")

    def declare_strict(self, strict: bool) -> None:
        assert self.may_flush.wait(5.0)
        if self.broken:
            raise DiskError("broken")
        self.done.append("strict" if strict else "not strict")

    # devices, clock

    def perform(self, effect: DeviceEffect) -> None:
        self.done.append(f"device {effect.device}")

    def rest(self) -> None:
        pass

    def monotonic_ms(self) -> float:
        return asyncio.get_event_loop().time() * 1000

    def wall_ms(self) -> float:
        return 0.0

    def give(self, *effects: Effect) -> None:
        self.script.append(list(effects))
        self.host.give(AnnouncementPosted(key="k", version=1, value=b""))


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not happen")


def write(number: int, *, flush: bool = True) -> Persist:
    return Persist(BootRaised(number), flush)


def send(to: str = PEER) -> Send:
    return Send(NodeId(to), LIFE, NEWS)


def test_records_are_on_disk_before_anything_that_comes_after_them() -> None:
    async def play() -> None:
        all_ = Everything()
        all_.give(send("n0"), write(1), write(2), send(), ReadDevice(DeviceId("lamp"), 1))
        assert all_.done == ["send n0", "write 1", "write 2", "flush", "send n2", "device lamp"]
        all_.host.close()

    asyncio.run(play())


def test_what_comes_before_a_record_leaves_before_it_is_written() -> None:
    async def play() -> None:
        all_ = Everything()
        all_.give(send(), write(1), send())
        assert all_.wire.left == [["send n2"], ["send n2", "write 1", "flush", "send n2"]]
        all_.host.close()

    asyncio.run(play())


def test_what_need_not_be_flushed_is_soon_and_nothing_waits_for_it() -> None:
    async def play() -> None:
        all_ = Everything()
        all_.give(write(1, flush=False), send())
        assert all_.done == ["write 1", "send n2"]
        await until(lambda: "flush" in all_.done)
        all_.host.close()

    asyncio.run(play())


def test_a_slow_disk_holds_back_what_must_wait_and_the_core_goes_on() -> None:
    async def play() -> None:
        all_ = Everything(fast=False)
        all_.give(write(1), send("a"))
        all_.give(send("b"), write(2), send("c"))
        all_.give(write(3, flush=False), send("d"))
        assert all_.done == ["write 1"]
        assert len(all_.events) == 3
        all_.may_flush.set()
        await until(lambda: "write 3" in all_.done)
        assert all_.done == ["write 1", "flush", "send a", "send b", "write 2", "write 3"]
        all_.may_flush.set()
        await until(lambda: "send d" in all_.done)
        assert all_.done[6:] == ["flush", "send c", "send d"]
        all_.host.close()

    asyncio.run(play())


def test_a_record_that_cannot_be_written_ends_its_step() -> None:
    async def play() -> None:
        all_ = Everything()
        all_.broken = True
        all_.give(send("before"), write(1), send("after"))
        assert all_.done == ["send before"]
        assert isinstance(all_.events[-1], JournalFailed)
        assert "no room" in all_.host.journal_trouble
        all_.broken = False
        await until(lambda: isinstance(all_.events[-1], JournalMended))
        assert all_.host.journal_trouble == ""
        all_.host.close()

    asyncio.run(play())


def test_a_flush_that_fails_in_its_thread_ends_what_waited() -> None:
    async def play() -> None:
        all_ = Everything(fast=False)
        all_.give(write(1), send("after"))
        all_.broken = True
        all_.may_flush.set()
        await until(lambda: isinstance(all_.events[-1], JournalFailed))
        assert "send after" not in all_.done
        all_.host.close()

    asyncio.run(play())


def test_what_was_written_during_a_slow_flush_is_flushed_too() -> None:
    async def play() -> None:
        all_ = Everything(fast=False)
        all_.give(write(1, flush=False))
        await until(lambda: all_.host.at_rest is False)
        all_.give(write(2, flush=False))
        due_s = asyncio.get_running_loop().time() + 0.02
        await until(
            lambda: asyncio.get_running_loop().time() > due_s
        )  # its turn comes during the first flush
        all_.may_flush.set()
        await until(lambda: all_.done.count("flush") == 1)
        await until(lambda: all_.host.at_rest is False)
        all_.may_flush.set()
        await until(lambda: all_.done.count("flush") == 2)
        all_.host.close()

    asyncio.run(play())


@pytest.mark.parametrize("flush", [True, False])
def test_the_loop_goes_on_while_a_journal_that_has_grown_is_replaced(flush: bool) -> None:
    async def play() -> None:
        all_ = Everything()
        all_.compaction_is_due = True
        all_.give(write(1, flush=flush), send("a"))
        await until(lambda: all_.host.at_rest is False)
        all_.give(send("b"), write(2, flush=False), send("c"))
        assert len(all_.events) == 2, "the core goes on"
        assert all_.done == (["write 1"] if flush else ["write 1", "send a"]), "and nothing is written"
        all_.may_compact.set()
        await until(lambda: "send c" in all_.done)
        assert [one for one in all_.done if one != "flush"] == [
            "write 1",
            *(["compact", "send a"] if flush else ["send a", "compact"]),
            "send b",
            "write 2",
            "send c",
        ]
        assert all_.done.index("compact") < all_.done.index("flush")
        assert all_.threads == ["flush_0"]
        all_.host.close()

    asyncio.run(play())


def test_nothing_more_is_done_until_the_journal_says_how_the_process_works() -> None:
    async def play() -> None:
        all_ = Everything()
        all_.host.declare_strict(False)
        all_.give(write(1, flush=False), send())
        assert all_.done == []
        all_.may_flush.set()
        await until(lambda: "send n2" in all_.done)
        assert all_.done[:4] == ["not strict", "flush", "write 1", "send n2"]
        all_.host.close()

    asyncio.run(play())


def test_a_disk_that_did_not_take_how_the_process_works_is_told_when_it_is_mended() -> None:
    async def play() -> None:
        all_ = Everything()
        all_.broken = True
        all_.may_flush.set()
        all_.host.declare_strict(True)
        await until(lambda: isinstance(all_.events[-1] if all_.events else None, JournalFailed))
        all_.broken = False
        await until(lambda: "strict" in all_.done)
        assert isinstance(all_.events[-1], JournalMended)
        all_.host.close()

    asyncio.run(play())


def test_an_error_inside_ends_the_node_and_nothing_more_is_done() -> None:
    async def play() -> None:
        all_ = Everything()

        def fails(_: object) -> None:
            raise RuntimeError("a listener")

        all_.host.listeners.append(fails)
        all_.give(Observe(MemberChanged(PEER, "dead", LIFE, "")), send("after"))
        assert "a listener" in all_.stopped and all_.host.broke
        all_.give(send("later"))
        assert all_.done == []
        all_.host.close()

    asyncio.run(play())


def test_timers_fire_as_events_once_and_the_last_setting_counts() -> None:
    async def play() -> None:
        all_ = Everything()
        timer = Timer("group", "due", 1)
        all_.give(SetTimer(timer, 1.0), SetTimer(timer, 20.0), SetTimer(Timer("group", "due", 2), 5.0))
        await until(lambda: TimerFired(timer=timer) in all_.events)
        assert [event for event in all_.events if isinstance(event, TimerFired)] == [
            TimerFired(timer=Timer("group", "due", 2)),
            TimerFired(timer=timer),
        ]
        all_.host.close()

    asyncio.run(play())


def test_observations_are_told_in_their_place() -> None:
    async def play() -> None:
        all_ = Everything()
        all_.host.listeners.append(lambda told: all_.done.append(type(told).__name__))
        all_.give(send("a"), Observe(MemberChanged(PEER, "dead", LIFE, "")), send("b"), Stop("enough"))
        assert all_.done == ["send a", "MemberChanged", "send b"]
        assert all_.stopped == "enough"
        all_.host.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "an empty datagram"),
        (b"\x63rest", "another wire version"),
        (bytes([WIRE_VERSION]) + b"rest", "a message that cannot be read"),
    ],
)
def test_what_is_not_a_message_is_dropped_and_counted(data: bytes, why: str) -> None:
    async def play() -> None:
        all_ = Everything()
        all_.host.deliver(PEER, data)
        assert all_.events == []
        assert all_.host.counters == {f"dropped: {why}": 1}
        all_.host.deliver(PEER, encode(Datagram(LIFE, 1, NEWS)))
        all_.host.rest()
        assert len(all_.events) == 1
        all_.host.close()

    asyncio.run(play())

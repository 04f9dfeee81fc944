"""Performs what the core wants done, in order, on an event loop.

    host = Host(node, journal=..., transport=..., devices=..., clock=...)
    host.start(Started(...))
    host.give(event)        # whatever happens: a step, and its effects

Rules:
- one step at a time: what happens during a step waits for its end. Steps of messages that came together are
  performed together, in order, so that their records are written and flushed at once;
- what a step wants said before its first record leaves before that is written: others write meanwhile;
- a record is written before any later effect of its step. If it must be flushed, and that is slow here, it
  is flushed in a thread: the core goes on, and what it wants done waits, in order, until the disk has it. All
  records that wait by then are written and flushed at once: earlier than they must be, and so as safe;
- a journal that has grown is replaced by a snapshot in that thread. Nothing is written meanwhile: what the
  core wants done waits as for a flush;
- what need not be flushed at once is every flush_ms, and nothing waits for that;
- a record that cannot be written ends what its step wanted: JournalFailed is what the node gets next. Then
  the disk is tried now and then, and JournalMended says when it works again;
- an error inside ends the process: what the node believes and what it did would no longer be the same;
- observations are told (and recorded) in their place among the effects, before anything that comes after
  them is done. So recordings of many processes, merged by time, have causes before what they cause.
"""

import asyncio
import traceback
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from comesh.core.effects import (
    AcknowledgeEvent,
    CancelTimer,
    CommandDevice,
    Effect,
    Observation,
    Observe,
    Persist,
    ReadDevice,
    Send,
    SetTimer,
    Stop,
    Subscribe,
)
from comesh.core.events import JournalFailed, JournalMended, MessageReceived, Timer, TimerFired
from comesh.core.group_messages import InConfig
from comesh.core.ids import NodeId
from comesh.core.journal import Image, JournalRecord
from comesh.core.messages import WIRE_VERSION, Datagram, Doubled, WireError, decode, encode, wire_version
from comesh.core.node import AnyEvent, Node
from comesh.core.work_messages import DocumentAsked, DocumentGiven, GroupMessage
from comesh.runtime.timers import Timers
from comesh.runtime.transport import Transport

RETRY_DISK_MS: Final = 1000.0
MAX_WAITING: Final = 100_000
"""Effects that wait for the disk. A disk that takes so long is treated as one that cannot be written."""
_OF_GROUPS: Final = (InConfig, GroupMessage, DocumentAsked, DocumentGiven)
_RETRY: Final = Timer("host", "disk")
_FLUSH: Final = Timer("host", "flush")

DeviceEffect = ReadDevice | CommandDevice | Subscribe | AcknowledgeEvent
Told = Callable[[Observation], None]


class JournalLike(Protocol):
    """What the host needs of a journal."""

    @property
    def image(self) -> Image: ...

    @property
    def flush_is_fast(self) -> bool: ...

    @property
    def compaction_is_due(self) -> bool: ...

    def append(self, records: list[JournalRecord]) -> None: ...

    def flush(self) -> None: ...

    def declare_strict(self, strict: bool) -> None: ...

    def retry(self) -> bool: ...

    def compact_if_due(self) -> None: ...


class DevicesLike(Protocol):
    def perform(self, effect: DeviceEffect) -> None: ...

    def rest(self) -> None: ...


class ClockLike(Protocol):
    def monotonic_ms(self) -> float: ...

    def wall_ms(self) -> float: ...


class Host:
    def __init__(
        self,
        node: Node,
        *,
        journal: JournalLike,
        transport: Transport,
        devices: DevicesLike,
        clock: ClockLike,
        flush_ms: float,
        on_stop: Callable[[str], None],
        journal_error: type[Exception],
    ) -> None:
        self.node = node
        self.counters: Counter[str] = Counter()
        self.listeners: list[Told] = []
        self.wrote: list[Callable[[JournalRecord], None]] = []
        self.flushed: list[Callable[[], None]] = []
        self.broke = False
        """An error inside ended it."""
        self.journal_trouble = ""
        """Why nothing can be written; empty: it can."""
        self._journal = journal
        self._journal_error = journal_error
        self._transport = transport
        self._devices = devices
        self._clock = clock
        self._flush_ms = flush_ms
        self._on_stop = on_stop
        self._timers = Timers(clock.monotonic_ms, self._on_timer)
        self._inbox: deque[AnyEvent] = deque()
        self._stepping = False
        self._waiting: deque[Effect] = deque()
        self._flushing: asyncio.Future[None] | None = None
        self._flusher = ThreadPoolExecutor(1, "flush")
        """Of its own: whoever looks names up may wait for long."""
        self._blocked = False
        """Something waits for a flush that is under way, and nothing is written meanwhile."""
        self._strict: bool | None = None
        """What the journal is to say of this process, if it changed since its start."""
        self._again = False
        self._dirty = False
        self._ended = False

    # -- events ------------------------------------------------------------------------------------------

    def give(self, *events: AnyEvent) -> None:
        """Something happened; what is given at once happened together."""
        self._inbox += events
        if not self._stepping:
            self._drain()

    def deliver(self, sender: NodeId, data: bytes) -> None:
        """A message of the core came, from whom the transport authenticated; its step waits for `rest`."""
        try:
            datagram = decode(data)
        except WireError as wrong:
            self.counters[f"dropped: {_kind(data, wrong)}"] += 1
            return
        self._inbox.append(
            MessageReceived(
                sender=sender,
                incarnation=datagram.incarnation,
                deployment=datagram.deployment,
                message=datagram.message,
            )
        )

    def rest(self) -> None:
        """No more messages that came together."""
        if self._inbox and not self._stepping:
            self._drain()

    def close(self) -> None:
        """Nothing is done any more; a flush that is under way is let go."""
        self._ended = True
        self._flusher.shutdown(wait=False)
        self._timers.close()
        self._inbox.clear()
        self._waiting.clear()

    def _drain(self) -> None:
        self._stepping = True
        try:
            while self._inbox and not self._ended:
                events = list(self._inbox)
                self._inbox.clear()
                effects = self.node.steps(events, self._clock.monotonic_ms(), self._clock.wall_ms())
                if effects:
                    self._perform(effects)
        except Exception as wrong:
            self._break(wrong)
        finally:
            self._stepping = False
        self._devices.rest()
        self._transport.flush()

    def _break(self, wrong: Exception) -> None:
        """Half of a step was done: what the node believes and what it did are no longer the same. It ends,
        and begins again from its journal."""
        self._ended = self.broke = True
        where = "".join(traceback.format_exception(wrong))
        self._on_stop(f"an error inside, please report it: {where}")

    @property
    def at_rest(self) -> bool:
        """Nothing waits for the disk."""
        return not self._waiting and self._flushing is None

    def _on_timer(self, timer: Timer) -> None:
        if timer.part != "host":
            self.give(TimerFired(timer=timer))
        elif timer == _FLUSH:
            self._flush_batch()
        else:
            self._retry_disk()

    # -- effects -----------------------------------------------------------------------------------------

    def _perform(self, effects: list[Effect]) -> None:
        if not self._blocked:
            self._perform_now(effects)
            return
        for effect in effects:
            match effect:
                case SetTimer() | CancelTimer():
                    self._do(effect)
                case _:
                    self._waiting.append(effect)
        if len(self._waiting) > MAX_WAITING:
            self._fail(f"the disk is too slow: {MAX_WAITING} effects wait for it")

    def _perform_now(self, effects: list[Effect]) -> None:
        """Up to the first record, then all records, then the rest."""
        first = next((at for at, effect in enumerate(effects) if type(effect) is Persist), len(effects))
        for effect in effects[:first]:
            self._do(effect)
        if first == len(effects):
            return
        self._transport.flush()
        records = [effect for effect in effects[first:] if type(effect) is Persist]
        rest = [effect for effect in effects[first:] if type(effect) is not Persist]
        if not self._write(records):
            for effect in rest:  # other steps of the bundle need theirs, and the node will be told
                if isinstance(effect, SetTimer | CancelTimer):
                    self._do(effect)
            return
        if self._blocked:
            self._perform(rest)
        else:
            for effect in rest:
                self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Send():
                message = effect.message
                data = encode(Datagram(effect.incarnation, self.node.deployment, message))
                of_groups = isinstance(message, _OF_GROUPS)
                self.counters["bytes of groups" if of_groups else "bytes of membership"] += len(data)
                if type(message) is Doubled:  # for the older of two processes, of which the newer is heard
                    self._transport.send_to_all_of(effect.to, data)
                else:
                    self._transport.send(effect.to, data)
            case SetTimer():
                self._timers.set(effect.timer, effect.after_ms)
            case CancelTimer():
                self._timers.cancel(effect.timer)
            case Observe():
                for told in self.listeners:
                    told(effect.observation)
            case ReadDevice() | CommandDevice() | Subscribe() | AcknowledgeEvent():
                self._devices.perform(effect)
            case Stop():
                self._on_stop(effect.reason)
            case _:
                raise TypeError(f"an effect that nobody performs: {effect!r}")

    # -- the journal -------------------------------------------------------------------------------------

    def _write(self, effects: list[Persist]) -> bool:
        """Write records, and flush them or begin to; False: it failed, and the node will be told."""
        try:
            self._journal.append([effect.record for effect in effects])
            for told in self.wrote:
                for effect in effects:
                    told(effect.record)
            if not any(effect.flush for effect in effects):
                self._flush_later()
            elif (
                self._flushing is None and self._journal.flush_is_fast and not self._journal.compaction_is_due
            ):
                self._journal.flush()
                self._told_flushed()
            else:
                self._blocked = True
                self._flush_in_thread()
        except self._journal_error as wrong:
            self._fail(str(wrong))
            return False
        return True

    def _flush_later(self) -> None:
        if not self._dirty:
            self._dirty = True
            self._timers.set(_FLUSH, self._flush_ms)

    def _flush_batch(self) -> None:
        if not self._dirty or self.journal_trouble:
            return
        if self._flushing is not None:
            self._timers.set(_FLUSH, self._flush_ms)
            return
        try:
            if self._journal.compaction_is_due:
                self._blocked = True
                self._flush_in_thread()
            elif self._journal.flush_is_fast:
                self._journal.flush()
                self._told_flushed()
            else:
                self._flush_in_thread()
        except self._journal_error as wrong:
            self._fail(str(wrong))
            self._drain()

    def _told_flushed(self) -> None:
        self._dirty = False
        for told in self.flushed:
            told()

    def _flush_in_thread(self) -> None:
        """One flush at a time; a record that came during one needs the next."""
        if self._flushing is not None:
            self._again = True
            return
        self._again = self._dirty = False
        flush = self._flush_alone if self._blocked else self._journal.flush
        self._flushing = asyncio.get_running_loop().run_in_executor(self._flusher, flush)
        self._flushing.add_done_callback(self._on_flushed)

    def _flush_alone(self) -> None:
        """In the thread, while nothing is written: a snapshot too, if it is due."""
        if self._strict is not None:
            self._journal.declare_strict(self._strict)
        self._journal.compact_if_due()
        self._journal.flush()

    def declare_strict(self, strict: bool) -> None:
        """From now on all that is relied on is flushed, or (False) not any more. The journal says so before
        anything more is done; one that cannot be written, as soon as it can."""
        self._strict = strict
        if not self.journal_trouble:
            self._blocked = True
            self._flush_in_thread()

    def _on_flushed(self, done: "asyncio.Future[None]") -> None:
        self._flushing = None
        if self._ended or done.cancelled():
            return
        wrong = done.exception()
        if isinstance(wrong, self._journal_error):
            self._fail(str(wrong))
        elif isinstance(wrong, Exception):
            self._break(wrong)
            return
        elif self._again:
            self._flush_in_thread()
            return
        else:
            try:
                self._after_flush()
            except Exception as wrong_inside:
                self._break(wrong_inside)
                return
        self._drain()

    def _after_flush(self) -> None:
        for told in self.flushed:
            told()
        self._blocked = False
        self._go_on()

    def _go_on(self) -> None:
        """Write all records that waited, then do what may be done."""
        waiting = list(self._waiting)
        self._waiting.clear()
        if waiting:
            self._perform_now(waiting)

    def _fail(self, why: str) -> None:
        self.counters["journal failed"] += 1
        self._waiting.clear()
        self._blocked = self._dirty = self._again = False
        self.journal_trouble = why
        self._inbox.appendleft(JournalFailed(why=why))
        self._timers.set(_RETRY, RETRY_DISK_MS)

    def _retry_disk(self) -> None:
        if self._flushing is None and self._journal.retry():
            self.journal_trouble = ""
            if self._strict is not None:
                self.declare_strict(self._strict)
            self.give(JournalMended(journal=self._journal.image.copy()))
        else:
            self._timers.set(_RETRY, RETRY_DISK_MS)


def _kind(data: bytes, wrong: WireError) -> str:
    """What is wrong, in few words: counters have a bounded number of names."""
    if not data:
        return str(wrong)
    return "a message that cannot be read" if wire_version(data) == WIRE_VERSION else "another wire version"

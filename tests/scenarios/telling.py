"""Makes a transcript of what nodes do: one line per thing worth reading, in order of time.

Left out: membership, readings that nobody waits for, touches, acknowledgements (a commit says that there were
enough), the group `deployment`, and what is said again word for word between members. What leaders propose is
told in words with the Update that carries it; a commit names its number. A letter that is sent again says so.
"""

from collections.abc import Callable
from typing import Final

from entry_words import RunNames, config_name, entry_words
from message_words import body_words, work_words

from comesh.core.effects import (
    Answered,
    CommandDevice,
    Committed,
    DeviceChanged,
    Effect,
    LeaderChanged,
    Observation,
    Observe,
    Persist,
    RunTraced,
    Send,
    Stop,
)
from comesh.core.group_messages import (
    Acked,
    InConfig,
    Installed,
    Probe,
    Probed,
    Ready,
    Sync,
    Update,
    UpdateWithMessages,
)
from comesh.core.ids import NodeId
from comesh.core.journal import Appended, ConfigKept, JournalRecord, Promised, StateTaken, Tombstone, put_all
from comesh.core.plan import DEPLOYMENT
from comesh.core.records import Entry, HandoffRecord, Record
from comesh.core.traces import Dropped, Failed, Finished
from comesh.core.work_messages import (
    EventsSeen,
    Fire,
    GroupMessage,
    Ordered,
    Reading,
    Seen,
    Watch,
)
from comesh.drivers.virtual.devices import Acted
from comesh.queries.trace_text import text_of

_HIDDEN_BODIES: Final = (Acked, Probe, Probed)
_HIDDEN_WORK: Final = (Reading, Seen, Watch, EventsSeen)


class _Known:
    """What a leader has proposed so far, and in which words."""

    __slots__ = ("number", "records", "words")

    def __init__(self, number: int, records: dict[str, Record]) -> None:
        self.number = number
        self.records = records
        self.words: dict[int, list[str]] = {}


class _Joined:
    """A line that waits for others to join it: what several say or do alike in one instant is one line."""

    __slots__ = ("at_ms", "receivers", "subjects", "text", "verb")

    def __init__(self, at_ms: float, subject: str, verb: str, text: str, receiver: str = "") -> None:
        self.at_ms = at_ms
        self.subjects = [subject]
        self.verb = verb
        """Empty: it is a message."""
        self.text = text
        self.receivers = [receiver]

    def takes(self, other: "_Joined") -> bool:
        if (self.at_ms, self.verb, self.text) != (other.at_ms, other.verb, other.text):
            return False
        if self.receivers == other.receivers:
            self.subjects += other.subjects
        elif self.subjects == other.subjects:
            self.receivers += other.receivers
        else:
            return False
        return True

    def __str__(self) -> str:
        subjects = " ".join(self.subjects)
        if not self.verb:
            return f"{subjects} -> {' '.join(self.receivers)}  {self.text}"
        verb = self.verb if len(self.subjects) == 1 else _PLURAL[self.verb]
        return f"{subjects} {verb} {self.text}"


_PLURAL: Final = {"flushes": "flush", "writes": "write"}


def _check(mark: int) -> int:
    """What messages have of a mark."""
    return mark & 0xFFFF_FFFF


class Telling:
    """`lines` grows from `begin` on; what came before is only remembered, to tell changes."""

    def __init__(self, now_ms: Callable[[], float], arrives: Callable[[str, NodeId], bool]) -> None:
        self.lines: list[str] = []
        self.runs = RunNames()
        self.ended: list[str] = []
        self.journal = False
        """Tell every update that is written, and whether it was flushed."""
        self._now_ms = now_ms
        self._arrives = arrives
        self._began_ms: float | None = None
        self._known: dict[tuple[str, int], _Known] = {}
        """What a leader has proposed: by machine and config."""
        self._groups: dict[int, str] = {}
        """Configs by mark."""
        self._said: set[tuple[str, NodeId, str]] = set()
        self._pending: _Joined | None = None

    def begin(self) -> None:
        self._pending = None
        self._said.clear()
        self._began_ms = self._now_ms()

    def line(self, text: str, at_ms: float | None = None) -> None:
        self.end_line()
        self._write(text, self._now_ms() if at_ms is None else at_ms)

    def _write(self, text: str, at_ms: float) -> None:
        if self._began_ms is not None:
            self.lines.append(f"{at_ms - self._began_ms:6.0f}  {text}")

    def _join(self, line: _Joined) -> None:
        if self._pending is None or not self._pending.takes(line):
            self.end_line()
            self._pending = line

    def end_line(self) -> None:
        """Nothing joins the last line any more."""
        pending, self._pending = self._pending, None
        if pending is not None:
            self._write(str(pending), pending.at_ms)

    # -- what nodes do -----------------------------------------------------------------------------------

    def effect(self, machine: str, effect: Effect, *, lost: bool = False, held_ms: float = 0.0) -> None:
        match effect:
            case Send(message=InConfig() as message):
                self._in_config(machine, effect.to, message, lost)
            case Send(message=GroupMessage() as message):
                self._letter(machine, effect.to, message, lost, held_ms)
            case Persist():
                self._persist(machine, effect.record, effect.flush)
            case Observe():
                self._observation(machine, effect.observation)
            case CommandDevice():
                assert effect.origin is not None
                of = f"{self.runs(effect.origin.run)} step {effect.origin.step}"
                self.line(f"{machine} => {effect.device}  {effect.action} ({of})")
            case Stop():
                self.line(f"{machine} stops itself: {effect.reason}")
            case _:
                pass

    def _send(self, machine: str, to: NodeId, text: str, lost: bool) -> None:
        receiver = to if self._arrives(machine, to) and not lost else f"{to}(lost)"
        self._join(_Joined(self._now_ms(), machine, "", text, receiver))

    # -- inside a config ---------------------------------------------------------------------------------

    def _in_config(self, machine: str, to: NodeId, message: InConfig, lost: bool) -> None:
        body = message.body
        if message.group == DEPLOYMENT or isinstance(body, _HIDDEN_BODIES):
            return
        self._groups[message.check] = config_name(message.group, message.number)
        if isinstance(body, Update):
            if not body.entries:
                return
            text = self._update(machine, message, body)
        else:
            text = body_words(body)
        text = f"{config_name(message.group, message.number)}: {text}"
        # A ballot is opened again and again for who does not answer, each time at the number of then.
        key = f"Sync {message.check} {body.ballot}" if isinstance(body, Sync) else text
        if isinstance(body, Ready | Installed):
            key = f"{text} {body.successor}"
        if (machine, to, key) not in self._said:
            self._said.add((machine, to, key))
            self._send(machine, to, text, lost)
        if isinstance(body, UpdateWithMessages):
            for carried in body.messages:
                self._letter(machine, to, carried, lost, 0.0)

    def _update(self, machine: str, message: InConfig, update: Update) -> str:
        """Its entries, in words."""
        last = update.first + len(update.entries) - 1
        numbers = f"{update.first}" if last == update.first else f"{update.first}-{last}"
        words: list[str] = []
        for number, entry in enumerate(update.entries, start=update.first):
            words += self._proposal(machine, message.check, number, entry)
        return f"Update {numbers}: {'; '.join(words) or 'what is sensed'}"

    def _proposal(self, machine: str, check: int, number: int, entry: Entry) -> list[str]:
        """What an entry of this leader changes, as it was when it first sent it."""
        known = self._known.get((machine, check))
        if known is None:
            return entry_words({}, entry, self.runs)
        if number == known.number + 1:
            known.words[number] = entry_words(known.records, entry, self.runs)
            put_all(known.records, entry)
            known.number = number
        return known.words.get(number, ["an older entry"])

    # -- between groups ----------------------------------------------------------------------------------

    def _letter(self, machine: str, to: NodeId, message: GroupMessage, lost: bool, held_ms: float) -> None:
        body = message.body
        if DEPLOYMENT in (message.to, message.sender) or isinstance(body, _HIDDEN_WORK):
            return
        if isinstance(body, Ordered) and body.run is not None:
            return
        sender = message.sender or ("a person" if isinstance(body, Fire) else "a node")
        text = f"{sender} to {message.to or 'who asked'}: {work_words(body, self.runs)}"
        if (machine, to, text) in self._said:
            text += " (again)"
        self._said.add((machine, to, text))
        if held_ms:
            text += f" (held up for {held_ms:.0f} ms)"
        self._send(machine, to, text, lost)

    # -- journals, observations, devices -----------------------------------------------------------------

    def _persist(self, machine: str, record: JournalRecord, flush: bool) -> None:
        def act(what: str) -> None:
            self._join(_Joined(self._now_ms(), machine, "flushes" if flush else "writes", what))

        match record:
            case Promised() if flush and _check(record.mark) in self._groups:
                act(f"a promise of {self._groups[_check(record.mark)]} to {record.ballot}")
            case ConfigKept() if record.config.group != DEPLOYMENT:
                name = config_name(record.config.group, record.config.number)
                self._groups[record.config.address.check] = name
                what = f"{name} at {record.number}" if record.installed else f"the base for {name}"
                self._join(_Joined(self._now_ms(), machine, "flushes", what))
            case Tombstone() if record.newest.group != DEPLOYMENT:
                newest = config_name(record.newest.group, record.newest.number)
                act(f"the tombstone: now it is {newest}")
            case Appended() if _check(record.mark) in self._groups:
                if isinstance(record.entry[0], HandoffRecord):
                    name = self._groups[_check(record.mark)]
                    act(f"the handoff entry of {name}, {record.number}")
                elif self.journal:
                    act(f"{self._groups[_check(record.mark)]} {record.number}")
            case StateTaken() if self.journal and _check(record.mark) in self._groups:
                act(f"the state of {self._groups[_check(record.mark)]} at {record.number}")
            case _:
                pass

    def _observation(self, machine: str, observation: Observation) -> None:
        match observation:
            case Committed() if observation.group != DEPLOYMENT:
                name = config_name(observation.group, observation.config.number)
                self.line(f"{machine} commits {name} {observation.number}")
            case LeaderChanged() if observation.group != DEPLOYMENT:
                self._leader(machine, observation)
            case DeviceChanged():
                self.line(f"{machine} finds {observation.device} {observation.status} ({observation.why})")
            case Answered(run=None):
                self.line(f"{machine} tells the person: {observation.request}: {observation.why_not}")
            case RunTraced(trace=Finished() | Failed() | Dropped() as trace):
                self.ended.append(f"{self.runs(observation.run)} {text_of(trace)}")
            case _:
                pass

    def _leader(self, machine: str, told: LeaderChanged) -> None:
        name = config_name(told.group, told.config.number)
        records = {record.key: record for record in told.records}
        self._known[machine, told.config.address.check] = _Known(told.number, records)
        self._groups[told.config.address.check] = name
        why = f" ({told.why})" if told.why else ""
        self.line(f"{machine} is {told.state}: {name} at {told.number}, ballot {told.ballot}{why}")

    def acted(self, act: Acted) -> None:
        self.end_line()
        done = f"refuses: {act.refused}" if act.refused is not None else "acts"
        command = act.command
        assert command.origin is not None
        of = f"{self.runs(command.origin.run)} step {command.origin.step}, sent by {command.by}"
        self._write(f"{act.device} {done}: {command.action} ({of})", act.at_ms)

"""Long messages, in fragments: the sender's side and the receiver's side, for one peer. No sockets, no clock.

The sender keeps at most a window of fragments on the way. The receiver reports every few fragments, and that
it stalled when nothing came for a while, with what is missing; missing fragments are sent again. A sender
that hears nothing begins again where the last report left it. Both give up after some tries: nothing is kept
for ever, and no more than the bounds below.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from comesh.runtime.transport.frames import (
    MAX_MISSING,
    PART_BYTES,
    Fragment,
    Report,
    State,
    encode_forgot,
    encode_fragment,
)
from comesh.runtime.transport.settings import TransportSettings

MAX_OUTGOING_BYTES: Final = 16_777_216
"""Maximum bytes of long messages to one peer that are not confirmed yet."""
MAX_OUTGOING: Final = 1_024
MAX_INCOMING_BYTES: Final = 8_388_608
"""Maximum bytes of incomplete messages from one peer."""
MAX_INCOMING: Final = 32
MAX_INCOMING_BYTES_OF_ALL: Final = 67_108_864
"""Maximum bytes of incomplete messages from all peers."""
MAX_FINISHED: Final = 256
"""Completed messages of one peer that are remembered: a late fragment does not begin them anew."""
REPORT_EVERY: Final = 16
"""Fragments."""
MAX_WAIT_MS: Final = 1_000.0


class _Sending:
    __slots__ = ("content", "count", "heard_ms", "next_index", "reported", "tries")

    def __init__(self, content: bytes, now_ms: float) -> None:
        self.content = content
        self.count = -(-len(content) // PART_BYTES)
        self.next_index = 0
        self.reported = 0
        self.heard_ms = now_ms
        self.tries = 0

    def fragment(self, number: int, index: int) -> bytes:
        part = self.content[index * PART_BYTES : (index + 1) * PART_BYTES]
        return encode_fragment(number, index, self.count, part)


class Outgoing:
    """Long messages to one peer, oldest first."""

    def __init__(self, settings: TransportSettings, first_number: int) -> None:
        self._settings = settings
        self._next_number = first_number
        self._sendings: OrderedDict[int, _Sending] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._sendings)

    def add(self, content: bytes, now_ms: float) -> bool:
        """False if too much is on its way already."""
        if self._bytes + len(content) > MAX_OUTGOING_BYTES or len(self._sendings) >= MAX_OUTGOING:
            return False
        self._next_number = (self._next_number + 1) & 0xFFFF_FFFF_FFFF_FFFF
        self._sendings[self._next_number] = _Sending(content, now_ms)
        self._bytes += len(content)
        return True

    def due(self, now_ms: float) -> Iterator[bytes]:
        """Returns the fragments that the window allows now."""
        room = self._settings.window - sum(one.next_index - one.reported for one in self._sendings.values())
        for number, one in self._sendings.items():
            while room > 0 and one.next_index < one.count:
                if one.next_index == 0:
                    one.heard_ms = now_ms
                yield one.fragment(number, one.next_index)
                one.next_index += 1
                room -= 1
            if room <= 0:
                return

    def on_report(self, report: Report, now_ms: float) -> Iterator[bytes]:
        one = self._sendings.get(report.message)
        if one is None:
            if report.state is not State.DONE:
                yield encode_forgot(report.message)
            return
        if report.state is State.DONE:
            self._remove(report.message)
            return
        one.heard_ms = now_ms
        one.tries = 0
        one.reported = max(one.reported, min(report.next_index, one.next_index))
        if report.state is State.STALLED:
            one.next_index = one.reported
        for index in report.missing:
            if index < one.next_index:
                yield one.fragment(report.message, index)

    def on_tick(self, now_ms: float) -> int:
        """Begin again where nothing was heard. Returns how many messages were given up."""
        given_up: list[int] = []
        for number, one in self._sendings.items():
            wait_ms = min(self._settings.unheard_ms * 2**one.tries, MAX_WAIT_MS)
            if one.next_index == 0 or now_ms - one.heard_ms < wait_ms:
                continue
            one.tries += 1
            one.heard_ms = now_ms
            one.next_index = one.reported = min(one.reported, one.count - 1)
            if one.tries > self._settings.fragment_tries:
                given_up.append(number)
        for number in given_up:
            self._remove(number)
        return len(given_up)

    def wait(self, now_ms: float) -> int:
        """There is no session: the next one begins from the start. Returns how many got too old."""
        old: list[int] = []
        for number, one in self._sendings.items():
            if one.next_index:
                one.next_index = one.reported = 0
                one.heard_ms = now_ms
            elif now_ms - one.heard_ms > self._settings.waiting_ms:
                old.append(number)
        for number in old:
            self._remove(number)
        return len(old)

    def _remove(self, number: int) -> None:
        self._bytes -= len(self._sendings.pop(number).content)


class _Receiving:
    __slots__ = ("bytes", "came", "heard_ms", "next_index", "parts", "tries", "unreported")

    def __init__(self, count: int, now_ms: float) -> None:
        self.parts: list[bytes | None] = [None] * count
        self.came = 0
        self.bytes = 0
        self.next_index = 0
        self.unreported = 0
        self.heard_ms = now_ms
        self.tries = 0

    def missing(self) -> tuple[int, ...]:
        found: list[int] = []
        for index in range(self.next_index):
            if self.parts[index] is None:
                found.append(index)
                if len(found) == MAX_MISSING:
                    break
        return tuple(found)


class Memory:
    """Counts the bytes of all peers' incomplete messages."""

    def __init__(self, max_bytes: int = MAX_INCOMING_BYTES_OF_ALL) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0


class Incoming:
    """Incomplete messages of one peer."""

    def __init__(self, settings: TransportSettings, memory: Memory) -> None:
        self._settings = settings
        self._memory = memory
        self._receivings: OrderedDict[int, _Receiving] = OrderedDict()
        self._finished: OrderedDict[int, None] = OrderedDict()
        self._bytes = 0
        self.given_up = 0

    def __len__(self) -> int:
        return len(self._receivings)

    def on_fragment(self, fragment: Fragment, now_ms: float) -> tuple[bytes | None, Report | None]:
        """The whole message, if this was the last piece, and what to tell the sender."""
        number, index, count, part = fragment
        if number in self._finished:
            return None, Report(number, State.DONE, count)
        one = self._receivings.get(number)
        if one is None:
            one = self._receivings[number] = _Receiving(count, now_ms)
        if len(one.parts) != count or one.parts[index] is not None:
            return None, None
        if not self._make_room(number, len(part)):
            return None, None
        one.parts[index] = part
        one.came += 1
        one.bytes += len(part)
        self._bytes += len(part)
        self._memory.bytes += len(part)
        one.next_index = max(one.next_index, index + 1)
        one.heard_ms = now_ms
        one.tries = 0
        one.unreported += 1
        if one.came == count:
            self.forget(number)
            self._finished[number] = None
            if len(self._finished) > MAX_FINISHED:
                self._finished.popitem(last=False)
            return b"".join(part for part in one.parts if part is not None), Report(number, State.DONE, count)
        if one.unreported >= REPORT_EVERY:
            one.unreported = 0
            return None, Report(number, State.GOING, one.next_index)
        return None, None

    def on_tick(self, now_ms: float) -> Iterator[Report]:
        """Ask for what is missing where nothing came for a while."""
        for number, one in list(self._receivings.items()):
            if now_ms - one.heard_ms < min(self._settings.stalled_ms * 2**one.tries, MAX_WAIT_MS):
                continue
            one.tries += 1
            one.heard_ms = now_ms
            if one.tries > self._settings.fragment_tries:
                self.given_up += 1
                self.forget(number)
            else:
                yield Report(number, State.STALLED, one.next_index, one.missing())

    def forget(self, number: int) -> None:
        one = self._receivings.pop(number, None)
        if one is not None:
            self._bytes -= one.bytes
            self._memory.bytes -= one.bytes

    def _make_room(self, number: int, size: int) -> bool:
        """Drops the oldest other messages of this peer, for one more part of this one."""
        while (
            self._bytes + size > MAX_INCOMING_BYTES
            or len(self._receivings) > MAX_INCOMING
            or self._memory.bytes + size > self._memory.max_bytes
        ):
            oldest = next(iter(self._receivings))
            if oldest == number:
                oldest = next((other for other in self._receivings if other != number), number)
            self.given_up += 1
            self.forget(oldest)
            if oldest == number:
                return False
        return True

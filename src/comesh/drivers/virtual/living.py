"""One virtual device in real time: what `devices.py` says of it, performed by timers of an event loop.

Rules, as in the simulator:
- a read is answered after the device's latency, a command after that and the time that acting takes; a device
  that is silent hears nothing and answers nothing;
- commands to one that is late reach it so much later, and their answers are lost;
- an event is told again every REPEAT_MS until it is acknowledged, oldest first, one at a time. Tokens carry
  the life of the device, which a restart changes: an acknowledgement never means an event of another life;
- one that pushes tells its readings when they changed: at once if a person changed them, and otherwise
  within LOOK_MS, so that an answer to a command is not followed by the same in a report;
- what it was to do while its process was stopped, it does not do (`ages.py`);
- one that is gone answers at once that it is gone, has no events, and keeps its state for its return.

What it does is told to `record`, with times of the clock it was given. Its sources begin with its life.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from secrets import token_hex
from typing import Final

import msgspec

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId
from comesh.core.streams import stream
from comesh.core.values import Value
from comesh.drivers.ages import MAX_PAUSE_MS
from comesh.drivers.interface import DeviceCommand, Readings, Report
from comesh.drivers.virtual.devices import Acted, DeviceSpec, Pressed, Reply, Request, VirtualDevices
from comesh.drivers.virtual.faults import FINE, Fault
from comesh.drivers.virtual.sources import Constant

REPEAT_MS: Final = 1000.0
LOOK_MS: Final = 200.0
"""How often one that pushes looks whether its sources changed."""
MAX_WAITING: Final = 256
"""Requests that a device works on; further ones it does not hear, and counts."""

Answer = Callable[[Reply], None]
Record = Callable[[Acted | Pressed], None]


class LivingDevice:
    def __init__(
        self,
        device: DeviceId,
        spec: DeviceSpec,
        *,
        seed: int,
        now_ms: Callable[[], float],
        record: Record | None = None,
        pushes: bool = False,
    ) -> None:
        self.device = device
        self.life = token_hex(4)
        self.fault = FINE
        self.counters: Counter[str] = Counter()
        self.spec = spec
        self._devices = VirtualDevices({device: 0}, {device: spec}, seed)
        self._clock = now_ms
        self._born_ms = now_ms()
        self._record = record
        self._pushes = pushes
        self._changes_itself = any(not isinstance(source, Constant) for source in spec.sources.values())
        self._draws = stream(seed, f"presses {device}")
        self._report: Report | None = None
        self._pushed: Readings | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """Of the device's own doings, by name."""
        self._waiting: dict[int, asyncio.TimerHandle] = {}
        """Of requests, by a running number."""
        self._number = 0

    def open(self) -> None:
        if self.spec.event and self.spec.presses_ms is not None:
            self._press_later(self.spec.presses_ms, self._draws)

    def close(self) -> None:
        """What it was about to do, it does not do."""
        for handle in (*self._timers.values(), *self._waiting.values()):
            handle.cancel()
        self._timers.clear()
        self._waiting.clear()
        self._report = None

    # -- requests ----------------------------------------------------------------------------------------

    def ask(self, request: Request, answer: Answer) -> None:
        """Answers once, now or later; or never, if the device does not hear it."""
        call, command = request.call, request.command
        if self.fault.gone:
            answer(Reply(self.device, call, error=f"{self.device} is gone"))
        elif command is None:
            self._after(self._devices.read_ms(self.device), lambda: self._read(call, answer))
        elif self.fault.late_ms:
            self._after(self.fault.late_ms, lambda: self._begin(call, command, None))
        else:
            self._begin(call, command, answer)

    def read_now(self) -> Readings | None:
        """None: not at once."""
        if self.fault.gone or self._devices.read_ms(self.device) > 0:
            return None
        return self._devices.read(self.device, self._now_ms())

    def command_now(self, call: int, command: DeviceCommand) -> Reply | None:
        """None: not at once, and nothing was done."""
        if self.fault is not FINE or self.spec.latency_ms > 0:
            return None
        spec = self.spec.commands.get(command.action.command)
        if spec is not None and spec.takes_ms > 0:
            return None
        begun = self._devices.begin(self.device, command)
        return None if begun is None else self._act(call, command, begun[1], self._clock())

    def _read(self, call: int, answer: Answer) -> None:
        readings = self._devices.read(self.device, self._now_ms())
        if readings is not None:
            answer(Reply(self.device, call, readings))

    def _begin(self, call: int, command: DeviceCommand, answer: Answer | None) -> None:
        begun = self._devices.begin(self.device, command)
        if begun is None:
            return
        waits_ms, refused = begun
        began_ms = self._clock()

        def act() -> None:
            reply = self._act(call, command, refused, began_ms)
            if reply is not None and answer is not None:
                answer(reply)

        self._after(waits_ms, act)

    def _act(self, call: int, command: DeviceCommand, refused: str | None, began_ms: float) -> Reply | None:
        reply = self._devices.act(
            self.device, call, command, self._now_ms(), refused=refused, began_ms=began_ms
        )
        log = self._devices.log
        if log:
            acted = log.pop()
            if self._record is not None:
                self._record(msgspec.structs.replace(acted, at_ms=acted.at_ms + self._born_ms))
        if self._report is not None and self._pushes:
            self._look_later()
        return reply

    def _after(self, wait_ms: float, then: Callable[[], None]) -> None:
        if wait_ms <= 0:
            then()
            return
        if len(self._waiting) >= MAX_WAITING:
            self.counters["dropped: too many requests at once"] += 1
            return
        self._number += 1
        number = self._number
        due_ms = self._clock() + wait_ms

        def due() -> None:
            del self._waiting[number]
            if self._clock() - due_ms > MAX_PAUSE_MS:
                self.counters["dropped: the process was stopped"] += 1
            else:
                then()

        self._waiting[number] = asyncio.get_running_loop().call_later(wait_ms / 1000, due)

    # -- what people do to it ----------------------------------------------------------------------------

    def readings(self) -> Readings:
        """What is really so, whatever it answers."""
        return self._devices.readings(self.device, self._now_ms())

    def set_reading(self, reading: str, value: Value) -> None:
        """Somebody opens the door: it is so from now on. ValueError: it has no such reading."""
        self._check_reading(reading)
        self._devices.set_reading(self.device, reading, value)
        self._push()

    def set_fault(self, fault: Fault) -> None:
        for reading in fault.wrong:
            self._check_reading(reading)
        self._devices.set_down(self.device, fault.silent or fault.gone)
        self._devices.set_slow(self.device, fault.slow_ms)
        self._devices.set_late(self.device, fault.late_ms)
        for reading in self.fault.wrong:
            self._devices.set_wrong(self.device, reading, None)
        for reading, value in fault.wrong.items():
            self._devices.set_wrong(self.device, reading, value)
        self.fault = FINE if fault == FINE else fault
        self._tell()
        self._push()

    def press(self, values: dict[str, Value]) -> str | None:
        """An event; without values, what its readings show. Its token; None: it had no room for it, or is
        gone. ValueError: it is no event device, or has no such reading."""
        for reading in values:
            self._check_reading(reading)
        if self.fault.gone:
            return None
        kept = self._devices.press(self.device, values or self.readings(), self._now_ms())
        pressed = self._devices.events.pop()
        token = f"{self.life}.{pressed.token}"
        if self._record is not None:
            self._record(msgspec.structs.replace(pressed, at_ms=pressed.at_ms + self._born_ms, token=token))
        if kept and "tell" not in self._timers:
            self._tell()
        return token if kept else None

    def _check_reading(self, reading: str) -> None:
        if reading not in self.spec.sources:
            known = ", ".join(self.spec.sources) or "none"
            raise ValueError(f"{self.device} has no reading {reading!r}; its readings: {known}")

    def _press_later(self, between_ms: tuple[float, float], draws: Draws) -> None:
        def press() -> None:
            self.press({})
            self._press_later(between_ms, draws)

        self._set_timer("press", draws.between(*between_ms), press)

    # -- what it says by itself --------------------------------------------------------------------------

    def subscribe(self, report: Report) -> None:
        self._report = report
        self._tell()
        if self._pushes:
            self._look_later()

    def acknowledge(self, token: str) -> None:
        life, _, own = token.partition(".")
        if life != self.life or self._devices.is_down(self.device):
            return
        before = self._devices.next_event(self.device)
        self._devices.acknowledge(self.device, own)
        if before is not self._devices.next_event(self.device):
            self._tell()

    def _tell(self) -> None:
        """Tell the oldest event, and again later, as long as there is one and somebody to tell."""
        self._cancel_timer("tell")
        event = self._devices.next_event(self.device)
        if event is None or self._report is None:
            return
        self._set_timer("tell", REPEAT_MS, self._tell)
        if not self._devices.is_down(self.device):
            self._report(dict(event.values), f"{self.life}.{event.token}")

    def _look_later(self) -> None:
        if "look" not in self._timers:
            self._set_timer("look", LOOK_MS, self._look)

    def _look(self) -> None:
        self._timers.pop("look", None)
        self._push()
        if self._changes_itself and self._report is not None:
            self._look_later()

    def _push(self) -> None:
        if self._report is None or not self._pushes or self.spec.event:
            return
        readings = self._devices.read(self.device, self._now_ms())
        if readings is not None and readings != self._pushed:
            self._pushed = readings
            self._report(dict(readings), None)

    # -- time --------------------------------------------------------------------------------------------

    def _now_ms(self) -> float:
        return self._clock() - self._born_ms

    def _set_timer(self, name: str, after_ms: float, then: Callable[[], None]) -> None:
        self._cancel_timer(name)
        self._timers[name] = asyncio.get_running_loop().call_later(after_ms / 1000, then)

    def _cancel_timer(self, name: str) -> None:
        handle = self._timers.pop(name, None)
        if handle is not None:
            handle.cancel()

"""The world that nodes run in: it performs their effects in virtual time.

    event + time -> node.step() -> effects -> messages under way, timers, device calls -> events

Rules: a node is only ever touched through `step`; effects are performed in order, at the instant of the
step (or at its end, on a slow machine); a process that ended gets nothing more, whatever was under way
to it. What is sent is encoded for its real size; the receiver gets the object itself, or with
`through_wire` what the bytes decode to.

Addresses: every process sits at a station. Each keeps an address book from node to station, at first
the deployed one, then wherever the last message from that name came from, as a DTLS transport does that
follows its peers. So two processes from copies of one card take turns in being heard.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, assert_never

import msgspec

from comesh.core.effects import (
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
)
from comesh.core.events import LeaveAsked, MessageReceived, Started, Timer, TimerFired
from comesh.core.ids import DeviceId, NodeId
from comesh.core.journal import BootRaised, JournalRecord
from comesh.core.messages import Datagram, decode, encode
from comesh.core.node import AnyEvent
from comesh.sim.device_calls import DeviceCalls
from comesh.sim.devices import DeviceSpec, VirtualDevices
from comesh.sim.engine import Engine, Priority
from comesh.sim.machine import INBOX_EVENTS, Clock, Machine, PendingTimer, Process, Steppable, nonce_of
from comesh.sim.radio import Radio, RadioSettings
from comesh.sim.streams import stream
from comesh.sim.topology import Topology
from comesh.sim.trace import Trace
from comesh.sim.traffic import Lost, Parcel

Observer = Callable[[float, NodeId, Observation], None]
NodeFactory = Callable[[NodeId], Steppable]

_ARRIVAL: Final = int(Priority.ARRIVAL)
_TIMER: Final = int(Priority.TIMER)


class WorldSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    radio: RadioSettings = RadioSettings()
    start_spread_ms: float = 1000.0
    """Nodes start at a uniform time within this; 0 starts them all at once, in order of name."""
    skew_ms: float = 0.0
    """Clocks are off by up to this, drawn per machine."""
    drift_ppm: float = 0.0
    """Clocks gain or lose up to this, drawn per machine."""
    deployment: int = 1
    """The deployment version that every datagram carries."""
    through_wire: bool = False
    """Deliver what the bytes decode to instead of the object that was sent."""


_DEFAULTS = WorldSettings()


class LifeChange(StrEnum):
    STARTED = "started"
    CRASHED = "crashed"
    STOPPED = "stopped"


class Life(msgspec.Struct, frozen=True):
    """A process began or ended; why is what it said when it stopped by itself."""

    at_ms: float
    machine: str
    change: LifeChange
    why: str = ""


class World:
    """Machines at stations, joined by a radio. `run_until` moves time; everything else is asked of it."""

    def __init__(
        self,
        topology: Topology,
        make_node: NodeFactory,
        *,
        seed: int = 0,
        settings: WorldSettings = _DEFAULTS,
        devices: Mapping[DeviceId, DeviceSpec] | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.topology = topology
        self.settings = settings
        self.engine = Engine()
        self.radio = Radio(topology, settings.radio, seed)
        self.traffic = self.radio.traffic
        self.devices = VirtualDevices(topology.devices, devices or {}, seed)
        self.device_calls = DeviceCalls(self.engine, self.radio, topology, self.devices, self.give)
        self.observers: list[Observer] = []
        self.lives: list[Life] = []
        """What began and ended, in order of time: what observers' claims are judged by."""
        self.machines: dict[str, Machine] = {}
        self.trace = trace
        self._make_node = make_node
        self._seed = seed
        self._copy_draws = stream(seed, "copies")
        self._clock_draws = stream(seed, "clocks")
        self._processes: dict[tuple[int, NodeId], Process] = {}
        self._kinds: dict[type, int] = {}
        start_draws = stream(seed, "starts")
        for node_id, station in sorted(topology.nodes.items()):
            machine = self.add_machine(node_id, node_id, station)
            starts_ms = start_draws.between(0.0, settings.start_spread_ms)
            self.engine.at(starts_ms, Priority.FAULT, self.start, machine)

    @property
    def now_ms(self) -> float:
        return self.engine.now_ms

    def run_until(self, end_ms: float) -> None:
        self.engine.run_until(end_ms)

    # Machines and their processes

    def add_machine(self, name: str, node_id: NodeId, station: int, *, boots: int = 0) -> Machine:
        """A machine that is off; its clock is drawn."""
        settings = self.settings
        skew_ms = self._clock_draws.between(-settings.skew_ms, settings.skew_ms)
        drift_ppm = self._clock_draws.between(-settings.drift_ppm, settings.drift_ppm)
        machine = Machine(name, node_id, station, Clock(skew_ms, drift_ppm), boots)
        self.machines[name] = machine
        return machine

    def start(self, machine: Machine) -> None:
        """Start a process, unless one runs; its station is up from then on."""
        if machine.process is not None:
            return
        self.radio.set_up(machine.station, True)
        machine.boots += 1
        machine.starts += 1
        machine.paused_until_ms = 0.0
        process = machine.process = Process(machine, self._make_node(machine.node_id))
        self._processes[machine.station, machine.node_id] = process
        self.lives.append(Life(self.now_ms, machine.name, LifeChange.STARTED))
        nonce = nonce_of(self._seed, machine.name, machine.starts)
        self.give(process, Started(boot=machine.boots, nonce=nonce))

    def crash(self, machine: Machine) -> None:
        """The machine goes dark; its station too, unless another process runs there."""
        self._end(machine, LifeChange.CRASHED, "")
        if not any(station == machine.station for station, _ in self._processes):
            self.radio.set_up(machine.station, False)

    def copy_card(self, node_id: NodeId, station: int | None = None) -> Machine | None:
        """Start a second process of a node at another station, from a copy of its disk.

        One machine of a node per station: where there is one already, nothing happens.
        """
        same = [machine for machine in self.machines.values() if machine.node_id == node_id]
        taken = {machine.station for machine in same}
        free = [other for other in range(self.radio.routes.stations) if other not in taken]
        if not free or station in taken:
            return None
        if station is None:
            station = self._copy_draws.choice(free)
        boots = self.machines[node_id].boots
        copy = self.add_machine(f"{node_id}.copy{len(same)}", node_id, station, boots=boots)
        self.start(copy)
        return copy

    def runs(self, node_id: NodeId) -> bool:
        """Whether any process of that node runs, wherever."""
        original = self.machines[node_id]
        if original.process is not None or len(self.machines) == len(self.topology.nodes):
            return original.process is not None
        return any(m.process is not None for m in self.machines.values() if m.node_id == node_id)

    def has_machine(self, station: int) -> bool:
        """Whether any machine, dark or not, stands there."""
        return any(machine.station == station for machine in self.machines.values())

    def _end(self, machine: Machine, change: LifeChange, why: str) -> None:
        """The process, if one runs, is no more: nothing pending of it happens."""
        process = machine.process
        if process is None:
            return
        machine.process = None
        self.lives.append(Life(self.now_ms, machine.name, change, why))
        del self._processes[machine.station, machine.node_id]
        for pending in process.timers.values():
            if pending.number is not None:
                self.engine.cancel(pending.number)
        process.timers.clear()
        process.inbox.clear()

    def ask_to_leave(self, machine: Machine) -> None:
        if machine.process is not None:
            self.give(machine.process, LeaveAsked())

    def pause(self, machine: Machine, for_ms: float) -> None:
        """The process stands still; what comes meanwhile it gets afterwards."""
        until_ms = self.now_ms + for_ms
        if until_ms > machine.paused_until_ms:
            machine.paused_until_ms = until_ms
            self.engine.at(until_ms, Priority.ARRIVAL, self._wake, machine)

    def set_drift(self, machine: Machine, drift_ppm: float) -> None:
        """Pending timers have the same time left on the machine's clock, so another one outside."""
        before = machine.clock.rate
        machine.clock.drift(self.now_ms, drift_ppm)
        process = machine.process
        if process is None:
            return
        for timer, pending in list(process.timers.items()):
            if pending.number is not None:
                self._set_timer(process, timer, (pending.due_ms - self.now_ms) * before)

    # Events to nodes

    def give(self, process: Process, event: AnyEvent) -> None:
        """Step the process now, or when it can."""
        if process.busy or process.inbox or process.machine.paused_until_ms > self.engine.now_ms:
            process.inbox.append((event, None))
        else:
            self._step(process, event)

    def _step(self, process: Process, event: AnyEvent) -> None:
        machine = process.machine
        now_ms = self.engine.now_ms
        if self.trace is not None:
            self.trace.record(now_ms, machine.name, event)
        effects = process.node.step(event, machine.clock.read(now_ms))
        if machine.step_ms:
            process.busy = True
            self.engine.at(now_ms + machine.step_ms, Priority.ARRIVAL, self._finish_step, process, effects)
        else:
            self._perform(process, effects)

    def _finish_step(self, process: Process, effects: list[Effect]) -> None:
        process.busy = False
        if process.machine.process is process:
            self._perform(process, effects)
            self._wake(process.machine)

    def _wake(self, machine: Machine) -> None:
        """Let a process have what waited, as far as it may."""
        process = machine.process
        while process is not None and process.inbox and not process.busy:
            if machine.paused_until_ms > self.now_ms:
                return
            event, pending = process.inbox.popleft()
            if isinstance(event, TimerFired):
                if process.timers.get(event.timer) is not pending:
                    continue
                del process.timers[event.timer]
            self._step(process, event)
            process = machine.process

    def _timer_due(self, process: Process, timer: Timer) -> None:
        if process.busy or process.inbox or process.machine.paused_until_ms > self.engine.now_ms:
            pending = process.timers[timer]
            pending.number = None
            process.inbox.append((TimerFired(timer=timer), pending))
        else:
            del process.timers[timer]
            self._step(process, TimerFired(timer=timer))

    def _deliver(self, parcel: Parcel, to: NodeId, event: MessageReceived) -> None:
        """A message reached the station it was addressed to."""
        station = parcel.destination
        process = self._processes.get((station, to))
        if process is None:
            up = self.radio.up[station]
            self.traffic.lost(parcel, Lost.NOBODY_THERE if up else Lost.STATION_DOWN)
            return
        if len(process.inbox) >= INBOX_EVENTS:
            self.traffic.lost(parcel, Lost.INBOX_FULL)
            return
        source = parcel.source
        if source != station:
            self.traffic.received(parcel)
        if self.topology.nodes[event.sender] != source:
            process.addresses[event.sender] = source
        elif process.addresses:
            process.addresses.pop(event.sender, None)
        self.give(process, event)

    # Effects of nodes

    def _perform(self, process: Process, effects: list[Effect]) -> None:
        machine = process.machine
        for effect in effects:
            match effect:
                case Send():
                    self._send(process, effect)
                case SetTimer():
                    self._set_timer(process, effect.timer, effect.after_ms)
                case CancelTimer():
                    pending = process.timers.pop(effect.timer, None)
                    if pending is not None and pending.number is not None:
                        self.engine.cancel(pending.number)
                case Observe():
                    for observer in self.observers:
                        observer(self.engine.now_ms, machine.node_id, effect.observation)
                case ReadDevice() | CommandDevice():
                    self.device_calls.ask(process, effect)
                case Stop():
                    self._end(machine, LifeChange.STOPPED, effect.reason)
                    return
                case Persist():
                    self._persist(machine, effect.record)
                case _:
                    raise TypeError(f"{machine.name} wants an effect that is not known here: {effect!r}")

    def _send(self, process: Process, effect: Send) -> None:
        machine = process.machine
        message = effect.message
        to = effect.to
        datagram = Datagram(machine.node_id, effect.incarnation, self.settings.deployment, message)
        data = encode(datagram)
        kind = self._kinds.get(type(message))
        if kind is None:
            kind = self._kinds[type(message)] = self.traffic.kind(type(message).__name__)
        station = process.addresses.get(to)
        if station is None:
            station = self.topology.nodes[to]
        parcel = Parcel(kind, machine.station, station, len(data))
        arrivals = self.radio.transmit(parcel)
        if not arrivals:
            return
        if self.settings.through_wire:
            datagram = decode(data)
        event = MessageReceived(
            sender=datagram.sender,
            incarnation=datagram.incarnation,
            deployment=datagram.deployment,
            message=datagram.message,
        )
        engine = self.engine
        for after_ms in arrivals:
            engine.at(engine.now_ms + after_ms, _ARRIVAL, self._deliver, parcel, to, event)

    def _persist(self, machine: Machine, record: JournalRecord) -> None:
        """A disk takes no time here; what it must not forget is what a restart reads."""
        match record:
            case BootRaised():
                machine.boots = max(machine.boots, record.boot)
            case _:
                assert_never(record)

    def _set_timer(self, process: Process, timer: Timer, after_ms: float) -> None:
        engine = self.engine
        due_ms = engine.now_ms + after_ms / process.machine.clock.rate
        number = engine.at(due_ms, _TIMER, self._timer_due, process, timer)
        pending = process.timers.get(timer)
        if pending is None:
            process.timers[timer] = PendingTimer(number, due_ms)
            return
        if pending.number is not None:
            engine.cancel(pending.number)
        process.timers[timer] = PendingTimer(number, due_ms)

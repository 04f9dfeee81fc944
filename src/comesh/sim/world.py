"""The world that nodes run in: it performs their effects in virtual time.

    event + time -> node.step() -> effects -> messages under way, timers, device calls -> events

Rules: a node is only ever touched through `step`; effects are performed in order, at the instant of the
step (or at its end, on a slow machine); a process that ended gets nothing more, whatever was under way
to it. A record that the disk does not take stops the step there: the rest of its effects do not happen, and
JournalFailed is what the process gets next. What is sent is encoded for its real size; the receiver gets the
object itself, or with `through_wire` what the bytes decode to.

Addresses: every process sits at a station. Each keeps an address book from node to station, at first
the deployed one, then wherever the last message from that name came from, as a DTLS transport does that
follows its peers. So two processes from copies of one card take turns in being heard.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

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
from comesh.core.events import (
    ApplyAsked,
    FireAsked,
    JournalFailed,
    JournalMended,
    LeaveAsked,
    MessageReceived,
    OrderAsked,
    Started,
    Timer,
    TimerFired,
)
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.journal import JournalRecord
from comesh.core.messages import Datagram, Message, decode, encode
from comesh.core.node import AnyEvent
from comesh.core.streams import stream
from comesh.core.work_messages import Wish
from comesh.drivers.virtual.devices import DeviceSpec
from comesh.sim.devices import WorldDevices
from comesh.sim.disk import Disk, store_of
from comesh.sim.engine import Engine, Priority
from comesh.sim.lives import Life, LifeChange
from comesh.sim.machine import (
    INBOX_EVENTS,
    Bundling,
    Clock,
    Machine,
    PendingTimer,
    Process,
    Steppable,
    nonce_of,
)
from comesh.sim.radio import Radio
from comesh.sim.topology import Topology
from comesh.sim.trace import Trace
from comesh.sim.traffic import Lost, Parcel
from comesh.sim.world_settings import WorldSettings

Observer = Callable[[float, NodeId, Observation], None]
Writer = Callable[[float, NodeId, JournalRecord], None]
Sender = Callable[[float, NodeId, NodeId, Message, int], None]
NodeFactory = Callable[[NodeId], Steppable]

_ARRIVAL: Final = int(Priority.ARRIVAL)
_TIMER: Final = int(Priority.TIMER)
_ALONE: Final = (TimerFired, JournalMended)
"""Events that a process that waited takes one by one."""
_DEFAULTS = WorldSettings()


class World:
    """Machines at stations, joined by a radio; `run_until` moves time."""

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
        self.devices = WorldDevices(
            self.engine, self.radio, topology, devices or {}, self.give, seed=seed, push=settings.push
        )
        self.observers: list[Observer] = []
        self.writers: list[Writer] = []
        """Called with what is written to journals."""
        self.senders: list[Sender] = []
        """Called with what is sent: when, by whom, to whom, the message, and its bytes."""
        self.lives: list[Life] = []
        """Lives that began and ended, in order of time: observers' claims are judged by them."""
        self.machines: dict[str, Machine] = {}
        self.node_of: dict[str, NodeId] = {}
        """The nodes of all machines there ever were, by name."""
        self.revoked: list[Machine] = []
        """Machines whose certificates were revoked; another machine has their name now."""
        self.trace = trace
        self._make_node = make_node
        self._seed = seed
        self._copy_draws = stream(seed, "copies")
        self._clock_draws = stream(seed, "clocks")
        self._power_draws = stream(seed, "tails")
        self._disks: Counter[str] = Counter()
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

    def add_machine(self, name: str, node_id: NodeId, station: int, *, disk: Disk | None = None) -> Machine:
        """Add a machine that is off; its clock is drawn. Without a disk it gets its first one."""
        settings = self.settings
        skew_ms = self._clock_draws.between(-settings.skew_ms, settings.skew_ms)
        drift_ppm = self._clock_draws.between(-settings.drift_ppm, settings.drift_ppm)
        if disk is None:
            disk = self._new_disk(name, initialised=True)
        machine = Machine(name, node_id, station, Clock(skew_ms, drift_ppm), disk)
        self.machines[name] = machine
        self.node_of[name] = node_id
        return machine

    def _new_store(self, name: str) -> int:
        self._disks[name] += 1
        return store_of(self._seed, name, self._disks[name])

    def _new_disk(self, name: str, *, initialised: bool) -> Disk:
        flush_ms = None if self.settings.strict else self.settings.flush_ms
        return Disk(self._new_store(name), initialised=initialised, flush_ms=flush_ms)

    def start(self, machine: Machine) -> None:
        """Start a process, unless one runs or the machine is absent; its station is up from then on."""
        if machine.process is not None or machine.away:
            return
        self.radio.set_up(machine.station, True)
        machine.starts += 1
        machine.paused_until_ms = 0.0
        process = machine.process = Process(machine, self._make_node(machine.node_id))
        self._processes[machine.station, machine.node_id] = process
        self.lives.append(Life(self.now_ms, machine.name, LifeChange.STARTED))
        disk = machine.disk
        started = Started(
            boot=disk.raise_boot(),
            nonce=nonce_of(self._seed, machine.name, machine.starts),
            store=disk.store,
            initialised=disk.initialised,
            power_lost=disk.take_lost_power(),
            journal=disk.image(),
        )
        self.give(process, started)

    def kill(self, machine: Machine) -> None:
        """End the process; the machine stays up, and its journal is whole."""
        self._end(machine, LifeChange.KILLED, "")

    def crash(self, machine: Machine) -> None:
        """Crash the machine: it loses power, and so does its station unless another process runs there."""
        if machine.away:
            return
        self._end(machine, LifeChange.CRASHED, "")
        machine.disk.lose_power(self.now_ms, self._power_draws)
        if not any(station == machine.station for station, _ in self._processes):
            self.radio.set_up(machine.station, False)

    def copy_card(self, node_id: NodeId, station: int | None = None) -> Machine | None:
        """Start a second process of a node at another station, from a copy of its disk.

        A journal knows the machine it was written on, so on another one it is a stranger's (`Disk.copied`):
        this is how two processes from one card never share a seat. One machine of a node per station: where
        there is one already, nothing happens.
        """
        same = [machine for machine in self.machines.values() if machine.node_id == node_id]
        taken = {machine.station for machine in same}
        free = [other for other in range(self.radio.routes.stations) if other not in taken]
        if not free or station in taken or self.machines[node_id].away:
            return None
        if station is None:
            station = self._copy_draws.choice(free)
        name = f"{node_id}.copy{len(same)}"
        disk = self.machines[node_id].disk.copied(self._new_store(name))
        copy = self.add_machine(name, node_id, station, disk=disk)
        self.start(copy)
        return copy

    def wipe(self, machine: Machine) -> None:
        """Put an empty disk into a machine on which no process runs."""
        if machine.process is not None:
            raise ValueError(f"{machine.name} runs: its disk cannot be taken out")
        machine.disk = self._new_disk(machine.name, initialised=False)

    def take_away(self, machine: Machine) -> None:
        """Remove the machine for good, unless `away` is lifted; everything else at its station relays on."""
        self.kill(machine)
        machine.away = True
        self.radio.set_up(machine.station, True)

    def revoke(self, node_id: NodeId) -> Machine:
        """Revoke the certificate of this node: messages from and to its machine stop, and those under way are
        refused. The process runs on, and reaches devices.

        Answers the machine that is to take its name and place: away yet, with an empty disk.
        """
        old = self.machines[node_id]
        old.revoked = True
        self.revoked.append(old)
        process = old.process
        if process is not None:
            del self._processes[old.station, node_id]
            kept = [one for one in process.inbox if not isinstance(one[0], MessageReceived)]
            process.inbox.clear()
            process.inbox.extend(kept)
        name = f"{node_id}.new{len(self.revoked)}"
        new = Machine(name, node_id, old.station, Clock(), self._new_disk(name, initialised=False))
        new.away = True
        self.machines[node_id] = new
        self.node_of[name] = node_id
        return new

    def set_full(self, machine: Machine, full: bool) -> None:
        """Fill the disk, so that it takes no more records; or free it, and report what it holds."""
        disk = machine.disk
        was_full, disk.full = disk.full, full
        if was_full and not full and machine.process is not None:
            self.give(machine.process, JournalMended(journal=disk.image()))

    def runs(self, node_id: NodeId) -> bool:
        """True if any process of that node runs, on any machine."""
        original = self.machines[node_id]
        if original.process is not None or len(self.machines) == len(self.topology.nodes):
            return original.process is not None
        return any(m.process is not None for m in self.machines.values() if m.node_id == node_id)

    def has_machine(self, station: int) -> bool:
        """True if any machine stands there, dark or not."""
        return any(machine.station == station for machine in self.machines.values())

    def _end(self, machine: Machine, change: LifeChange, why: str) -> None:
        """End the process, if one runs: nothing pending of it happens."""
        process = machine.process
        if process is None:
            return
        machine.process = None
        self.lives.append(Life(self.now_ms, machine.name, change, why))
        if not machine.revoked:
            del self._processes[machine.station, machine.node_id]
        for pending in process.timers.values():
            if pending.number is not None:
                self.engine.cancel(pending.number)
        process.timers.clear()
        process.inbox.clear()

    def ask_to_leave(self, machine: Machine) -> None:
        if machine.process is not None:
            self.give(machine.process, LeaveAsked())

    def fire(self, routine: RoutineId, request: str, node: NodeId) -> bool:
        """Ask a node to fire a routine; False if it does not run."""
        return self._asked(node, FireAsked(routine=routine, request=request))

    def apply(self, text: str, base: int, request: str, node: NodeId) -> bool:
        """Ask a node for this document as the version after base; False if it does not run."""
        return self._asked(node, ApplyAsked(base=base, text=text, request=request))

    def order(self, group: GroupId, wish: Wish, request: str, node: NodeId, by: str = "ann") -> bool:
        """Ask a node for something of a group, as a person would; False if it does not run."""
        return self._asked(node, OrderAsked(group=group, request=request, by=by, wish=wish))

    def _asked(self, name: str, event: FireAsked | ApplyAsked | OrderAsked) -> bool:
        process = self.machines[name].process
        if process is not None:
            self.give(process, event)
        return process is not None

    def pause(self, machine: Machine, for_ms: float) -> None:
        """Pause the process; events wait until it goes on."""
        until_ms = self.now_ms + for_ms
        if until_ms > machine.paused_until_ms:
            machine.paused_until_ms = until_ms
            self.engine.at(until_ms, Priority.ARRIVAL, self._wake, machine)

    def set_drift(self, machine: Machine, drift_ppm: float) -> None:
        """Set the drift. Pending timers have the same time left on the machine's clock, so another one
        outside."""
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
        """Step the process now, or as soon as it is able to."""
        if process.busy or process.inbox or process.machine.paused_until_ms > self.engine.now_ms:
            process.inbox.append((event, None))
        else:
            self._step(process, (event,))

    def _step(self, process: Process, events: Sequence[AnyEvent]) -> None:
        machine = process.machine
        now_ms = self.engine.now_ms
        if self.trace is not None:
            for event in events:
                self.trace.record(now_ms, machine.name, event)
        monotonic_ms, wall_ms = machine.clock.both_ms(now_ms)
        node = process.node
        if len(events) > 1 and isinstance(node, Bundling):
            effects = node.steps(events, monotonic_ms, wall_ms)
        else:
            effects = node.step(events[0], monotonic_ms, wall_ms)
        if machine.step_ms:
            process.busy = True
            self.engine.at(now_ms + machine.step_ms, Priority.ARRIVAL, self._finish_step, process, effects)
        elif effects:
            self._perform(process, effects)

    def _finish_step(self, process: Process, effects: list[Effect]) -> None:
        process.busy = False
        if process.machine.process is process:
            self._perform(process, effects)
            self._wake(process.machine)

    def _wake(self, machine: Machine) -> None:
        """Give a process its waiting events, as far as possible."""
        process = machine.process
        while process is not None and process.inbox and not process.busy:
            if machine.paused_until_ms > self.now_ms:
                return
            event, pending = process.inbox.popleft()
            if isinstance(event, TimerFired):
                if process.timers.get(event.timer) is not pending:
                    continue
                del process.timers[event.timer]
            elif isinstance(event, JournalMended):
                event = JournalMended(journal=machine.disk.image())  # an earlier event may have written
            events = [event]
            if not isinstance(event, _ALONE) and isinstance(process.node, Bundling):
                while process.inbox and not isinstance(process.inbox[0][0], _ALONE):
                    events.append(process.inbox.popleft()[0])
            self._step(process, events)
            process = machine.process

    def _timer_due(self, process: Process, timer: Timer) -> None:
        if process.busy or process.inbox or process.machine.paused_until_ms > self.engine.now_ms:
            pending = process.timers[timer]
            pending.number = None
            process.inbox.append((TimerFired(timer=timer), pending))
        else:
            del process.timers[timer]
            self._step(process, (TimerFired(timer=timer),))

    def _deliver(self, parcel: Parcel, to: NodeId, event: MessageReceived, by: Machine) -> None:
        """Deliver a message that reached the station it was addressed to."""
        station = parcel.destination
        process = None if by.revoked else self._processes.get((station, to))
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
        failed = False
        for effect in effects:
            match effect:
                case SetTimer():
                    self._set_timer(process, effect.timer, effect.after_ms)
                case CancelTimer():
                    self._cancel_timer(process, effect.timer)
                case _ if failed:
                    pass  # the step ended at the failed record; timers do no harm
                case Send():
                    self._send(process, effect)
                case Observe():
                    for observer in self.observers:
                        observer(self.engine.now_ms, machine.node_id, effect.observation)
                case ReadDevice() | CommandDevice():
                    self.devices.ask(process, effect)
                case Stop():
                    self._end(machine, LifeChange.STOPPED, effect.reason)
                    return
                case Persist():
                    failed = not self._persist(process, effect)
                case Subscribe() | AcknowledgeEvent():
                    self.devices.perform(process, effect)
                case _:
                    raise TypeError(f"{machine.name} wants an effect that is not known here: {effect!r}")

    def _send(self, process: Process, effect: Send) -> None:
        machine = process.machine
        if machine.revoked:
            return
        message = effect.message
        to = effect.to
        datagram = Datagram(effect.incarnation, process.node.deployment, message)
        data = encode(datagram)
        for sender in self.senders:
            sender(self.engine.now_ms, machine.node_id, to, message, len(data))
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
            sender=machine.node_id,
            incarnation=datagram.incarnation,
            deployment=datagram.deployment,
            message=datagram.message,
        )
        engine = self.engine
        for after_ms in arrivals:
            engine.at(engine.now_ms + after_ms, _ARRIVAL, self._deliver, parcel, to, event, machine)

    def _persist(self, process: Process, effect: Persist) -> bool:
        """Write a record. False: the disk is full, and the process learns so before any other waiting
        event."""
        disk = process.machine.disk
        if not disk.full:
            disk.write(effect.record, flush=effect.flush, now_ms=self.engine.now_ms)
            for writer in self.writers:
                writer(self.engine.now_ms, process.machine.node_id, effect.record)
            return True
        process.inbox.appendleft((JournalFailed(why="the disk is full"), None))
        self.engine.at(self.engine.now_ms, _ARRIVAL, self._wake, process.machine)
        return False

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

    def _cancel_timer(self, process: Process, timer: Timer) -> None:
        pending = process.timers.pop(timer, None)
        if pending is not None and pending.number is not None:
            self.engine.cancel(pending.number)

"""Carries a schedule of faults out on a world, each at its time, before all else of that instant.

Faults that change nothing (a crash of what is dark, a restart of what runs, a wrong answer of a device
without readings) are passed over, so that schedules that were drawn at random always run.
"""

import difflib
from collections.abc import Callable, Iterable
from typing import assert_never

import msgspec

from comesh.core.ids import NodeId
from comesh.sim.engine import Priority
from comesh.sim.faults import (
    EVERYWHERE,
    CopyCard,
    Crash,
    DeviceDown,
    DeviceLate,
    DeviceSlow,
    DeviceUp,
    DeviceWrong,
    DiskFull,
    Drift,
    Duplicate,
    Fault,
    Heal,
    Kill,
    Leave,
    Loss,
    Partition,
    Pause,
    PowerBack,
    PowerLoss,
    Press,
    Reorder,
    Restart,
    Schedule,
    ScheduleError,
    Skew,
    Slow,
)
from comesh.sim.machine import Machine
from comesh.sim.world import World

RadioFault = Partition | Heal | Loss | Duplicate | Reorder
DeviceFault = DeviceDown | DeviceUp | DeviceSlow | DeviceLate | DeviceWrong | Press
MachineFault = Crash | Kill | Restart | DiskFull | Leave | Pause | Slow | Skew | Drift


def inject(world: World, schedule: Schedule) -> None:
    """Have these faults happen; ScheduleError if one names what is not there."""
    for fault in schedule.faults:
        _check(world, fault)
    injector = _Injector(world)
    for fault in schedule.faults:
        world.engine.at(fault.at_ms, Priority.FAULT, injector.apply, fault)


class _Injector:
    def __init__(self, world: World) -> None:
        self._world = world
        self._calm = world.radio.settings
        self._latest: dict[object, Fault] = {}
        self._cuts = 0

    def apply(self, fault: Fault) -> None:
        world = self._world
        if world.trace is not None:
            world.trace.record(world.now_ms, "", fault)
        match fault:
            case Crash() | Kill() | Restart() | DiskFull() | Leave() | Pause() | Slow() | Skew() | Drift():
                machine = world.machines.get(fault.node)
                if machine is not None:
                    self._machine(machine, fault)
            case PowerLoss():
                for machine in self._machines_of(fault.domain):
                    world.crash(machine)
            case PowerBack():
                for machine in self._machines_of(fault.domain):
                    world.start(machine)
            case CopyCard():
                station = None if fault.station is None else world.topology.station(fault.station)
                world.copy_card(fault.node, station)
            case Partition() | Heal() | Loss() | Duplicate() | Reorder():
                self._radio(fault)
            case DeviceDown() | DeviceUp() | DeviceSlow() | DeviceLate() | DeviceWrong() | Press():
                self._device(fault)
            case _:
                assert_never(fault)

    def _machine(self, machine: Machine, fault: MachineFault) -> None:
        world = self._world
        match fault:
            case Crash():
                world.crash(machine)
            case Kill():
                world.kill(machine)
            case Restart():
                if machine.process is None:
                    if not (fault.keep_disk or machine.keeps_disk):
                        world.wipe(machine)
                    world.start(machine)
            case DiskFull():
                world.set_full(machine, True)
                self._end_later(("full", machine.name), fault, lambda: world.set_full(machine, False))
            case Leave():
                world.ask_to_leave(machine)
            case Pause():
                world.pause(machine, fault.for_ms)
            case Slow():
                machine.step_ms = fault.step_ms
                self._end_later(("slow", machine.name), fault, lambda: setattr(machine, "step_ms", 0.0))
            case Skew():
                machine.clock.skew(world.now_ms, fault.by_ms)
            case Drift():
                world.set_drift(machine, fault.ppm)
            case _:
                assert_never(fault)

    def _radio(self, fault: RadioFault) -> None:
        radio = self._world.radio
        match fault:
            case Partition():
                self._cuts += 1
                self._partition(fault, self._cuts)
                return
            case Heal():
                radio.heal()
                return
            case Loss():
                field = f"loss_per_{fault.per}"
                changed = {field: fault.rate}
            case Duplicate():
                changed = {"duplicate": fault.rate}
            case Reorder():
                changed = {"reorder": fault.rate, "reorder_ms": fault.up_to_ms}
            case _:
                assert_never(fault)
        restored = {name: getattr(self._calm, name) for name in changed}
        radio.settings = msgspec.structs.replace(radio.settings, **changed)

        def restore() -> None:
            radio.settings = msgspec.structs.replace(radio.settings, **restored)

        self._end_later(tuple(changed), fault, restore)

    def _partition(self, fault: Partition, number: int) -> None:
        world = self._world
        everywhere = set(range(world.radio.routes.stations))
        sources = set(map(world.topology.station, fault.sources))
        destinations = set(map(world.topology.station, fault.destinations)) or everywhere - sources
        world.radio.cut(2 * number, sources, destinations)
        if fault.both:
            world.radio.cut(2 * number + 1, destinations, sources)

        def heal() -> None:
            world.radio.heal(2 * number)
            world.radio.heal(2 * number + 1)

        self._end_later(("partition", number), fault, heal)

    def _device(self, fault: DeviceFault) -> None:
        world = self._world
        devices = world.devices
        match fault:
            case DeviceDown() | DeviceUp():
                up = isinstance(fault, DeviceUp)
                devices.set_down(fault.device, not up)
                station = world.topology.devices[fault.device]
                if not world.has_machine(station):
                    here = [device for device, other in world.topology.devices.items() if other == station]
                    world.radio.set_up(station, not all(map(devices.is_down, here)))
            case DeviceSlow():
                devices.set_slow(fault.device, fault.extra_ms)
                self._end_later(
                    ("device slow", fault.device), fault, lambda: devices.set_slow(fault.device, 0.0)
                )
            case DeviceLate():
                devices.set_late(fault.device, fault.by_ms)
                self._end_later(
                    ("device late", fault.device), fault, lambda: devices.set_late(fault.device, 0.0)
                )
            case DeviceWrong():
                self._wrong(fault)
            case Press():
                world.device_events.press(fault.device, fault.values)
            case _:
                assert_never(fault)

    def _wrong(self, fault: DeviceWrong) -> None:
        devices = self._world.devices
        names = devices.reading_names(fault.device)
        if not names:
            return
        reading = names[0] if fault.reading is None else fault.reading
        devices.set_wrong(fault.device, reading, fault.value)
        self._end_later(
            ("device wrong", fault.device, reading),
            fault,
            lambda: devices.set_wrong(fault.device, reading, None),
        )

    def _end_later(
        self,
        concern: object,
        fault: DiskFull
        | Slow
        | Partition
        | Loss
        | Duplicate
        | Reorder
        | DeviceSlow
        | DeviceLate
        | DeviceWrong,
        end: Callable[[], None],
    ) -> None:
        """Undo at the fault's end, unless a later fault set the same thing."""
        self._latest[concern] = fault
        if fault.for_ms is None:
            return

        def over() -> None:
            if self._latest.get(concern) is fault:
                end()

        world = self._world
        world.engine.at(world.now_ms + fault.for_ms, Priority.FAULT, over)

    def _machines_of(self, domain: str) -> list[Machine]:
        if domain == EVERYWHERE:
            return list(self._world.machines.values())
        return [self._world.machines[node] for node in self._world.topology.power_domains[domain]]


def _check(world: World, fault: Fault) -> None:
    topology = world.topology
    match fault:
        case CopyCard():
            _known(fault, "node", fault.node, topology.nodes)
            if fault.station is not None:
                _known(fault, "station", fault.station, [*topology.nodes, *topology.devices])
                if topology.station(fault.station) == topology.nodes[fault.node]:
                    told = f"{_told(fault)}: the copy needs another station than its own"
                    raise ScheduleError(told, fault=fault)
        case Crash() | Kill() | Restart() | DiskFull() | Leave() | Pause() | Slow() | Skew() | Drift():
            _known(fault, "node", NodeId(fault.node.split(".copy")[0]), topology.nodes)
        case PowerLoss() | PowerBack():
            _known(fault, "power domain", fault.domain, [EVERYWHERE, *topology.power_domains])
        case Partition():
            for name in fault.sources + fault.destinations:
                _known(fault, "station", name, [*topology.nodes, *topology.devices])
        case DeviceDown() | DeviceUp() | DeviceSlow() | DeviceLate() | DeviceWrong() | Press():
            _known(fault, "device", fault.device, topology.devices)
            _check_readings(world, fault)
        case Heal() | Loss() | Duplicate() | Reorder():
            pass
        case _:
            assert_never(fault)


def _check_readings(world: World, fault: DeviceFault) -> None:
    names = world.devices.reading_names(fault.device)
    if isinstance(fault, DeviceWrong) and fault.reading is not None:
        _known(fault, "reading", fault.reading, names)
    if isinstance(fault, Press):
        if not world.devices.spec(fault.device).event:
            raise ScheduleError(f"{_told(fault)}: {fault.device!r} is no event device", fault=fault)
        for reading in fault.values:
            _known(fault, "reading", reading, names)


def _known(fault: Fault, what: str, name: str, names: Iterable[str]) -> None:
    candidates = list(names)
    if name in candidates:
        return
    near = difflib.get_close_matches(name, candidates, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ScheduleError(f"{_told(fault)}: unknown {what} {name!r}{hint}", fault=fault)


def _told(fault: Fault) -> str:
    return f"{type(fault).__struct_config__.tag} at {fault.at_ms / 1000:g} s"

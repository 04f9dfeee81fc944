"""Tests of a document's devices in the simulator: readings, types and commands follow the document."""

from pathlib import Path

import msgspec
import pytest
from toys import Scripted, Shelf, silent

from comesh.core.actions import Action
from comesh.core.effects import Effect, ReadDevice, SetTimer
from comesh.core.events import DeviceAnswered, Started, Timer, TimerFired
from comesh.core.ids import DeviceId, NodeId
from comesh.core.node import AnyEvent
from comesh.core.values import Value
from comesh.deployment.load import load
from comesh.deployment.model import Deployment
from comesh.deployment.planning import plan_of
from comesh.deployment.values import Kind, ValueType
from comesh.drivers.interface import DeviceCommand
from comesh.drivers.virtual.devices import Acted
from comesh.drivers.virtual.document_devices import device_specs
from comesh.sim.topology import topology_of_plan
from comesh.sim.world import World
from comesh.sim.world_settings import WorldSettings

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
OFFICE = Path(__file__).parents[2] / "examples" / "office.yaml"
NOBODY = NodeId("nobody")


def document(file: Path) -> Deployment:
    deployment = load(file).deployment
    assert deployment is not None
    return deployment


def virtual(deployment: Deployment, seed: int = 1) -> Shelf:
    return Shelf(device_specs(deployment, seed), seed)


def exactly(type_: ValueType, value: Value) -> bool:
    """True if the value is exactly of that type, not merely accepted by it."""
    fitting = type_.fit(value)
    return fitting == value and type(fitting) is type(value)


class Reader:
    """Reads every device every five seconds."""

    def __init__(self, devices: list[DeviceId]) -> None:
        self._devices = devices
        self._calls = 0
        self.answers: list[DeviceAnswered] = []

    def __call__(self, event: AnyEvent, now_ms: float) -> list[Effect]:
        match event:
            case Started() | TimerFired():
                self._calls += 1
                reads = [ReadDevice(device, self._calls) for device in self._devices]
                return [SetTimer(Timer("toy", "read"), 5000.0), *reads]
            case DeviceAnswered():
                self.answers.append(event)
        return []


def test_devices_of_the_office_answer_within_the_ranges_of_the_document() -> None:
    deployment = document(OFFICE)
    topology = topology_of_plan(plan_of(deployment))
    reader = Reader(list(deployment.devices))
    first = min(topology.nodes)
    world = World(
        topology,
        lambda node: Scripted(reader if node == first else silent),
        seed=1,
        settings=WorldSettings(),
        devices=device_specs(deployment, 1),
    )
    world.run_until(600_000.0)
    assert len(reader.answers) >= 119 * len(deployment.devices)
    seen: dict[tuple[str, str], set[Value]] = {}
    for answer in reader.answers:
        named = deployment.devices[answer.device].readings
        assert answer.error is None
        assert list(answer.readings) == list(named)
        for name, value in answer.readings.items():
            assert exactly(named[name], value), (answer.device, name, value)
            seen.setdefault((answer.device, name), set()).add(value)
    assert all(len(values) > 1 for values in seen.values()), "the building lives"


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_command_has_the_effect_that_the_document_gives(file: Path) -> None:
    deployment = document(file)
    specs = device_specs(deployment, 1)
    for device_id, device in deployment.devices.items():
        for name, command in device.commands.items():
            commanded, untouched = Shelf({device_id: specs[device_id]}), Shelf({device_id: specs[device_id]})
            argument = None if command.argument is None else some_value(command.argument)
            took_ms, reply = commanded.command(device_id, DeviceCommand(Action(name, argument)), 0.0)
            assert took_ms == specs[device_id].latency_ms + command.takes_ms
            assert reply.error is None
            sets = {command.sets: argument} if isinstance(command.sets, str) else command.sets or {}
            (acted,) = commanded.log
            assert isinstance(acted, Acted)
            assert reply.readings == untouched.readings(device_id, took_ms) | sets == acted.readings


def some_value(type_: ValueType) -> Value:
    match type_.kind:
        case Kind.BOOL:
            return True
        case Kind.INT:
            return int(type_.range[1]) if type_.range else 7
        case Kind.FLOAT:
            return type_.range[1] if type_.range else 7.5
        case Kind.TEXT:
            return "a text"
        case Kind.CHOICE:
            return (type_.values or ("",))[-1]


@pytest.mark.parametrize(
    "type_",
    [
        {"type": "int", "range": [0.5, 1.5]},
        {"type": "int", "range": [-1e30, 1e30]},
        {"type": "int", "range": [-3, 2]},
        {"type": "float", "range": [-1.7e308, 1.7e308]},
        {"type": "float", "range": [1, 1.0000000000000002]},
        "int",
        "float",
        "text",
        ["low", "middle", "high"],
    ],
)
def test_odd_types_get_values_that_fit_and_can_be_sent(type_: object) -> None:
    device = {"readings": {"it": type_}, "on": "a"}
    deployment = Deployment.model_validate({"devices": {"odd": device}})
    devices = virtual(deployment)
    odd = DeviceId("odd")
    for second in range(3000):
        value = devices.readings(odd, 1000.0 * second)["it"]
        assert exactly(deployment.devices[odd].readings["it"], value), value
        msgspec.msgpack.encode(value)


def test_behaviour_follows_the_seed() -> None:
    deployment = document(OFFICE)
    assert device_specs(deployment, 1) == device_specs(deployment, 1) != device_specs(deployment, 2)


def test_a_toggle_command_inverts_its_reading() -> None:
    device = {"readings": {"lit": "bool"}, "on": "a", "commands": {"flip": {"toggles": "lit"}}}
    deployment = Deployment.model_validate({"devices": {"lamp": device}})
    assert device_specs(deployment, 1)[DeviceId("lamp")].commands["flip"].toggles == "lit"


def test_events_and_fences_come_from_the_document() -> None:
    devices = {
        "button": {"readings": {"press": ["short", "long"]}, "event": True, "place": [0, 0, 0]},
        "lamp": {"readings": {"lit": "bool"}, "driver": {"type": "mqtt", "topic": "t"}, "place": [0, 0, 0]},
        "fan": {"readings": {"lit": "bool"}, "driver": {"type": "mqtt", "topic": "t"}, "on": "a"},
    }
    specs = device_specs(Deployment.model_validate({"devices": devices}), 1)
    assert {name: (spec.event, spec.presses_ms is not None, spec.fences) for name, spec in specs.items()} == {
        "button": (True, True, True),
        "lamp": (False, False, False),
        "fan": (False, False, True),
    }

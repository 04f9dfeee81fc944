"""Tiny scripted nodes and small meshes for the tests of the simulator."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from comesh.core.effects import Effect, Send, SetTimer
from comesh.core.events import MessageReceived, Started, Timer, TimerFired
from comesh.core.ids import DeviceId, Incarnation, NodeId
from comesh.core.messages import Ack, Gossip, GossipItems, Message, Ping
from comesh.core.node import AnyEvent
from comesh.core.plan import Place
from comesh.core.values import Value
from comesh.drivers.interface import DeviceCommand
from comesh.drivers.virtual.devices import Acted, DeviceSpec, Pressed, Reply, Request, VirtualDevice
from comesh.sim.engine import Engine, EngineScheduler, Priority
from comesh.sim.topology import Topology
from comesh.sim.world import World
from comesh.sim.world_settings import WorldSettings

TICK = Timer("toy", "tick")
LIFE = Incarnation(boot=1, nonce=1)
PING = Ping(1, GossipItems())
GOSSIP = Gossip(GossipItems())

_Event = TypeVar("_Event")
Script = Callable[[AnyEvent, float], list[Effect]]


class Scripted:
    """A scripted node that records its events and the time of each by its own clock."""

    def __init__(self, script: Script, deployment: int = 1) -> None:
        self._script = script
        self.deployment = deployment
        self.seen: list[tuple[float, AnyEvent]] = []
        self.walls: list[float] = []
        """Times by the wall clock."""

    def step(self, event: AnyEvent, now_ms: float, wall_ms: float) -> list[Effect]:
        self.seen.append((now_ms, event))
        self.walls.append(wall_ms)
        return self._script(event, now_ms)

    def given(self, kind: type[_Event]) -> list[_Event]:
        return [event for _, event in self.seen if isinstance(event, kind)]

    def times(self, kind: type[AnyEvent]) -> list[float]:
        return [at_ms for at_ms, event in self.seen if isinstance(event, kind)]


def silent(event: AnyEvent, now_ms: float) -> list[Effect]:
    return []


def once(*effects: Effect) -> Script:
    """Returns a script with these effects at the start and none later."""
    return lambda event, now_ms: list(effects) if isinstance(event, Started) else []


def ticking(every_ms: float, *, to: NodeId | None = None, message: Message = PING) -> Script:
    """Returns a script with a repeated timer, and a message at each tick if there is a receiver."""

    def script(event: AnyEvent, now_ms: float) -> list[Effect]:
        effects: list[Effect] = []
        if isinstance(event, Started | TimerFired):
            effects.append(SetTimer(TICK, every_ms))
        if isinstance(event, TimerFired) and to is not None:
            effects.append(Send(to, LIFE, message))
        return effects

    return script


def acking(event: AnyEvent, now_ms: float) -> list[Effect]:
    """Returns a script that answers pings."""
    if isinstance(event, MessageReceived) and isinstance(event.message, Ping):
        return [Send(event.sender, LIFE, Ack(event.message.number, GossipItems()))]
    return []


def line(nodes: int, *, devices: int = 0) -> Topology:
    """n0 - n1 - ... and then d0 - d1 - ..., each hearing only its neighbours."""
    count = nodes + devices
    return Topology(
        name="line",
        places=tuple(Place(1000 * index, 0) for index in range(count)),
        reach_mm=1000,
        nodes={NodeId(f"n{index}"): index for index in range(nodes)},
        devices={DeviceId(f"d{index}"): nodes + index for index in range(devices)},
        relays=(True,) * count,
        power_domains={"west": (NodeId("n0"), NodeId("n1"))} if nodes > 1 else {},
    )


class Toys:
    """A world of scripted nodes that all start at time 0; those without a script are silent."""

    def __init__(
        self,
        topology: Topology,
        scripts: dict[str, Script],
        *,
        seed: int = 1,
        settings: WorldSettings | None = None,
        devices: dict[DeviceId, DeviceSpec] | None = None,
    ) -> None:
        self.lives: dict[str, list[Scripted]] = {}

        def make_node(node: NodeId) -> Scripted:
            made = Scripted(scripts.get(node, silent))
            self.lives.setdefault(node, []).append(made)
            return made

        self.world = World(
            topology,
            make_node,
            seed=seed,
            settings=settings or WorldSettings(start_spread_ms=0.0),
            devices=devices,
        )

    def __getitem__(self, node: str) -> Scripted:
        """Returns the latest life of a node."""
        return self.lives[node][-1]


class Shelf:
    """Virtual devices without a world, which a test can ask at any time."""

    def __init__(self, specs: Mapping[DeviceId, DeviceSpec], seed: int = 1) -> None:
        self._engine = Engine()
        scheduler = EngineScheduler(self._engine, Priority.ARRIVAL)
        self.log: list[Acted | Pressed] = []
        self.devices = {
            name: VirtualDevice(name, spec, scheduler, seed=seed, record=self.log.append)
            for name, spec in specs.items()
        }

    def readings(self, device: DeviceId, at_ms: float) -> dict[str, Value]:
        self._engine.now_ms = at_ms
        return self.devices[device].readings()

    def command(self, device: DeviceId, command: DeviceCommand, at_ms: float) -> tuple[float, Reply]:
        """Returns the time until the answer, and the answer."""
        self._engine.now_ms = at_ms
        answers: list[tuple[float, Reply]] = []

        def answer(reply: Reply) -> None:
            answers.append((self._engine.now_ms - at_ms, reply))

        self.devices[device].ask(Request(device, 1, command), answer)
        self._engine.run_until(at_ms + 86_400_000.0)
        (answered,) = answers
        return answered

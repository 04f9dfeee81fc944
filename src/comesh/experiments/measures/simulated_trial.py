"""One trial of the paper's 11-node deployment in simulation: the same document and the same readings.

Times are those of a radio with hops of 10 ms. Sizes are those of encoded messages, as real nodes count them
before bundling and encryption; to what nodes and devices say, which is bare in simulations, comes what the
driver of real virtual devices puts around it. What a node and a device at the same place say to each other
does not cross the radio, and is not counted. Hop by hop nothing is added.

What groups say is told apart here, where it can be seen: *monitoring* is devices and their readings on the
way to routines, *upkeep* what holds a leader's lease while nothing happens, *foreground* all that something
happened for: locks, commands, entries and their acknowledgements, elections, migration.
"""

from collections import Counter, defaultdict
from typing import Final

import msgspec

from comesh.core.actions import Action
from comesh.core.effects import CommandDevice, ReadDevice
from comesh.core.events import DeviceAnswered
from comesh.core.group.config import Address
from comesh.core.group_messages import Acked, InConfig, Update
from comesh.core.ids import DeviceId, NodeId
from comesh.core.membership import MembershipSettings
from comesh.core.messages import Message
from comesh.core.work_messages import DocumentAsked, DocumentGiven, GroupMessage, Reading, Seen, Watch
from comesh.deployment.load import load_bytes
from comesh.deployment.model import Deployment
from comesh.deployment.program import program_of
from comesh.drivers.interface import DeviceCommand
from comesh.drivers.virtual.devices import Reply, Request
from comesh.drivers.virtual.document_devices import device_specs
from comesh.drivers.virtual.sources import Constant
from comesh.drivers.virtual.wire import Answer, Ask, Back, Packet, encode
from comesh.experiments.measures.deployed_workload import PaperWorkload, make_workload
from comesh.experiments.measures.histories import Watched
from comesh.experiments.measures.trial import (
    DROPPED_S,
    Trial,
    Window,
    bandwidth_rows,
    delay_rows,
)
from comesh.experiments.stage import Row
from comesh.lab.shapes import REACH
from comesh.sim.building import Compiler
from comesh.sim.devices import command_bytes, read_bytes
from comesh.sim.group_watch import LiveGroups
from comesh.sim.simulation import Simulation
from comesh.sim.topology import topology_of_plan
from comesh.sim.world import World
from comesh.sim.world_settings import WorldSettings

NETWORK: Final = "simulated radio"
_READ: Final = Request(DeviceId("d00"), 1)
_COMMAND: Final = CommandDevice(_READ.device, 1, Action("set", True, expects={"on": True}))
_REPLY: Final = Reply(DeviceId("d00"), 1)
_LIFE: Final = "0" * 8


def _asked_bytes(command: DeviceCommand | None) -> int:
    request = Request(_READ.device, 1, command)
    return len(encode(Packet(1 << 61, 1 << 15, Ask(request, _LIFE, 0.5))))


AROUND_READ_BYTES: Final = _asked_bytes(None) - read_bytes(_READ.device)
AROUND_COMMAND_BYTES: Final = _asked_bytes(
    DeviceCommand(_COMMAND.action, None, NodeId("n00"), 0.5)
) - command_bytes(_COMMAND)
AROUND_ANSWER_BYTES: Final = len(
    encode(Back(1 << 61, 1 << 15, Answer(_LIFE, 1 << 15, _REPLY), _LIFE, 0.5))
) - len(msgspec.msgpack.encode(_REPLY))
"""What the driver puts around what is said, with numbers as long as they get in an hour."""
LOOK_S: Final = 1.0
MAX_LOOKS: Final = 60
DOWN_S: Final = 2.0
"""A node that was killed is started again so long after its groups have another leader."""
PARTS: Final = (
    "devices",
    "groups",
    "membership",
    "monitoring",
    "upkeep",
    "foreground",
    "hop by hop",
    "hop by hop, devices",
    "hop by hop, nodes",
)
_ASKING: Final = (ReadDevice.__name__, CommandDevice.__name__)
_ANSWER: Final = DeviceAnswered.__name__
_OF_GROUPS: Final = (InConfig, GroupMessage, DocumentAsked, DocumentGiven)
_MONITORING: Final = (Reading, Seen, Watch)


class Sizes:
    """Bytes that nodes send, by part and node."""

    def __init__(self, world: World) -> None:
        self.by_part: dict[str, Counter[NodeId]] = defaultdict(Counter)
        self._touches: set[tuple[Address, int]] = set()
        """Updates without entries: the config's mark, and when each was sent."""
        world.senders.append(self._note)

    def _note(self, _: float, by: NodeId, to: NodeId, message: Message, size_bytes: int) -> None:
        of_groups = isinstance(message, _OF_GROUPS)
        self.by_part["groups" if of_groups else "membership"][by] += size_bytes
        if of_groups:
            self.by_part[self._kind(message)][by] += size_bytes

    def _kind(self, message: Message) -> str:
        if isinstance(message, GroupMessage):
            return "monitoring" if isinstance(message.body, _MONITORING) else "foreground"
        if not isinstance(message, InConfig):
            return "foreground"
        body = message.body
        if type(body) is Update and not body.entries:
            self._touches.add((message.address, body.sent_ms))
            return "upkeep"
        is_answer = isinstance(body, Acked) and (message.address, body.sent_ms) in self._touches
        return "upkeep" if is_answer else "foreground"


def simulated_trial(trial: Trial) -> list[Row]:
    workload = make_workload(
        trial.shape,
        routines=trial.routines,
        seed=trial.seed,
        lasts_s=trial.lasts_s,
        settings=trial.settings,
    )
    deployment = load_bytes(workload.document.encode()).deployment
    assert deployment is not None
    simulation = _simulation(deployment, workload, trial.seed)
    world = simulation.world
    history, sizes = Watched(world), Sizes(world)
    groups = LiveGroups(world, program_of(deployment).plan)
    simulation.run(seconds=DROPPED_S)
    before = _counts(world, sizes)
    simulation.run(seconds=trial.seconds)
    after = _counts(world, sizes)
    for number in range(trial.kills):
        _kill(simulation, groups, number)
    window = Window(DROPPED_S * 1000, trial.lasts_s * 1000, world.now_ms)
    rows = [*_bandwidth(before, after, trial.seconds), *delay_rows(history.moments, window)]
    return [{**row, "network": NETWORK} for row in rows]


def _simulation(deployment: Deployment, workload: PaperWorkload, seed: int) -> Simulation:
    scripts = workload.scripts()
    program = program_of(deployment)
    return Simulation(
        topology_of_plan(program.plan, reach_mm=round(REACH * 1000)),
        seed=seed,
        settings=WorldSettings(start_spread_ms=0.0),
        membership=MembershipSettings(period_ms=deployment.settings.membership_period_ms),
        devices={
            name: msgspec.structs.replace(spec, sources={"on": Constant(False), "level": scripts[name]})
            for name, spec in device_specs(deployment, seed).items()
        },
        program=program,
        compile_text=Compiler(),
        joined=True,
    )


def _counts(world: World, sizes: Sizes) -> dict[str, Counter[NodeId]]:
    """Bytes so far, by part and node."""
    counts = {part: Counter(sizes.by_part[part]) for part in PARTS}
    for node, station in world.topology.nodes.items():
        traffic = world.traffic
        reads, commands = (traffic.total(station=station, kind=kind).sent for kind in _ASKING)
        answers = traffic.total(station=station, kind=_ANSWER).received
        answer_bytes = answers.size_bytes + answers.messages * AROUND_ANSWER_BYTES
        asked_bytes = reads.size_bytes + reads.messages * AROUND_READ_BYTES
        told_bytes = commands.size_bytes + commands.messages * AROUND_COMMAND_BYTES
        # Answers are of one kind, and about as long: those to commands are as many as commands.
        to_commands = answer_bytes * commands.messages / max(1, reads.messages + commands.messages)
        counts["devices"][node] = answer_bytes + asked_bytes + told_bytes
        counts["monitoring"][node] += round(answer_bytes - to_commands) + asked_bytes
        counts["foreground"][node] += round(to_commands) + told_bytes
        of_devices = sum(
            traffic.total(station=station, kind=kind).transmitted.size_bytes for kind in (*_ASKING, _ANSWER)
        )
        transmitted = traffic.total(station=station).transmitted.size_bytes
        counts["hop by hop"][node] = transmitted
        counts["hop by hop, devices"][node] = of_devices
        counts["hop by hop, nodes"][node] = transmitted - of_devices
    return counts


def _kill(simulation: Simulation, groups: LiveGroups, number: int) -> None:
    """The leader of a group, each time of the next one; until all is well again."""
    groups.look()
    chosen = sorted(group for group in groups.now if group != "deployment")
    victim = groups.now[chosen[number % len(chosen)]].leader
    assert victim is not None, "a calm mesh has groups that nobody serves"
    world = simulation.world
    world.kill(world.machines[victim])
    _until_served(simulation, groups)
    simulation.run(seconds=DOWN_S)
    world.start(world.machines[victim])
    _until_served(simulation, groups)


def _until_served(simulation: Simulation, groups: LiveGroups) -> None:
    for _ in range(MAX_LOOKS):
        simulation.run(seconds=LOOK_S)
        groups.look()
        if all(now.leader is not None for now in groups.now.values()):
            return
    raise TimeoutError(f"groups without a leader after {MAX_LOOKS * LOOK_S:.0f} s: {groups.now}")


def _bandwidth(
    before: dict[str, Counter[NodeId]], after: dict[str, Counter[NodeId]], seconds: float
) -> list[Row]:
    rates: dict[str, dict[str, float]] = {
        part: {node: (after[part][node] - before[part][node]) / seconds for node in after["devices"]}
        for part in PARTS
    }
    return bandwidth_rows(rates)

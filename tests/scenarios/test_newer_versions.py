"""A node that missed a deployment version hears of it from any message, not only from gossip: an announcement
does not outlive an outage of all nodes, and the version must."""

from msgspec.structs import replace
from staging import NODES, Stage, lights

from comesh.core.effects import Send
from comesh.core.events import MessageReceived
from comesh.core.messages import Gossip, GossipItems
from comesh.core.work_messages import DocumentAsked
from comesh.sim.fault_schedules import Schedule
from comesh.sim.operations import Operation, What
from comesh.sim.operations_case import draw
from comesh.sim.operations_swarm import OperationsSwarm
from comesh.sim.world_settings import WorldSettings

N1, N2 = NODES[:2]


def _asks(stage: Stage, *, version: int) -> list[tuple[str, DocumentAsked]]:
    """What n1 asks when n2, which works by that version, says something."""
    machine, other = stage.world.machines[N1], stage.world.machines[N2]
    assert machine.process is not None
    assert other.process is not None
    event = MessageReceived(
        sender=N2,
        incarnation=other.process.node.node.membership.incarnation,
        deployment=version,
        message=Gossip(GossipItems()),
    )
    now_ms = machine.clock.monotonic_ms(stage.world.now_ms)
    effects = machine.process.node.step(event, now_ms, now_ms)
    sent = [one for one in effects if isinstance(one, Send)]
    return [(one.to, one.message) for one in sent if isinstance(one.message, DocumentAsked)]


def test_who_hears_of_a_newer_version_asks_for_the_next_one() -> None:
    stage = Stage(lights("evening", "kettle"))
    assert _asks(stage, version=1) == []
    assert _asks(stage, version=3) == [(N2, DocumentAsked(2))]


def test_it_does_not_ask_again_at_once() -> None:
    stage = Stage(lights("evening", "kettle"))
    assert _asks(stage, version=2) != []
    assert _asks(stage, version=2) == []


# -- a version without a node ------------------------------------------------------------------------------


def test_who_was_away_when_it_was_removed_hears_of_it_and_ends() -> None:
    """Nobody speaks to it any more by then: it is told when it speaks."""
    drawn, topology, *_ = draw(2)
    gone = max(topology.nodes)
    leave = Operation(
        at_ms=12_000.0, what=What.LEAVE, node=min(topology.nodes), request="leave", by="ann", of=gone
    )
    calm = WorldSettings(start_spread_ms=0.0, strict=drawn.settings.strict)
    case = replace(drawn, faults=Schedule(), operations=(leave,), settings=calm)
    swarm = OperationsSwarm(2, case=case)
    world = swarm.world
    world.run_until(10_000.0)
    machine = world.machines[gone]
    world.kill(machine)
    world.run_until(40_000.0)
    living = {machine.node_id for machine in world.machines.values() if machine.process is not None}
    assert swarm.answers.done == {"leave try 1"}
    assert all(swarm._living(node)[1].versions.newest.version == 2 for node in living)
    world.start(machine)
    world.run_until(60_000.0)
    assert machine.process is None
    assert world.lives[-1].why == "removed from the deployment"

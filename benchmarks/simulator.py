"""How fast the simulator is: with toy nodes that only ping and answer, and with membership.

    python benchmarks/simulator.py [NODES] [SIMULATED_SECONDS]

The bar: 1,000 nodes with membership run at least five times faster than real time on one core; the exit code
is 1 if they do not. Toys ping a
peer drawn uniformly: the worst case, because nearly every message goes a way that none went before.
"""

import resource
import sys
import time

from comesh.core.draws import Draws
from comesh.core.effects import Effect, Send, SetTimer
from comesh.core.events import Event, MessageReceived, Started, Timer, TimerFired
from comesh.core.ids import Incarnation, NodeId
from comesh.core.messages import Ack, GossipItems, MemberState, MemberUpdate, Ping
from comesh.sim.simulation import Simulation
from comesh.sim.topology import SMART_SHARE, Shape, make_topology
from comesh.sim.world import World

BAR = 5.0
PERIOD = Timer("toy", "period")
ONE_LIFE = Incarnation(boot=1, nonce=1)
GOSSIP_ITEMS = GossipItems(
    members=tuple(MemberUpdate(NodeId(f"n{number:04}"), MemberState.ALIVE, ONE_LIFE) for number in range(6))
)


class Toy:
    """Pings one peer per second with six updates on board; acks pings."""

    deployment = 1

    def __init__(self, peers: list[NodeId], seed: int) -> None:
        self._peers = peers
        self._draws = Draws(seed)

    def step(self, event: Event, now_ms: float, wall_ms: float) -> list[Effect]:
        match event:
            case Started():
                return [SetTimer(PERIOD, 1000.0)]
            case TimerFired():
                peer = self._draws.choice(self._peers)
                return [Send(peer, ONE_LIFE, Ping(1, GOSSIP_ITEMS)), SetTimer(PERIOD, 1000.0)]
            case MessageReceived(message=Ping()):
                return [Send(event.sender, ONE_LIFE, Ack(1, GOSSIP_ITEMS))]
            case _:
                return []


def toys(nodes: int, seconds: int) -> None:
    """What the simulator itself costs."""
    began_s = time.process_time()
    topology = make_topology(Shape.GRID, devices=round(nodes / SMART_SHARE), seed=1)
    peers = sorted(topology.nodes)
    seeds = {peer: number for number, peer in enumerate(peers)}
    world = World(topology, lambda node_id: Toy(peers, seeds[node_id]), seed=1)
    built_s = time.process_time() - began_s
    began_s = time.process_time()
    world.run_until(seconds * 1000.0)
    traffic = world.traffic.total()
    took_s = time.process_time() - began_s
    events = world.engine.handled
    print(f"toy nodes: {len(peers)} among {len(topology.places)} stations, {built_s:.2f} s to build")
    print(
        f"  {events} events, {traffic.sent.messages} messages, {traffic.transmitted.messages} transmissions"
    )
    print(f"  {took_s / events * 1e6:.2f} us per event; {seconds / took_s:.1f} times real time")


def membership(nodes: int, seconds: int, *, joined: bool) -> float:
    """Times real time of a mesh that runs membership only."""
    topology = make_topology(Shape.GRID, devices=round(nodes / SMART_SHARE), seed=1)
    simulation = Simulation(topology, seed=1, joined=joined)
    simulation.run(seconds=seconds)
    report = simulation.report()
    times = seconds / report.cpu_s
    print(f"membership, {'joined before' if joined else 'from a cold start'}: {report.nodes} nodes")
    print(f"  {report.cpu_s / report.events * 1e6:.2f} us per event; {times:.1f} times real time")
    return times


def main() -> int:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    toys(nodes, seconds)
    slowest = min(membership(nodes, seconds, joined=joined) for joined in (True, False))
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB at most")
    print(f"bar: membership at least {BAR} times real time: {'met' if slowest >= BAR else 'MISSED'}")
    return int(slowest < BAR)


if __name__ == "__main__":
    sys.exit(main())

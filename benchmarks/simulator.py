"""How fast the simulator is by itself: toy nodes that ping a random peer every second, and answer.

    python benchmarks/simulator.py [NODES] [SIMULATED_SECONDS]

The bar: under 12 us per event, the toy's own microsecond or two included, so that 1,000 nodes with
membership run at least five times faster than real time on one core. Peers are drawn uniformly: the worst
case, because nearly every message goes a way that no message went before.
"""

import resource
import sys
import time

from comesh.core.draws import Draws
from comesh.core.effects import Effect, Send, SetTimer
from comesh.core.events import Event, MessageReceived, Started, Timer, TimerFired
from comesh.core.ids import Incarnation, NodeId
from comesh.core.messages import Ack, MemberState, MemberUpdate, Ping, Rumours
from comesh.sim.topology import Shape, make_topology
from comesh.sim.world import World

PERIOD = Timer("toy", "period")
ONE_LIFE = Incarnation(boot=1, nonce=1)
RUMOURS = Rumours(
    members=tuple(MemberUpdate(NodeId(f"n{number:04}"), MemberState.ALIVE, ONE_LIFE) for number in range(6))
)


class Toy:
    """Pings one peer per second with six rumours on board; acks pings."""

    def __init__(self, peers: list[NodeId], seed: int) -> None:
        self._peers = peers
        self._draws = Draws(seed)

    def step(self, event: Event, now_ms: float) -> list[Effect]:
        match event:
            case Started():
                return [SetTimer(PERIOD, 1000.0)]
            case TimerFired():
                peer = self._draws.choice(self._peers)
                return [Send(peer, ONE_LIFE, Ping(1, RUMOURS)), SetTimer(PERIOD, 1000.0)]
            case MessageReceived(message=Ping()):
                return [Send(event.sender, ONE_LIFE, Ack(1, RUMOURS))]
            case _:
                return []


def main() -> None:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    began_s = time.process_time()
    topology = make_topology(Shape.GRID, devices=round(nodes / 0.4), seed=1)
    peers = sorted(topology.nodes)
    seeds = {peer: number for number, peer in enumerate(peers)}
    world = World(topology, lambda node_id: Toy(peers, seeds[node_id]), seed=1)
    print(
        f"{len(peers)} nodes, {len(topology.places)} stations: {time.process_time() - began_s:.2f} s to build"
    )
    began_s = time.process_time()
    world.run_until(seconds * 1000.0)
    traffic = world.traffic.total()
    took_s = time.process_time() - began_s
    events = world.engine.handled
    print(f"{events} events, {traffic.sent.messages} messages, {traffic.transmitted.messages} transmissions")
    print(f"{events / took_s:,.0f} events per CPU second; {seconds / took_s:.1f} times real time")
    print(f"{took_s / events * 1e6:.2f} us per event, {took_s:.2f} s CPU in all")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB at most")


if __name__ == "__main__":
    main()

"""Three nodes, lossy ways, restarts and changing keys, drawn from a seed: afterwards all hear each other."""

import asyncio
import time
from itertools import permutations

import pytest
from transport_parts import HOST, ONE, THREE, TWO, Inbox, Relay, make, until, until_sent

from comesh.core.draws import Draws
from comesh.core.ids import NodeId
from comesh.runtime.transport.settings import TransportSettings
from comesh.runtime.transport.udp import UdpTransport

HASTY = TransportSettings(
    rekey_datagrams=100,
    idle_tick_ms=20.0,
    grace_ms=200.0,
    probe_ms=100.0,
    silent_ms=300.0,
    forget_ms=1_500.0,
    gone_ms=100.0,
    resend_ms=30.0,
    max_resend_ms=300.0,
    handshake_limit_ms=1_500.0,
)
NODES = (ONE, TWO, THREE)
PAIRS = tuple(permutations(NODES, 2))
TURNS = 150


class Mesh:
    def __init__(self, seed: int) -> None:
        self.draws = Draws(seed)
        self.transports: dict[NodeId, UdpTransport] = {}
        self.inboxes: dict[NodeId, Inbox] = {}
        self.relays: dict[tuple[NodeId, NodeId], Relay] = {}

    async def start(self, name: NodeId, port: int = 0) -> None:
        self.inboxes[name] = Inbox()
        self.transports[name] = make(name, settings=HASTY, port=port)
        await self.transports[name].open(self.inboxes[name])

    def introduce(self, name: NodeId) -> None:
        for (sender, receiver), relay in self.relays.items():
            if sender == name:
                self.transports[name].set_addresses(receiver, [(HOST, relay.port)])

    async def build(self) -> None:
        for name in NODES:
            await self.start(name)
        for sender, receiver in PAIRS:
            relay = Relay(self.transports[receiver].port, loss=0.2, seed=self.draws.word())
            self.relays[sender, receiver] = await relay.__aenter__()
        for name in NODES:
            self.introduce(name)

    async def restart(self, name: NodeId) -> None:
        port = self.transports[name].port
        await self.transports[name].close()
        await self.start(name, port)
        self.introduce(name)

    async def turn(self, number: int) -> None:
        for sender, receiver in PAIRS:
            if self.draws.chance(0.5):
                size = self.draws.below(20_000) if self.draws.chance(0.05) else 20
                self.transports[sender].send(receiver, b"%d" % number + bytes(size))
        if self.draws.chance(0.03):
            await self.restart(self.draws.choice(NODES))
        if self.draws.chance(0.05):
            relay = self.relays[self.draws.choice(PAIRS)]
            relay.cut = not relay.cut
        await asyncio.sleep(0)

    def agreed(self) -> bool:
        """Whether both sides of every pair send by the same session."""
        for one, other in PAIRS:
            mine = self.transports[one]._peers[other].session
            theirs = self.transports[other]._peers[one].session
            if mine is None or theirs is None or mine.own_id != theirs.remote_id:
                return False
        return True

    async def end(self) -> None:
        for transport in self.transports.values():
            await transport.close()
        for relay in self.relays.values():
            await relay.__aexit__()


@pytest.mark.parametrize("seed", range(4))
def test_everybody_hears_everybody_afterwards(seed: int) -> None:
    async def story() -> None:
        mesh = Mesh(seed)
        await mesh.build()
        for number in range(TURNS):
            await mesh.turn(number)
            began = time.monotonic()
            await until(lambda began=began: time.monotonic() - began > 0.005, "a moment passes")
        for relay in mesh.relays.values():
            relay.cut = False
        for sender, receiver in PAIRS:
            words = f"{sender} at last".encode()
            await until_sent(mesh.transports[sender], receiver, words, mesh.inboxes[receiver])
            assert (sender, words) in mesh.inboxes[receiver].got
        await until(mesh.agreed, "one session per pair")
        for transport in mesh.transports.values():
            assert not transport.counters["dropped: nonsense from a peer"]
            assert not transport.counters["dropped: the session broke"]
        await mesh.end()

    asyncio.run(story())

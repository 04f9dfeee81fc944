"""Messages that a peer with a certificate can send and no core ever would: well-formed, and nonsense.

A peer can lie, and nodes are not protected from that (docs/threat-model.md). But what it says must not end
the process that hears it with an error inside: it is refused, or believed.

A case is some messages in a row to the core of a node. The node is one of a mesh that the simulator ran for a
while; each case has a copy of it.
"""

import copy
import copyreg
import random
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from drawing import draw, kind_of
from mutating import changed_tree

from comesh.core.effects import CancelTimer, SetTimer
from comesh.core.events import MessageReceived, Timer, TimerFired
from comesh.core.ids import Incarnation, NodeId
from comesh.core.messages import WIRE_VERSION, Datagram, WireError, decode
from comesh.core.node import Node
from comesh.core.program import Program
from comesh.deployment.clauses.compiler import Clause
from comesh.deployment.load import load_bytes
from comesh.lab.scenarios.documents import five_rooms
from comesh.sim.building import Building

LIAR: Final = NodeId("n5")
RAN_S: Final = 12.0
MAX_MESSAGES: Final = 24
"""Of one case."""
LATER_MS: Final = 60_000.0
_IN_CONFIG: Final = 20
for _one in (Program, Clause):
    copyreg.pickle(_one, lambda _: "it never changes, and is not copied")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[str, bytes]]).decode


class Mesh(NamedTuple):
    nodes: dict[str, Node]
    now_ms: float
    said: list[list[Any]]
    """Real messages, as they stand in the bytes."""
    in_config: list[list[Any]]
    """Beginnings of real messages between members: group, number, mark and store."""
    incarnation: list[int]
    """Of the liar."""


@cache
def mesh() -> Mesh:
    deployment = load_bytes(five_rooms().encode()).deployment
    assert deployment is not None
    building = Building(deployment, seed=1)
    sent: list[Datagram] = []
    building.world.senders.append(
        lambda _at, _by, _to, message, _size: sent.append(Datagram(Incarnation(1, 1), 1, message))
    )
    building.run(RAN_S)
    trees = {msgspec.msgpack.encode(one): None for one in sent[-3_000:]}
    said = [msgspec.msgpack.decode(data)[2] for data in trees]
    nodes = {}
    for machine in building.world.machines.values():
        assert machine.process is not None
        node = machine.process.node
        assert isinstance(node, Node)
        nodes[str(machine.node_id)] = node
    mine = nodes[LIAR].membership.incarnation
    return Mesh(
        nodes,
        building.world.now_ms,
        said,
        [one[1:5] for one in said if one[0] == _IN_CONFIG],
        [mine.boot, mine.nonce, mine.refutation],
    )


def make_peers(chance: random.Random) -> bytes:
    here = mesh()
    to = chance.choice([name for name in here.nodes if name != LIAR])
    made: list[tuple[str, bytes]] = []
    for _ in range(chance.randrange(1, MAX_MESSAGES)):
        if chance.random() < 0.5:
            message = draw(kind_of(Datagram), chance)[2]
        else:
            message = chance.choice(here.said)
            for _ in range(chance.choice((0, 1, 1, 3))):
                changed = changed_tree(message[1:], chance)
                message = [message[0], *changed] if isinstance(changed, list) else message
        if message[0] == _IN_CONFIG and len(message) == 6 and chance.random() < 0.8:
            message = [message[0], *chance.choice(here.in_config), message[5]]
        made.append((to, bytes([WIRE_VERSION]) + _encode([here.incarnation, 1, message])))
    return _encode(made)


def take_peers(data: bytes) -> str:
    """All of them are heard, then all timers fire that are set by then."""
    here = mesh()
    copied: dict[str, Node] = {}
    due: dict[tuple[str, Timer], None] = {}
    taken = 0
    for number, (to, raw) in enumerate(_decode(data)):
        try:
            datagram = decode(raw)
        except WireError:
            continue
        if to not in copied:
            copied[to] = copy.deepcopy(here.nodes[to])
        event = MessageReceived(
            sender=LIAR,
            incarnation=datagram.incarnation,
            deployment=datagram.deployment,
            message=datagram.message,
        )
        now_ms = here.now_ms + number
        for effect in copied[to].step(event, now_ms, now_ms):
            if isinstance(effect, SetTimer):
                due[to, effect.timer] = None
            elif isinstance(effect, CancelTimer):
                due.pop((to, effect.timer), None)
        taken += 1
    for to, timer in due:
        copied[to].step(TimerFired(timer=timer), here.now_ms + LATER_MS, here.now_ms + LATER_MS)
    return "heard" if taken else "refused"

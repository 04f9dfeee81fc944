"""A stranger without keys floods a leader with garbage and with handshakes that it does not end."""

import subprocess
import sys
import time
from typing import Final, NamedTuple

import msgspec

from comesh.lab.flooding import Sent
from comesh.lab.mesh import MeshError
from comesh.lab.scenarios.documents import five_rooms
from comesh.lab.scenarios.play import Play, Stage
from comesh.queries.answers import NodeStatus

GARBAGE: Final = 10_000
HELLOS: Final = 1_000
"""A second."""
QUICK_S: Final = 10.0
LONG_S: Final = 30.0
REST_S: Final = 5.0
"""Time in which the node is measured before and after."""
END_S: Final = 20.0
MAX_GROWTH_KB: Final = 96 * 1024
"""512 slots for handshakes of some 80 kB each, and twice that for what an allocator keeps."""
_INSIDE: Final = (
    "dropped: nonsense from a peer",
    "dropped: a question that cannot be read",
    "dropped: a frame that cannot be read",
    "dropped: from a node that the deployment does not have",
    "dropped: the session broke",
    "dropped: too many peers",
)
"""Counters that would rise if anything of a stranger came to where only peers' messages come."""


class Measured(NamedTuple):
    """Measurements of one node over some time."""

    seconds: float
    cpu_share: float
    memory_kb: int
    counted: dict[str, int]
    """Rise of the node's counters."""


def strangers_flood_a_leader(stage: Stage) -> None:
    """While a stranger sends 10,000 datagrams of garbage and begins 1,000 handshakes a second, a leader goes
    on: its routines fire and end, nothing gets in, its memory stays bounded, and the mesh is whole after."""
    with stage.mesh(five_rooms()) as play:
        node = play.leader(play.group_of("across"))
        play.goes_on("tick", "tock")
        before = _measured(play, node, REST_S)
        _tell(play, "before", before)
        during, sent = _flooded(play, node, LONG_S if stage.long else QUICK_S)
        _tell(play, "during", during)
        play.until("the mesh is whole", play.is_whole)
        after = _measured(play, node, REST_S)
        _tell(play, "after", after)
        play.goes_on("tick", "tock")
        _judge(play, before, during, sent)


def _flooded(play: Play, node: str, seconds: float) -> tuple[Measured, Sent]:
    host, port = next(at for name, at in play.mesh.addresses.items() if name == node)
    rates = ("--garbage", str(GARBAGE), "--hellos", str(HELLOS), "--seconds", str(seconds))
    command = [sys.executable, "-m", "comesh.lab.flooding", host, str(port), *rates]
    began, first = time.monotonic(), _status(play, node)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as flood:
        try:
            play.say(f"{node}, which leads, is flooded for {seconds:g} s")
            while flood.poll() is None:
                run = play.fire("across", node=node)
                play.goes_on("tick", "tock", more=1)
                play.ends(run)
                if time.monotonic() - began > seconds + END_S:
                    raise MeshError("the flood did not end in time")
            measured = _between(first, _status(play, node), time.monotonic() - began)
            assert flood.stdout is not None
            return measured, msgspec.json.decode(flood.stdout.read(), type=Sent)
        finally:
            flood.kill()


def _judge(play: Play, before: Measured, during: Measured, sent: Sent) -> None:
    play.say(
        f"sent in {sent.seconds:.1f} s: {sent.garbage} of garbage, {sent.knocks} knocks, {sent.hellos} hellos"
    )
    read = during.counted.get("datagrams received", 0) / (sent.garbage + sent.knocks + sent.hellos)
    play.figure("read_percent", 100.0 * read)
    play.say(f"{100.0 * read:.0f} % of it was read; the rest the kernel dropped before the node saw it")
    play.figure("garbage_per_s", sent.garbage / sent.seconds)
    play.figure("hellos_per_s", sent.hellos / sent.seconds)
    dropped = sum(count for name, count in during.counted.items() if name.startswith("dropped: "))
    play.figure("dropped", float(dropped))
    play.must(f"{dropped} datagrams were dropped and counted", dropped > 0)
    inside = {name: count for name in _INSIDE if (count := during.counted.get(name, 0))}
    play.must(f"nothing of it got in{f', but: {inside}' if inside else ''}", not inside)
    growth_kb = during.memory_kb - before.memory_kb
    play.must(f"memory grew by {growth_kb / 1024:.1f} MiB", growth_kb <= MAX_GROWTH_KB)


def _measured(play: Play, node: str, seconds: float) -> Measured:
    began, first = time.monotonic(), _status(play, node)
    play.until(f"{seconds:g} s are over", lambda: time.monotonic() - began > seconds)
    return _between(first, _status(play, node), time.monotonic() - began)


def _between(first: NodeStatus, last: NodeStatus, seconds: float) -> Measured:
    counted = {name: count - first.counters.get(name, 0) for name, count in last.counters.items()}
    return Measured(seconds, (last.cpu_s - first.cpu_s) / seconds, last.memory_kb, counted)


def _status(play: Play, node: str) -> NodeStatus:
    status = play.mesh.status(node)
    if status is None:
        raise MeshError(f"{node} does not say how it is")
    return status


def _tell(play: Play, when: str, measured: Measured) -> None:
    play.figure(f"cpu_percent_{when}", measured.cpu_share * 100.0)
    play.figure(f"memory_mib_{when}", measured.memory_kb / 1024)
    play.say(
        f"{when}: {measured.cpu_share * 100.0:.1f} % of a core, {measured.memory_kb / 1024:.1f} MiB, "
        f"{measured.counted.get('datagrams received', 0) / measured.seconds:.0f} datagrams a second read"
    )

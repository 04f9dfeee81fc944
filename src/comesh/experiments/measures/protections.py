"""What a mesh pays: messages, bytes, commits and journal writes per run, and the delay until a run acts.

Messages are those between nodes; reads and commands of devices are not among them. What a run costs is
measured as the difference between a mesh at work and the same mesh with routines that never fire,
membership left out. Shares by kind are counted, in a mesh at work of which now and then a leader crashes
and comes back, so that there are elections and fences to count.

Nodes of one floor (of equal height) are one power domain.
"""

from collections import Counter
from dataclasses import replace
from typing import Final, NamedTuple

from comesh.core.group_messages import Acked, Ask, InConfig, Update
from comesh.core.ids import GroupId, NodeId
from comesh.core.journal import Appended, JournalRecord
from comesh.core.messages import Message
from comesh.core.stamps import NO_BALLOT, RunId
from comesh.core.traces import Finished
from comesh.core.work_messages import GroupMessage
from comesh.experiments.measures.mesh import Mesh
from comesh.experiments.measures.mesh_operations import WARM_S, crash_leader
from comesh.experiments.measures.presets import Running
from comesh.experiments.stage import Row, percentile
from comesh.sim.topology import Topology
from comesh.sim.workloads import Timing, Workload, paper_workload

FIRED_EVERY_S = 3.0
"""One routine after the other, each once: nobody waits for another's locks."""
CRASH_EVERY_S = 4.0
DOWN_S = 2.0

MEMBERSHIP: Final = "membership"
TOUCH: Final = "touch"
TOUCH_ANSWERED: Final = "touch answered"
DOUBT: Final = "doubt"
PURPOSES: Final = {
    "leases": (TOUCH, TOUCH_ANSWERED),
    "leaders doubted": (DOUBT,),
    "commits": ("Update", "Lettered", "Acked", "Gap", "State"),
    "pre-vote": ("Ask", "Answer"),
    "claims": ("Claim", "Promise", "Refuse", "Sync", "Pull", "GiveUp", "Recover"),
    "handoffs": ("Invite", "Ready", "Start", "Installed", "Retire", "Moved", "SeatGiven", "Stranger"),
    "locks": ("LockRequest", "LockState", "Wound"),
    "releases acknowledged": ("Release", "Released"),
    "fences": ("FenceAsked", "Fenced"),
    "silent runs asked about": ("RunQuery", "RunState"),
    "commands": ("Command", "CommandState"),
    "readings until seen": ("Watch", "Reading", "Seen"),
    "finding leaders": ("NotLeader",),
    "probes of devices": ("Probe", "Probed"),
    MEMBERSHIP: ("Ping", "Ack", "Nack", "PingRequest", "Gossip", "Exchange", "Page"),
}
"""Kinds of messages by what they are for; what is in none of them is `other`."""
_PURPOSE_OF = {kind: purpose for purpose, kinds in PURPOSES.items() for kind in kinds}


class Amount(NamedTuple):
    messages: int
    size_bytes: int


class Tally:
    """Counts what nodes send, by kind, and what they append to journals; from `begin` on."""

    def __init__(self, mesh: Mesh) -> None:
        self.messages: Counter[str] = Counter()
        self.size_bytes: Counter[str] = Counter()
        self.appended = 0
        self._counts = False
        self._touches: set[tuple[GroupId, int, NodeId, int]] = set()
        mesh.world.senders.append(self._note)
        mesh.world.writers.append(self._written)

    def begin(self) -> None:
        self._counts = True

    @property
    def total(self) -> Amount:
        return Amount(self.messages.total(), self.size_bytes.total())

    @property
    def of_groups(self) -> Amount:
        """Without membership, whose gossip is drawn, and says nothing of runs."""
        total, apart = self.total, self.by_purpose().get(MEMBERSHIP, Amount(0, 0))
        return Amount(total.messages - apart.messages, total.size_bytes - apart.size_bytes)

    def by_purpose(self) -> dict[str, Amount]:
        found: dict[str, Amount] = {}
        for kind, messages in self.messages.items():
            purpose = _PURPOSE_OF.get(kind, "other")
            before = found.get(purpose, Amount(0, 0))
            found[purpose] = Amount(before.messages + messages, before.size_bytes + self.size_bytes[kind])
        return found

    def _note(self, now_ms: float, by: NodeId, to: NodeId, message: Message, size_bytes: int) -> None:
        kind = self._kind(by, to, message)
        if self._counts:
            self.messages[kind] += 1
            self.size_bytes[kind] += size_bytes

    def _kind(self, by: NodeId, to: NodeId, message: Message) -> str:
        if isinstance(message, GroupMessage):
            return type(message.body).__name__
        if not isinstance(message, InConfig):
            return type(message).__name__
        body = message.body
        if isinstance(body, Update) and not body.entries:
            self._touches.add((message.group, message.number, to, body.sent_ms))
            return TOUCH
        if isinstance(body, Ask) and body.ballot == NO_BALLOT:
            return DOUBT
        if isinstance(body, Acked):
            touch = (message.group, message.number, by, body.sent_ms)
            if touch in self._touches:
                self._touches.discard(touch)
                return TOUCH_ANSWERED
        return type(body).__name__

    def _written(self, now_ms: float, node: NodeId, record: JournalRecord) -> None:
        self.appended += self._counts and isinstance(record, Appended)


def with_floors(topology: Topology) -> Topology:
    """Nodes of equal height lose power together."""
    floors: dict[str, list[NodeId]] = {}
    for node, station in sorted(topology.nodes.items()):
        floors.setdefault(f"floor {topology.places[station].z_mm}", []).append(node)
    return replace(topology, power_domains={name: tuple(nodes) for name, nodes in floors.items()})


def _mesh(topology: Topology, setup: Running, work: Workload, *, seed: int) -> tuple[Mesh, Tally]:
    mesh = Mesh.of(topology, work.program, work.devices, setup, seed=seed, keep_messages=False)
    return mesh, Tally(mesh)


def _work(topology: Topology, setup: Running, *, seed: int, seconds: float, idle: bool = False) -> Workload:
    """idle: the same routines, whose devices never show what they fire on."""
    every_s = max(FIRED_EVERY_S, setup.protocol.monitoring_ms / 250)  # four polls, to see it
    work = paper_workload(
        topology,
        setup.selection,
        setup.protocol,
        routines=max(1, int(seconds / every_s) - 1),
        seed=seed,
        timing=Timing(first_ms=1000 * WARM_S, window_ms=1000 * every_s),
    )
    return Workload(program=work.program, devices={}) if idle else work


def cost(topology: Topology, setup: Running, *, seed: int, seconds: float) -> Row:
    """Per node and second, and per run."""
    work = _work(topology, setup, seed=seed, seconds=seconds)
    busy, paid = _mesh(topology, setup, work, seed=seed)
    resting, idle = _mesh(
        topology, setup, _work(topology, setup, seed=seed, seconds=seconds, idle=True), seed=seed
    )
    for mesh, tally in ((busy, paid), (resting, idle)):
        mesh.run(WARM_S)
        tally.begin()
        mesh.commits.clear()
        mesh.run(seconds)
    runs = {traced.run for traced in busy.traces if isinstance(traced.trace, Finished)}
    delays = _delays(busy, work)
    node_seconds = len(topology.nodes) * seconds
    count = max(1, len(runs))
    return {
        "messages_per_node_s": paid.total.messages / node_seconds,
        "bytes_per_node_s": paid.total.size_bytes / node_seconds,
        "idle_messages_per_node_s": idle.total.messages / node_seconds,
        "runs": len(runs),
        "messages_per_run": (paid.of_groups.messages - idle.of_groups.messages) / count,
        "bytes_per_run": (paid.of_groups.size_bytes - idle.of_groups.size_bytes) / count,
        "commits_per_run": (len(busy.commits) - len(resting.commits)) / count,
        "appended_per_run": (paid.appended - idle.appended) / count,
        "delay": percentile(delays, 50),
        "delay_mean": sum(delays) / len(delays),
    }


def _delays(mesh: Mesh, work: Workload) -> list[float]:
    """In hops, from each clause's becoming true to the first command that follows; polling included."""
    left_ms: dict[RunId, float] = {}
    for act in mesh.world.devices.log:
        origin, sent_ms = act.command.origin, act.command.sent_ms
        if origin is not None:
            left_ms[origin.run] = min(sent_ms, left_ms.get(origin.run, sent_ms))
    found: list[float] = []
    for at_ms, routine in work.fires_ms:
        later = [ms for run, ms in left_ms.items() if run.routine == routine and ms >= at_ms]
        if later:
            found.append((min(later) - at_ms) / mesh.world.radio.settings.hop_ms)
    return found


def shares(topology: Topology, setup: Running, *, seed: int, seconds: float) -> list[Row]:
    """By purpose, of a mesh at work with a leader that crashes every few seconds."""
    work = _work(topology, setup, seed=seed, seconds=seconds)
    mesh, tally = _mesh(topology, setup, work, seed=seed)
    mesh.run(WARM_S)
    tally.begin()
    clusters = work.program.plan.clusters
    for turn in range(int(seconds / CRASH_EVERY_S)):
        group = clusters[turn % len(clusters)].group
        leader = mesh.leader(group)
        crash_leader(mesh, group)
        mesh.run(DOWN_S)
        mesh.world.start(mesh.world.machines[leader])
        mesh.run(CRASH_EVERY_S - DOWN_S)
    total = tally.total
    return [
        {
            "purpose": purpose,
            "messages": one.messages,
            "share_of_messages": one.messages / total.messages,
            "share_of_bytes": one.size_bytes / total.size_bytes,
        }
        for purpose, one in tally.by_purpose().items()
    ]

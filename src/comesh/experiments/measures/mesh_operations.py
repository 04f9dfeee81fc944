"""What happens inside the groups of a simulated mesh, and how long it takes: quorums, elections, transfers.

- quorum: the leader proposes an entry -> it counts it as committed;
- election: the first Ask of a candidate since it last heard a leader -> it serves; and the same from the
  claim of the ballot in which it serves. What comes before, until somebody suspects the leader, depends on
  leases and not on the mesh, and is told apart;
- state transfer, at a change of epoch: the leader of a config proposes its end -> the leader of the next one
  serves. In between nobody does. Of it, the part after the end was committed is told apart: before that it is
  a quorum like any other.

Leaders are crashed for elections, one after the other, in a mesh whose epochs do not end. Quorums and
transfers are those of a mesh at work: the paper's routines, fired all the time. Times are in hops. The
group of the deployment, which the paper has not, is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from msgspec.structs import replace

from comesh.core.effects import LeaderChanged, Observation
from comesh.core.group.config import Config
from comesh.core.group_messages import Ask, Claim, InConfig, Update
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.messages import Message
from comesh.core.plan import DEPLOYMENT
from comesh.core.records import HandoffRecord
from comesh.core.stamps import NO_BALLOT, Ballot
from comesh.core.strategies import Strategy
from comesh.experiments.measures.histories import Change, handoffs
from comesh.experiments.measures.mesh import FOR_EVER_MS, Mesh, by_hand, switches
from comesh.experiments.measures.presets import Running
from comesh.experiments.stage import Row, Table, facets, means, percentile, ratio
from comesh.sim.topology import Topology
from comesh.sim.workloads import Timing, Workload, paper_workload

OPERATIONS = ("quorum", "election", "state transfer")
WARM_S = 2.0
"""Groups come up, and find their devices."""
ROUTINES = 20
FIRED_EVERY_S = 8.0
"""Each routine: so that groups have something to commit, and hardly ever anybody waits for a lock."""
MAX_FAILOVER_S = 10.0

Samples = dict[str, list[float]]
"""By what was measured, in hops."""


class Election(NamedTuple):
    group: GroupId
    winner: NodeId
    config: Config
    first_asked_ms: float
    """By anybody in the group."""
    asked_ms: float
    claimed_ms: float
    serving_ms: float


class Elections:
    """Hears who asks and claims in a mesh, and notes who came to serve by that. Make it before the mesh
    runs."""

    def __init__(self, mesh: Mesh) -> None:
        self.done: list[Election] = []
        self._asked_ms: dict[tuple[GroupId, int], dict[NodeId, float]] = {}
        self._claimed_ms: dict[tuple[GroupId, int, NodeId, Ballot], float] = {}
        mesh.world.senders.append(self._note)
        mesh.world.observers.append(self._observe)

    def _note(self, now_ms: float, by: NodeId, to: NodeId, message: Message, size_bytes: int) -> None:
        if not isinstance(message, InConfig):
            return
        place = (message.group, message.number)
        match message.body:
            case Ask(ballot=ballot) if ballot != NO_BALLOT:  # else it only doubts its leader
                self._asked_ms.setdefault(place, {}).setdefault(by, now_ms)
            case Claim(ballot=ballot):
                self._claimed_ms.setdefault((*place, by, ballot), now_ms)
            case Update() if place in self._asked_ms:
                # Somebody leads, and does not only try to: who asked before will ask anew if that one falls.
                self._asked_ms[place].pop(to, None)
            case _:
                pass

    def _observe(self, now_ms: float, node: NodeId, told: Observation) -> None:
        if not isinstance(told, LeaderChanged) or told.state != "serving":
            return
        number = told.config.number
        asked = self._asked_ms.pop((told.group, number), {})
        claimed_ms = self._claimed_ms.get((told.group, number, node, told.ballot))
        if node in asked and claimed_ms is not None:
            first_ms = min(asked.values())
            self.done.append(
                Election(told.group, node, told.config, first_ms, asked[node], claimed_ms, now_ms)
            )


def transfers(mesh: Mesh) -> Iterator[tuple[Change, Change]]:
    """Who ended a config and, after that, who first served the next one."""
    return handoffs(mesh.changes)


def crash_leader(mesh: Mesh, group: GroupId) -> NodeId | None:
    """Crash the leader of a group; None: that cuts the mesh, and no quorum is left together."""
    dead, config = mesh.leader(group), mesh.config(group)
    mesh.world.crash(mesh.world.machines[dead])
    nodes, radio = mesh.world.topology.nodes, mesh.world.radio
    stations = [nodes[node] for node in config.nodes if node != dead]
    together = max(sum(radio.reaches(here, there) for there in stations) for here in stations)
    return dead if together >= config.quorum else None


def work_of(
    topology: Topology,
    setup: Running,
    *,
    seed: int,
    seconds: float,
    routines: int = ROUTINES,
    every_s: float = FIRED_EVERY_S,
    among: Sequence[DeviceId] | None = None,
) -> Workload:
    """The paper's routines, each fired again and again, as often as fits into the time. among: they touch
    these devices only; left out: any."""
    return paper_workload(
        topology,
        setup.selection,
        setup.protocol,
        routines=routines,
        seed=seed,
        alone=False,
        timing=Timing(
            first_ms=1000.0 * WARM_S,
            window_ms=1000.0 * every_s,
            firings=max(1, int(seconds / every_s)),
        ),
        among=among,
    )


def mesh_at_work(
    topology: Topology,
    setup: Running,
    *,
    seed: int,
    seconds: float,
    among: Sequence[DeviceId] | None = None,
) -> Mesh:
    """With the paper's routines; its messages are not kept."""
    work = work_of(topology, setup, seed=seed, seconds=seconds, among=among)
    return Mesh.of(topology, work.program, work.devices, setup, seed=seed, keep_messages=False)


def worked(mesh: Mesh, setup: Running, *, since_ms: float) -> Samples:
    """What was proposed, and which configs ended, from that time on."""
    hop_ms = setup.radio.hop_ms
    committed_ms = {
        (commit.group, commit.config.number): commit.committed_ms
        for commit in mesh.commits
        if isinstance(commit.entry[0], HandoffRecord)
    }
    moved = [
        (ending, serving)
        for ending, serving in transfers(mesh)
        if ending.told.group != DEPLOYMENT and ending.at_ms >= since_ms
    ]
    ends = [(ending.told.group, ending.told.config.number) for ending, _ in moved]
    return {
        "quorum": [
            (commit.committed_ms - commit.proposed_ms) / hop_ms
            for commit in mesh.commits
            if commit.group != DEPLOYMENT and commit.proposed_ms >= since_ms
        ],
        "state transfer": [(serving.at_ms - ending.at_ms) / hop_ms for ending, serving in moved],
        "transfer after the commit": [
            (serving.at_ms - committed_ms[end]) / hop_ms
            for end, (_, serving) in zip(ends, moved, strict=True)
            if end in committed_ms
        ],
    }


def elected(elections: Sequence[Election], setup: Running, *, since_ms: float = 0.0) -> Samples:
    hop_ms = setup.radio.hop_ms
    counted = [one for one in elections if one.group != DEPLOYMENT and one.asked_ms >= since_ms]
    return {
        "election": [(one.serving_ms - one.asked_ms) / hop_ms for one in counted],
        "from the claim": [(one.serving_ms - one.claimed_ms) / hop_ms for one in counted],
    }


def failovers(topology: Topology, setup: Running, *, seed: int) -> Samples:
    """Elections: of each group in turn the leader crashes, and comes back once the group is served."""
    lasting = replace(setup.protocol, epoch_ms=FOR_EVER_MS)
    program = by_hand(topology, setup.selection, lasting, {}, Strategy.SEQUENTIAL)
    mesh = Mesh.of(topology, program, switches(topology), setup, seed=seed, keep_messages=False)
    elections = Elections(mesh)
    mesh.run(WARM_S)
    noticed_ms: list[float] = []
    for cluster in program.plan.clusters:
        crashed_ms = mesh.now_ms
        leader = mesh.leader(cluster.group)
        crash_leader(mesh, cluster.group)
        served = _until_served(mesh, elections, cluster.group, crashed_ms)
        if served is not None:
            noticed_ms.append(served.first_asked_ms - crashed_ms)
        mesh.world.start(mesh.world.machines[leader])
        mesh.run(3 * setup.lease_s)  # it recovers, and promises nothing in its first lease
    found = elected(elections.done, setup)
    found["until suspicion"] = [each / setup.radio.hop_ms for each in noticed_ms]
    return found


def _until_served(mesh: Mesh, elections: Elections, group: GroupId, since_ms: float) -> Election | None:
    while mesh.now_ms < since_ms + 1000.0 * MAX_FAILOVER_S:
        mesh.run(0.1)
        for one in reversed(elections.done):
            if one.group == group and one.serving_ms > since_ms:
                return one
    return None


def rows_of(samples: Samples) -> list[Row]:
    """A row for each operation of which there was any."""
    return [
        {
            "operation": name,
            "median": percentile(values, 50),
            "mean": sum(values) / len(values),
            "p90": percentile(values, 90),
            "count": len(values),
        }
        for name, values in samples.items()
        if values
    ]


def operations(topology: Topology, setup: Running, *, seed: int, epochs: float) -> list[Row]:
    """All three, of a mesh in which nothing else goes wrong."""
    seconds = epochs * setup.epoch_s
    mesh = mesh_at_work(topology, setup, seed=seed, seconds=seconds)
    mesh.run(WARM_S + seconds)
    samples = worked(mesh, setup, since_ms=1000.0 * WARM_S)
    return rows_of({**samples, **failovers(topology, setup, seed=seed)})


# -- what is read off it -----------------------------------------------------------------------------------


def operation_means(table: Table, by: Sequence[str], names: Sequence[str]) -> Table:
    """A row per combination of values of `by`, a column per operation: the mean over all of them."""
    found = Table(row for row in table if row["operation"] in names)
    return means(found, by, ("mean",), across="operation", weight="count")


def table_operations(
    table: Table, by: Sequence[str], x: str, beside: Sequence[str] = ("from the claim", "until suspicion")
) -> dict[str, Table]:
    """Means by x, and how many times as long each takes at each x as at the least. beside: other measures."""
    found = []
    for key, rows in table.groups(*by, x):
        wanted = dict(zip((*by, x), key, strict=True))
        first = table.where(**{**wanted, x: min(table.distinct(x))})
        if wanted[x] != min(table.distinct(x)):
            times = {
                one: ratio(rows.where(operation=one), first.where(operation=one), "mean", "count")
                for one in OPERATIONS
            }
            found.append(wanted | times)
    return {
        "Means in hops": operation_means(table, (*by, x), (*OPERATIONS, *beside)),
        f"Against {x} = {min(table.distinct(x))}": Table(found),
    }


def draw_operations(table: Table, x: Mapping[str, str]) -> Figure:
    found = Table(row for row in table if row["operation"] in OPERATIONS)
    y = {"mean": "mean delay, hops"}
    return facets(found, x=x, y=y, line="preset", column="operation", weight="count")

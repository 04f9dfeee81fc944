"""What the protocol costs, counted in simulation: commits, failover, runs, handoffs, an idle group.

- A commit is one round trip to the f-th nearest member of the group, exactly, every time.
- A failover without rivals is a pre-vote and two round trips after suspicion: Ask, Claim and Sync, each to
  the f-th nearest member that lives and back.
- A run of one command in its own cluster is two commits and no letter between groups.
- A handoff is at most four writes that a quorum confirms: the base (Ready), the entry (Acked), the first
  state (Installed), the opening (Sync, for whoever was not Installed by then). Its gap is the time in which
  nobody serves.
- An idle group of k members sends at most 2(k-1) messages per lease: a touch to each, and its answer.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from comesh.core.group.replica import DOUBT
from comesh.core.group_messages import Acked, InConfig, Update
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.plan import DEPLOYMENT, SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.core.records import HandoffRecord
from comesh.core.strategies import Strategy
from comesh.core.traces import Finished
from comesh.experiments.measures.histories import Change, Commit
from comesh.experiments.measures.mesh import FOR_EVER_MS, HOP_MS, Mesh, by_hand, switches
from comesh.experiments.measures.mesh_operations import crash_leader, transfers
from comesh.sim.topology import Shape, make_topology
from protocol_rows import Row, at_most, spread

DEVICES = 250
F = 2
WARM_S = 5.0
NEARLY = 1e-6
"""Times are sums of floats."""
RUN_COMMITS = 2
HANDOFF_COMMITS = 4
FAILOVER_ROUND_TRIPS = 3
HANDOFF_KINDS = frozenset(
    {
        "Invite",
        "Ready",
        "Start",
        "Installed",
        "Sync",
        "Gap",
        "State",
        "Retire",
        "Moved",
        "Unseated",
        "SeatGiven",
    }
)
ELECTION_KINDS = frozenset(
    {"Ask", "Answer", "Claim", "Promise", "Refuse", "Sync", "Acked", "Pull", "State", "Gap"}
)


def mesh(shape: Shape, seed: int, *, f: int = F, devices: int = DEVICES, epoch_ms: int = FOR_EVER_MS) -> Mesh:
    """At rest: nothing fires."""
    topology = make_topology(shape, devices=devices, seed=seed)
    settings = ProtocolSettings(epoch_ms=epoch_ms)
    program = by_hand(topology, SelectionSettings(f=f), settings, {}, Strategy.SEQUENTIAL)
    return Mesh(topology, program, switches(topology), seed=seed)


def rows(shapes: Iterable[Shape], seeds: int) -> Iterator[Row]:
    for shape in shapes:
        resting = [mesh(shape, seed, epoch_ms=60_000) for seed in range(1, seeds + 1)]
        for one in resting:
            one.run(WARM_S + 60.0)
        yield commit_row(shape, resting)
        yield from handoff_rows(shape, resting)
        yield from failover_rows(shape, seeds)
    yield idle_row()
    yield from run_rows()


# -- commits -----------------------------------------------------------------------------------------------


def round_trips(one: Mesh, commit: Commit) -> float:
    """How many round trips to the f-th nearest member it took."""
    hops = 2 * one.quorum_hops(commit.leader, commit.config.nodes, commit.config.quorum)
    return (commit.committed_ms - commit.proposed_ms) / HOP_MS / hops


def commit_row(shape: Shape, meshes: list[Mesh]) -> Row:
    took = [round_trips(one, commit) for one in meshes for commit in one.commits]
    what = f"{shape}: a commit, in round trips to the f-th nearest member ({len(took)} commits)"
    return at_most(what, max(took), 1.0 + NEARLY, f"worst; least {min(took):.3f}")


# -- failover ----------------------------------------------------------------------------------------------


class Failover(NamedTuple):
    round_trips: float
    """From the winner's first Ask to serving, by its way to the f-th nearest that lives."""
    noticed_ms: float
    """From the crash to the first Ask of anybody."""
    claims: int
    """Members that claimed."""
    messages: int


def fail_over(one: Mesh, group: GroupId, dead: NodeId) -> Failover | None:
    """What follows its leader's crash just now; None: nobody serves it in time."""
    crashed_ms = one.now_ms
    one.sent.clear()
    one.run(10.0)
    served = [change for change in one.changes if _serves(change, group) and change.at_ms > crashed_ms]
    if not served:
        return None
    winner, serving_ms = served[0].node, served[0].at_ms
    spoken = [sent for sent in one.sent if sent.group == group and sent.at_ms <= serving_ms]
    asks = [sent for sent in spoken if sent.kind == "Ask" and sent.message.body != DOUBT]
    own_ask_ms = next(sent.at_ms for sent in asks if sent.by == winner)
    config = served[0].told.config
    living = [node for node in config.nodes if node != dead]
    hops = 2 * one.quorum_hops(winner, living, config.quorum)
    first_ms = asks[0].at_ms
    counted = [sent for sent in spoken if sent.kind in ELECTION_KINDS and sent.at_ms >= first_ms]
    return Failover(
        round_trips=(serving_ms - own_ask_ms) / HOP_MS / hops,
        noticed_ms=first_ms - crashed_ms,
        claims=len({sent.by for sent in spoken if sent.kind == "Claim"}),
        messages=len(counted),
    )


def _serves(change: Change, group: GroupId) -> bool:
    return change.told.group == group and change.told.state == "serving"


def failover_rows(shape: Shape, seeds: int) -> Iterator[Row]:
    took: list[Failover | None] = []
    cut = 0
    for seed in range(1, seeds + 1):
        for group in sorted(mesh(shape, seed).program.plan.genesis):
            one = mesh(shape, seed)
            one.run(WARM_S)
            dead = crash_leader(one, group) if group != DEPLOYMENT else None
            if dead is not None:
                took.append(fail_over(one, group, dead))
            else:
                cut += group != DEPLOYMENT
    alone = [one for one in took if one is not None and one.claims == 1]
    messages = spread([one.messages for one in alone])
    told = f"worst of {len(alone)} without rivals, of {len(took)}; {messages} messages"
    what = f"{shape}: a failover, in round trips after suspicion"
    yield at_most(
        what, max((one.round_trips for one in alone), default=9e9), FAILOVER_ROUND_TRIPS + NEARLY, told
    )
    noticed = [one.noticed_ms / 1000 for one in took if one is not None]
    yield Row(
        f"{shape}: from a crash to the first Ask, s", max(noticed, default=9e9), "", None, spread(noticed)
    )
    told = f"{cut} crashes cut the mesh so that no quorum was left together" if cut else ""
    yield at_most(f"{shape}: groups that nobody took over in 10 s", sum(one is None for one in took), 0, told)


# -- handoffs ----------------------------------------------------------------------------------------------


class Handover(NamedTuple):
    commits: int
    gap_hops: float
    messages: int
    size_bytes: int
    late: int
    """Members that were told the state twice: Sync came before Start."""


def handovers(one: Mesh) -> Iterator[Handover]:
    for ending, serving in transfers(one):
        if serving.at_ms + 1000.0 < one.now_ms:
            yield _handover(one, ending, serving)


def _handover(one: Mesh, ending: Change, serving: Change) -> Handover:
    group, number = ending.told.group, ending.told.config.number
    spoken = [
        sent
        for sent in one.sent
        if isinstance(sent.message, InConfig)
        and sent.message.group == group
        and sent.message.number in (number, number + 1)
        and (sent.message.number == number or sent.at_ms < serving.at_ms + 1000.0)
        and _hands_over(sent.message, ending)
    ]
    kinds = Counter(sent.kind for sent in spoken)
    entries = sum(
        commit.group == group
        and isinstance(commit.entry[0], HandoffRecord)
        and commit.config.number == number
        for commit in one.commits
    )
    rounds = sum(kind in kinds for kind in ("Ready", "Installed", "Sync"))
    return Handover(
        commits=entries + rounds,
        gap_hops=(serving.at_ms - ending.at_ms) / HOP_MS,
        messages=len(spoken),
        size_bytes=sum(sent.size_bytes for sent in spoken),
        late=kinds["Gap"],
    )


def _hands_over(message: InConfig, ending: Change) -> bool:
    match message.body:
        case Update(entries=entries):
            return any(isinstance(entry[0], HandoffRecord) for entry in entries)
        case Acked(number=number):
            return message.number > ending.told.config.number or number > ending.told.number
        case body:
            return type(body).__name__ in HANDOFF_KINDS


def handoff_rows(shape: Shape, meshes: list[Mesh]) -> Iterator[Row]:
    done = [one for each in meshes for one in handovers(each)]
    messages, size = spread([one.messages for one in done]), spread([one.size_bytes for one in done])
    yield at_most(
        f"{shape}: commits of a handoff ({len(done)} handoffs)",
        max((one.commits for one in done), default=9e9),
        HANDOFF_COMMITS,
        f"worst; {messages} messages, {size} bytes",
    )
    gaps = [one.gap_hops for one in done]
    late = sum(one.late for one in done)
    yield Row(
        f"{shape}: nobody serves during a handoff, hops",
        max(gaps),
        "",
        None,
        f"{spread(gaps)}; {late} members were sent a Sync before their Start came",
    )


# -- runs --------------------------------------------------------------------------------------------------


class RunCost(NamedTuple):
    commits: int
    messages: int


def run_cost(devices: tuple[DeviceId, ...], strategy: Strategy, seed: int) -> RunCost:
    """One run over these devices, alone in its mesh."""
    topology = make_topology(Shape.GRID, devices=DEVICES, seed=seed)
    selection, settings = SelectionSettings(f=F), ProtocolSettings(epoch_ms=FOR_EVER_MS)
    program = by_hand(topology, selection, settings, {"run": devices}, strategy)
    one = Mesh(topology, program, switches(topology), seed=seed)
    one.run(WARM_S)
    one.commits.clear()
    one.sent.clear()
    one.fire(next(iter(program.routines)))
    one.run(20.0)
    ended = [traced for traced in one.traces if isinstance(traced.trace, Finished)]
    assert len(ended) == 1, f"{len(ended)} runs finished"
    return RunCost(len(one.commits), sum(sent.work is not None for sent in one.sent))


def devices_of(clusters: int, each: int, seed: int) -> tuple[DeviceId, ...]:
    """The first so many devices of each of the first so many clusters."""
    one = mesh(Shape.GRID, seed)
    chosen = one.program.plan.clusters[:clusters]
    return tuple(device for cluster in chosen for device in sorted(cluster.devices)[:each])


def run_rows(seed: int = 1) -> Iterator[Row]:
    for strategy in Strategy:
        single = run_cost(devices_of(1, 1, seed), strategy, seed)
        what = f"{strategy}: commits of a run of one command in its own cluster"
        yield at_most(what, single.commits, RUN_COMMITS, f"{single.letters} letters")
        for clusters, each in ((1, 4), (4, 1)):
            cost = run_cost(devices_of(clusters, each, seed), strategy, seed)
            what = (
                f"{strategy}: commits of a run of four commands in {clusters} cluster{'s' * (clusters > 1)}"
            )
            yield Row(what, cost.commits, "", None, f"{cost.letters} letters")


# -- idle --------------------------------------------------------------------------------------------------


def idle_row() -> Row:
    one = mesh(Shape.GRID, 1, f=1, devices=50)
    one.run(WARM_S)
    one.sent.clear()
    leases = 60
    one.run(float(leases))
    assert all(len(one.config(group).seats) == 3 for group in one.program.plan.genesis)
    counts = Counter(sent.group for sent in one.sent if sent.group is not None)
    most = max(counts.values()) / leases
    return at_most("messages of an idle group of 3, per lease", most, 4, "busiest group")

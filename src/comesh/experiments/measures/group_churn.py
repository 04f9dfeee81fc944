"""Operations inside groups while nodes come and go.

Each chosen node crashes or joins once, half of them each, at a uniform time in the experiment. Who joins is
down when the experiment begins, and comes with an empty disk. Before the experiment all run, and those who
are to be down are taken away one after the other, so that the groups are made of who is there: the first
members of a group are pinned in the plan, whoever runs, which has nothing to do with churn.

Routines touch devices that no churn can take away, the same ones at every share: a command to a device that
is gone holds up the group that sent it, and what is measured is the group. Without churn nobody has to be
elected: then leaders are crashed one after the other in a mesh of its own, as P11 does.
"""

import math

from comesh.core.plan import DEPLOYMENT
from comesh.core.streams import stream
from comesh.experiments.measures.churn import Churn, drawn, spared
from comesh.experiments.measures.mesh import Mesh
from comesh.experiments.measures.mesh_operations import (
    FIRED_EVERY_S,
    WARM_S,
    Elections,
    elected,
    failovers,
    mesh_at_work,
    rows_of,
    worked,
)
from comesh.experiments.measures.presets import Running
from comesh.experiments.measures.selections import Distances
from comesh.experiments.stage import Row
from comesh.sim.fault_schedules import Schedule, inject
from comesh.sim.faults import Crash, Restart
from comesh.sim.group_watch import LiveGroups
from comesh.sim.topology import Topology

APART_LEASES = 5.0
"""From one node that is taken away to the next, before the experiment: a group that lacks f replaces them
before, most probably, it lacks one more."""
SETTLE_S = 12.0
"""Then a group has replaced who is gone."""
LIVED = "quorum if all lived"
MAX_CHURN = 0.8
"""What churn of this share could take away no routine touches."""


def schedule(churn: Churn, *, begins_ms: float, lasts_ms: float, apart_ms: float, seed: int) -> Schedule:
    draws = stream(seed, "churn times")

    def some_time_ms() -> float:
        return begins_ms + draws.between(0.0, lasts_ms)

    gone = [Crash(at_ms=1000.0 * WARM_S + apart_ms * turn, node=node) for turn, node in enumerate(churn.join)]
    crashes = [Crash(at_ms=some_time_ms(), node=node) for node in churn.crash]
    joins = [Restart(at_ms=some_time_ms(), node=node, keep_disk=False) for node in churn.join]
    return Schedule((*gone, *crashes, *joins))


def _undisturbed(mesh: Mesh, *, since_ms: float) -> list[float]:
    """What the same quorums would take if all members lived and all stations relayed, in hops."""
    distances = Distances(mesh.world.topology)
    return [
        2.0
        * distances.to_quorum(
            (commit.leader, *(node for node in commit.config.nodes if node != commit.leader)),
            commit.config.quorum - 1,
        )
        for commit in mesh.commits
        if commit.group != DEPLOYMENT and commit.proposed_ms >= since_ms
    ]


def under_churn(topology: Topology, setup: Running, *, share: float, seed: int, epochs: float) -> list[Row]:
    """Rows as those of `operations`, elections being those that crashes happen to cause; and how long groups
    were served."""
    churn = drawn(list(topology.nodes), share, seed)
    apart_s = APART_LEASES * setup.lease_s
    begins_s = WARM_S + apart_s * len(churn.join) + SETTLE_S
    lasts_s = epochs * setup.epoch_s
    fired_s = FIRED_EVERY_S * math.ceil((begins_s + lasts_s) / FIRED_EVERY_S)  # until the end
    touched = spared(topology, MAX_CHURN, seed)
    mesh = mesh_at_work(topology, setup, seed=seed, seconds=fired_s, among=touched)
    elections = Elections(mesh)
    begins_ms = 1000.0 * begins_s
    plan = schedule(
        churn, begins_ms=begins_ms, lasts_ms=1000.0 * lasts_s, apart_ms=1000.0 * apart_s, seed=seed
    )
    inject(mesh.world, plan)
    mesh.run(begins_s)
    groups = LiveGroups(mesh.world, mesh.program.plan)
    looks = served = 0
    for _ in range(round(lasts_s)):
        mesh.run(1.0)
        groups.look()
        for group, now in groups.now.items():
            looks += group != DEPLOYMENT
            served += group != DEPLOYMENT and now.leader is not None
    by_crashes = elected(elections.done, setup, since_ms=begins_ms)
    rows = rows_of(
        {
            **worked(mesh, setup, since_ms=begins_ms),
            **(by_crashes if share else failovers(topology, setup, seed=seed)),
            LIVED: _undisturbed(mesh, since_ms=begins_ms),
        }
    )
    return [*rows, {"operation": "served", "share": served / looks}]

"""Makes nodes for the simulator: the core's Node for every name of a topology."""

from collections import Counter

from comesh.core.group.versions import Compile
from comesh.core.ids import Incarnation, NodeId
from comesh.core.membership import MembershipSettings, Roster
from comesh.core.membership.table import Table
from comesh.core.messages import MemberState
from comesh.core.node import Node, no_compiler
from comesh.core.program import Program
from comesh.core.streams import stream
from comesh.sim.machine import nonce_of
from comesh.sim.topology import Topology
from comesh.sim.world import NodeFactory


def members(
    topology: Topology,
    settings: MembershipSettings,
    *,
    seed: int,
    joined: bool = False,
    program: Program | None = None,
    compile_text: Compile = no_compiler,
) -> NodeFactory:
    """Returns a factory of nodes. All share one roster (and program: None is membership only, without
    groups); every life draws from a stream of its own.

    joined: first lives begin as if they had met already, so that a run can look at a mesh at rest. Later
    lives, and those of copied cards, join like strangers.
    """
    roster = Roster(topology.planned_nodes()) if program is None else program.roster
    lives: Counter[NodeId] = Counter()
    known = _everyone(roster, seed) if joined else None

    def make(node_id: NodeId) -> Node:
        lives[node_id] += 1
        life_seed = stream(seed, f"node {node_id} {lives[node_id]}").word()
        table = known.copy() if known is not None and lives[node_id] == 1 else None
        return Node(
            own=node_id,
            roster=roster,
            membership=settings,
            seed=life_seed,
            table=table,
            program=program,
            compile_text=compile_text,
        )

    return make


def _everyone(roster: Roster, seed: int) -> Table:
    """Returns the membership table of a mesh in which all first lives have met."""
    table = Table(roster)
    for number, node_id in enumerate(roster.ids):
        table.set(number, Incarnation(1, nonce_of(seed, node_id, 1)), MemberState.ALIVE)
    return table

"""A handful of seeds of the swarm of operations, and what it does to a mesh. `make operations` runs many."""

from collections import Counter

import pytest
from msgspec.structs import replace

from comesh.core.ids import NodeId
from comesh.core.node import Node
from comesh.sim.fault_schedules import Schedule
from comesh.sim.operations import MEANINGS, Operation, What
from comesh.sim.operations_case import Compiler, Edit, draw
from comesh.sim.operations_swarm import OperationsSwarm, run_seed
from comesh.sim.shrinking import whole
from comesh.sim.swarm import Verdict
from comesh.sim.world_settings import WorldSettings


def told(verdict: Verdict) -> str:
    violations = "\n".join(str(violation) for violation in verdict.broken)
    return f"{violations}\nreplay: comesh fuzz --seeds {verdict.seed}-{verdict.seed} --operations --verbose"


@pytest.mark.parametrize("seed", [2, 5, 7, 8, 9, 14])
def test_seeds_hold_every_promise(seed: int) -> None:
    verdict = run_seed(seed)
    assert not verdict.broken, told(verdict)
    assert verdict.simulated_s > 90


def test_a_seed_draws_and_does_the_same_every_time() -> None:
    assert run_seed(7) == run_seed(7)


def test_every_kind_of_operation_is_drawn() -> None:
    cases = [draw(seed)[0] for seed in range(60)]
    drawn = Counter(one.what for case in cases for one in case.operations)
    assert set(drawn) == set(What) == set(MEANINGS)
    requests = Counter((case.seed, one.request) for case in cases for one in case.operations)
    assert max(requests.values()) > 1, "some ask again"
    assert any(one.stale for case in cases for one in case.operations)


class Quiet:
    """A mesh without faults, in which only people act."""

    def __init__(self, *operations: Operation, seed: int = 4) -> None:
        drawn, self.topology, self.program, _ = draw(seed)
        settings = WorldSettings(start_spread_ms=0.0, strict=drawn.settings.strict)
        self.first = self.program.roster.ids[0]
        asked = tuple(replace(one, node=self.first) for one in operations)
        case = replace(drawn, faults=Schedule(), operations=asked, settings=settings)
        self.swarm = OperationsSwarm(seed, case=case)
        self.world = self.swarm.world

    def living(self) -> tuple[NodeId, ...]:
        """Returns the nodes that the first node believes to be alive."""
        process = self.world.machines[self.first].process
        assert process is not None
        assert isinstance(process.node, Node)
        return process.node.membership.living


def operation(what: What, of: NodeId | None = None, **more: object) -> Operation:
    return replace(
        Operation(at_ms=10_000.0, what=what, node=NodeId(""), request=str(what), by="ann", of=of), **more
    )


def _seed_with_joiner() -> tuple[int, NodeId]:
    for seed in range(20):
        _, topology, program, _ = draw(seed)
        later = sorted(set(topology.nodes) - set(program.roster.ids))
        if later:
            return seed, later[0]
    raise AssertionError("nobody joins in any of these seeds")


def test_a_node_joins_with_an_empty_disk() -> None:
    seed, node = _seed_with_joiner()
    mesh = Quiet(operation(What.JOIN, node, later_ms=5000.0), seed=seed)
    mesh.world.run_until(12_000.0)
    assert not mesh.world.runs(node)
    verdict = mesh.swarm.run()
    assert not verdict.broken, told(verdict)
    assert not mesh.world.machines[node].disk.initialised
    assert node in mesh.living()
    assert verdict.done["joined"] == 1


def test_a_revoked_node_is_replaced_under_its_name() -> None:
    node = sorted(draw(4)[2].roster.ids)[-1]
    mesh = Quiet(operation(What.REVOKE, node, later_ms=8000.0))
    mesh.world.run_until(9000.0)
    old = mesh.world.machines[node]
    verdict = mesh.swarm.run()
    assert not verdict.broken, told(verdict)
    assert mesh.world.revoked == [old]
    assert node in mesh.living()
    assert mesh.world.machines[node] is not old
    assert verdict.done["replaced"] == 1


def test_one_of_two_versions_on_one_base_is_refused() -> None:
    one = operation(What.APPLY, pick=1)
    mesh = Quiet(one, replace(one, request="rival", pick=2, by="bob"))
    verdict = mesh.swarm.run()
    assert not verdict.broken, told(verdict)
    assert verdict.done["versions applied"] == 1
    (refused,) = mesh.swarm.answers.refused.values()
    assert "it builds on version 1, but the deployment is at 2" in refused


def test_versions_are_checked_like_deployments() -> None:
    case, topology, program, specs = draw(4)
    compiler = Compiler(case, topology, specs)
    for edit, why in (
        (Edit(seed=4, base=1, pick=0, add=program.roster.ids[0]), "already"),
        (Edit(seed=4, base=1, pick=0, remove=NodeId("nobody")), "there is no node"),
    ):
        with pytest.raises(ValueError, match=why):
            compiler(edit.text, 2, program)
    with pytest.raises(ValueError, match="follows"):
        compiler(Edit(seed=4, base=2, pick=0).text, 3, program)


def test_a_case_is_whole_before_it_shrinks() -> None:
    assert whole(5, "", "operations").case() == draw(5)[0]

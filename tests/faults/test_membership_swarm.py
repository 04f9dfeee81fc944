"""A few seeds of the swarm. `make fuzz` runs many.

ONCE_BROKEN found mistakes when they were added. What a seed draws changes whenever the swarm draws
something new (last: meshes of one and two nodes, power domains, announcements), so these no longer try what
they found then: they are seeds like any other.
"""

import pytest

from comesh.core.events import AnnouncementPosted
from comesh.sim.faults import PowerLoss
from comesh.sim.membership_swarm import MAX_NODES, Judge, draw, run_seed
from comesh.sim.simulation import Simulation
from comesh.sim.topology import Shape, make_topology

ONCE_BROKEN = (26, 36, 43, 86, 109, 132, 359, 397, 447, 463, 506, 878, 964, 1046, 2316)


@pytest.mark.parametrize("seed", [*range(1, 21), *ONCE_BROKEN])
def test_no_promise_is_broken(seed: int) -> None:
    verdict = run_seed(seed)
    assert not verdict.broken, f"{verdict.broken}\nreplay: {verdict.replay}"


def test_the_swarm_draws_small_meshes_power_domains_and_announcements() -> None:
    cases = [draw(seed) for seed in range(200)]
    assert {1, 2, MAX_NODES} <= {case.nodes for case, _ in cases}
    dark = [case for case, _ in cases if any(isinstance(fault, PowerLoss) for fault in case.faults.faults)]
    assert len(dark) > 10
    assert any(not topology.power_domains for _, topology in cases)
    for case, _ in cases:
        versions = [posting.announcement.version for posting in case.postings]
        assert versions == sorted(set(versions))
    assert sum(len(case.postings) for case, _ in cases) > 200


def test_boards_that_differ_are_seen() -> None:
    simulation = Simulation(make_topology(Shape.LINE, devices=2, smart=1.0), joined=True)
    judge = Judge(simulation)
    simulation.run(seconds=2)
    assert judge.wait_for_agreement() == 0
    process = simulation.world.machines[min(simulation.world.machines)].process
    assert process is not None
    simulation.world.give(process, AnnouncementPosted(key="one", version=1, value=b"x"))
    assert judge.verdict() == ["agreement was lost in the calm: boards differ, as between n0 and n1"]
    assert judge.wait_for_agreement() is not None


def test_a_seed_draws_the_same_case_for_ever() -> None:
    assert draw(7)[0] == draw(7)[0]
    assert draw(7)[0] != draw(8)[0]
    assert run_seed(3) == run_seed(3)

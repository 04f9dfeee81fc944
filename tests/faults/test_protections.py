"""The checkers bite: without a protection the swarm finds a broken promise, with it none.

The seeds are recorded in protection_seeds.json. When the core or the swarm changed so much that none of a
protection's seeds shows it any more:

    python tests/faults/find_protections.py 1-400 --write
"""

import pytest
from find_protections import FEW, recorded, shows, sound
from protections import PROTECTIONS, Protection, replaced

SEEDS = recorded()


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda one: one.name)
def test_its_loss_is_found_and_only_its_loss(protection: Protection) -> None:
    for seed in SEEDS[protection.name]:
        if shows(protection, seed) is not None and not sound(protection.judge, seed):
            return
    pytest.fail(f"none of {SEEDS[protection.name]} shows the loss of: {protection.name}: {protection.what}")


def test_a_few_seeds_are_recorded_of_every_protection() -> None:
    assert set(SEEDS) == {protection.name for protection in PROTECTIONS}
    assert all(1 <= len(seeds) <= FEW for seeds in SEEDS.values())


def test_a_protection_is_back_after_a_seed() -> None:
    class Guarded:
        def holds(self) -> bool:
            return True

    with pytest.raises(ZeroDivisionError), replaced(Guarded, "holds", lambda self: False):
        assert not Guarded().holds()
        raise ZeroDivisionError
    assert Guarded().holds()

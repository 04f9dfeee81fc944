"""P4: more members stay on under LSH than under random, and fewer the larger the mesh is."""

from selection_means import measured

from comesh.experiments.p04_overlap import EXPERIMENT
from comesh.experiments.stage import Table


def test_lsh_keeps_well_more_than_random_in_large_meshes() -> None:
    for devices in (250, 1000):
        assert measured(devices, "lsh-mix").mean("kept") >= 2 * measured(devices, "random").mean("kept")


def test_random_keeps_what_chance_keeps() -> None:
    """Two draws of 5 out of 400 nodes have 25/400 in common."""
    assert measured(1000, "random").mean("kept") < 2 * 25 / 400


def test_overlap_falls_for_large_meshes() -> None:
    assert measured(1000, "lsh-mix").mean("kept") < 0.75 * measured(50, "lsh-mix").mean("kept")


CHANCE = {50: 1.25, 100: 0.62, 250: 0.25, 1000: 0.06}


def test_it_is_tabulated_and_drawn() -> None:
    table = Table(
        row for size in (50, 1000) for name in ("lsh-mix", "random") for row in measured(size, name)
    )
    (found,) = EXPERIMENT.tables(table).values()
    small, large = found
    assert small["times"] < 2 < large["times"], "chance alone keeps many in a small mesh"
    assert (small["by_chance"], large["by_chance"]) == (25 / 20, 25 / 400)
    assert EXPERIMENT.draw(table).axes

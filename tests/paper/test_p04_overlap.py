"""P4: more members stay on under LSH than under random, and fewer the larger the mesh is."""

from selection_means import measured

from comesh.experiments.campaign import Verdict
from comesh.experiments.p04_overlap import compare, draw
from comesh.experiments.table import Table


def test_lsh_keeps_well_more_than_random_in_large_meshes() -> None:
    for devices in (250, 1000):
        assert measured(devices, "lsh-mix").mean("kept") >= 2 * measured(devices, "random").mean("kept")


def test_random_keeps_what_chance_keeps() -> None:
    """Two draws of 5 out of 400 nodes have 25/400 in common."""
    assert measured(1000, "random").mean("kept") < 2 * 25 / 400


def test_overlap_falls_for_large_meshes() -> None:
    assert measured(1000, "lsh-mix").mean("kept") < 0.75 * measured(50, "lsh-mix").mean("kept")


def test_it_is_compared_and_drawn() -> None:
    table = Table(
        row for size in (50, 1000) for name in ("lsh-mix", "random") for row in measured(size, name)
    )
    small, large, falls = compare(table)
    assert small.verdict is Verdict.DIFFERS
    assert "by chance" in small.why
    assert (large.verdict, falls.verdict) == (Verdict.AGREES, Verdict.AGREES)
    assert draw(table).axes

"""P4: more members stay on under LSH than under random, and fewer the larger the mesh is."""

from selection_means import measured

from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.measures.selection_campaign import DEFAULTS
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


CHANCE = {50: 1.25, 100: 0.62, 250: 0.25, 1000: 0.06}


def compared(added: dict[int, float], random: dict[int, float] = CHANCE) -> dict[str, Comparison]:
    """By what: with so many members kept more than at random."""
    kept = {"random": random, "lsh-mix": {size: one + added[size] for size, one in random.items()}}
    found = compare(
        Table(
            {"preset": "paper", "devices": size, "members": members, **DEFAULTS, "kept": kept[members][size]}
            for size in random
            for members in kept
        )
    )
    assert all(bool(one.why and one.in_short) is (one.verdict is Verdict.DIFFERS) for one in found)
    return {one.what.removesuffix(", paper"): one for one in found}


def test_chance_is_blamed_only_where_it_keeps_more_than_lsh_ever_adds() -> None:
    found = compared({50: 0.3, 100: 0.4, 250: 0.1, 1000: 0.5})
    small, large = found["members kept at N = 50"], found["members kept at N = 250"]
    assert "by chance" in small.why
    assert small.in_short == found["members kept at N = 100"].in_short
    assert "At N = 50 and 100 " in small.in_short
    assert "chance" not in large.why + large.in_short
    assert "LSH adds 0.10 to the 0.25 that stay at random" in large.why
    assert found["members kept at N = 1000"].verdict is Verdict.AGREES


def test_the_largest_mesh_is_not_excused_with_chance() -> None:
    found = compared({50: 2.0, 100: 1.0, 250: 0.5, 1000: 0.0})
    largest = found["members kept at N = 1000"]
    assert largest.verdict is Verdict.DIFFERS
    assert "chance" not in largest.why + largest.in_short


def test_where_lsh_keeps_well_more_nowhere_it_is_not_for_chance() -> None:
    found = compared(dict.fromkeys(CHANCE, 0.0))
    assert not any("chance" in one.why + one.in_short for one in found.values())


def test_what_random_keeps_beyond_chance_is_not_called_chance() -> None:
    found = compared(dict.fromkeys(CHANCE, 0.3), {**CHANCE, 100: 2.0})
    assert "chance" in found["members kept at N = 50"].why
    assert "chance" not in found["members kept at N = 100"].why


def test_an_overlap_that_does_not_fall_is_taken_apart() -> None:
    rises = compared({50: 0.3, 100: 0.4, 250: 0.5, 1000: 2.0})["members kept, LSH, N = 50 to 1000"]
    assert "from 1.25 to 0.06" in rises.why
    assert "from 0.30 to 2.00" in rises.why

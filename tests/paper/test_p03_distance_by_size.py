"""P3: the distance to a quorum stays small under LSH however large the mesh, and grows under random."""

from itertools import pairwise

from selection_means import measured

from comesh.experiments.p03_distance_by_size import EXPERIMENT
from comesh.experiments.stage import Table

SIZES = (50, 250, 1000)


def test_lsh_stays_small() -> None:
    hops = [measured(devices, "lsh-mix").mean("quorum_hops") for devices in SIZES]
    assert max(hops) <= 2.4
    assert hops[-1] <= 1.5 * hops[0]


def test_random_grows() -> None:
    hops = [measured(devices, "random").mean("quorum_hops") for devices in SIZES]
    assert all(one < following for one, following in pairwise(hops))
    assert hops[-1] >= 2 * hops[0]


def test_it_is_tabulated_and_drawn() -> None:
    table = Table(
        row for size in SIZES for members in ("lsh-mix", "random") for row in measured(size, members)
    )
    by_size, grown = EXPERIMENT.tables(table).values()
    assert by_size.columns == ["preset", "devices", "lsh-mix", "random"]
    near, anywhere = (row["quorum distance in hops"].value for row in grown)
    assert near < 1.5 and anywhere > 2
    assert len(EXPERIMENT.draw(table).axes[0].lines) == 2

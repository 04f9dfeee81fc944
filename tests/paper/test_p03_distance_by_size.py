"""P3: the distance to a quorum stays small under LSH however large the mesh, and grows under random."""

from itertools import pairwise

from selection_means import measured

from comesh.experiments.campaign import Verdict
from comesh.experiments.p03_distance_by_size import compare, draw
from comesh.experiments.table import Table

SIZES = (50, 250, 1000)


def test_lsh_stays_small() -> None:
    hops = [measured(devices, "lsh-mix").mean("quorum_hops") for devices in SIZES]
    assert max(hops) <= 2.4
    assert hops[-1] <= 1.5 * hops[0]


def test_random_grows() -> None:
    hops = [measured(devices, "random").mean("quorum_hops") for devices in SIZES]
    assert all(one < following for one, following in pairwise(hops))
    assert hops[-1] >= 2 * hops[0]


def test_it_is_compared_and_drawn() -> None:
    table = Table(
        row for size in SIZES for members in ("lsh-mix", "random") for row in measured(size, members)
    )
    stays, grows, linearly = compare(table)
    assert (stays.verdict, grows.verdict) == (Verdict.AGREES, Verdict.AGREES)
    assert linearly.verdict is Verdict.DIFFERS
    assert linearly.why
    assert draw(table).axes
    swapped = Table(
        {**row, "members": "random" if row["members"] == "lsh-mix" else "lsh-mix"} for row in table
    )
    assert [one.verdict for one in compare(swapped)[:2]] == [Verdict.DIFFERS, Verdict.DIFFERS]

"""The integers that selection is made of."""

import ast
from pathlib import Path
from statistics import NormalDist, fmean, pvariance

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

import comesh.core.selection as package
from comesh.core.draws import Draws, mix64
from comesh.core.plan import Lsh, Place
from comesh.core.selection.gaussian import LARGEST, ONE, gaussian
from comesh.core.selection.geometry import FARTHEST_MM, mean_spacing_mm, place_array, squared_distances
from comesh.core.selection.hashing import chain, chain_each, chain_on, id_hash, lowest_first
from comesh.core.selection.lsh import HashFamily
from comesh.core.selection.sizes import config_size, domain_cap

words = st.integers(0, 2**64 - 1)
FLOATING = {"float", "float16", "float32", "float64", "mean", "sqrt", "std", "average", "linalg"}


def test_no_float_is_anywhere_in_selection() -> None:
    """No float literal, true division, float type or function that answers with floats."""
    for path in sorted(Path(package.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            where = f"{path.name}:{getattr(node, 'lineno', 0)}"
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float | complex)), where
            assert not isinstance(node, ast.Div), where
            assert not (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div)), where
            assert not (isinstance(node, ast.Name) and node.id in FLOATING), where
            assert not (isinstance(node, ast.Attribute) and node.attr in FLOATING), where
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                maker = node.func.attr in {"array", "zeros", "full", "ones", "empty"}
                assert not maker or any(word.arg == "dtype" for word in node.keywords), f"{where}: no dtype"


@given(st.lists(words, min_size=1, max_size=5), words)
def test_arrays_are_mixed_as_single_words_are(last: list[int], key: int) -> None:
    assert chain_each(key, np.array(last, dtype=np.uint64)).tolist() == [chain_on(key, word) for word in last]
    assert [mix64(key ^ word) for word in last] == [chain_on(key, word) for word in last]


def test_ids_of_different_kinds_have_different_words() -> None:
    assert len({id_hash(kind, "lamp") for kind in ("node", "device", "routine", "group", "draw")}) == 5


@given(st.lists(words, max_size=400))
def test_lowest_first_is_a_stable_sort(hashes: list[int]) -> None:
    repeated = hashes + hashes[:40]
    expected = sorted(range(len(repeated)), key=lambda row: (repeated[row], row))
    assert list(lowest_first(np.array(repeated, dtype=np.uint64))) == expected


def test_gaussians_have_the_moments_and_the_shape_of_one() -> None:
    drawn = [gaussian(chain(7, number)) for number in range(6000)]
    assert max(map(abs, drawn)) <= LARGEST
    assert abs(fmean(drawn)) < 4 * ONE / len(drawn) ** 0.5
    assert pvariance(drawn) / ONE**2 == pytest.approx(1, abs=0.08)
    normal = NormalDist(0, ONE)
    for rank, entry in enumerate(sorted(drawn)):
        assert abs(normal.cdf(entry) - rank / len(drawn)) < 0.025


@limits(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(-FARTHEST_MM, FARTHEST_MM), min_size=6, max_size=6),
    st.sampled_from((1, 1000, 300_000_000)),
    st.integers(0, 2**64 - 1),
)
def test_buckets_do_not_overflow_at_the_farthest_places(
    vector: list[int], spacing_mm: int, seed: int
) -> None:
    family = HashFamily(Lsh(m=3, l=2, r_milli=1_000_000), seed, 5, spacing_mm)
    fast = family.buckets(np.array([vector], dtype=np.int64))[:, 0].tolist()
    slow = [
        (sum(a * v for a, v in zip(direction, vector, strict=True)) + offset) // family.width
        for direction, offset in zip(family.directions.tolist(), family.offsets.tolist(), strict=True)
    ]
    assert fast == slow
    assert all(0 <= offset < family.width for offset in family.offsets.tolist())


def test_squared_distances_do_not_overflow_at_the_farthest_places() -> None:
    ends = place_array([Place(*[-FARTHEST_MM] * 3), Place(*[FARTHEST_MM] * 3)])
    assert squared_distances(ends, ends[0]).tolist() == [0, 3 * (2 * FARTHEST_MM) ** 2]


def test_near_vectors_share_buckets_more_often() -> None:
    """What makes the hashing locality-sensitive: the nearer, the likelier a common bucket."""
    shared = []
    for away_mm in (0, 1000, 3000, 9000):
        pair = np.array([[0] * 6, [away_mm, 0, 0] * 2], dtype=np.int64)
        families = (HashFamily(Lsh(m=2, l=2, r_milli=4000), 1, epoch, 1000) for epoch in range(300))
        shared.append(
            sum(
                len(family.sharing(found, found[:, :1])) - 1
                for family in families
                for found in [family.buckets(pair)]
            )
        )
    assert shared[0] == 300
    assert shared == sorted(shared, reverse=True)
    assert shared[1] > 4 * shared[3]


def test_the_mean_spacing_of_a_grid_is_its_step() -> None:
    for sides in ((9, 1, 1), (5, 4, 1), (3, 3, 3)):
        places = [Place(700 * x, 700 * y, 700 * z) for x, y, z in np.ndindex(*sides)]
        assert mean_spacing_mm(place_array(places)) == 700


def test_the_mean_spacing_does_not_collapse_where_places_stand_in_pairs() -> None:
    pairs = [Place(10_000 * x + twin, 0, 0) for x in range(10) for twin in (0, 50)]
    assert mean_spacing_mm(place_array(pairs)) > 4000
    assert mean_spacing_mm(place_array([Place(5, 5, 5)] * 4)) == 1


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=12))
def test_the_mean_spacing_does_not_depend_on_order(xs: list[int]) -> None:
    shuffled = list(xs)
    Draws(len(xs)).shuffle(shuffled)
    one, other = ([Place(x, x * x % 7, 0) for x in order] for order in (xs, shuffled))
    assert mean_spacing_mm(place_array(one)) == mean_spacing_mm(place_array(other))


@pytest.mark.parametrize(
    ("f", "alive", "nodes", "size"),
    [
        (2, 9, 9, 5),
        (2, 5, 9, 5),
        (2, 4, 9, 3),
        (2, 3, 9, 3),
        (2, 2, 9, 3),
        (2, 1, 9, 3),
        (2, 0, 9, 3),
        (1, 1, 3, 3),
        (1, 2, 2, 1),
        (1, 0, 2, 1),
        (1, 1, 1, 1),
        (0, 5, 5, 1),
        (0, 0, 5, 1),
    ],
)
def test_few_nodes_make_smaller_odd_configs(f: int, alive: int, nodes: int, size: int) -> None:
    assert config_size(f, alive, nodes) == size


@pytest.mark.parametrize(
    ("size", "domains", "cap"),
    [(5, [0, 0, 1, 1, 2, 2], 2), (5, [0, 0, 0, 0, 1, 2], 3), (5, [0] * 7, 5), (3, [0, 0, 1], 2), (1, [0], 1)],
)
def test_the_cap_is_the_smallest_that_fits(size: int, domains: list[int], cap: int) -> None:
    assert domain_cap(size, domains) == cap

"""Tests of the integer arithmetic of selection."""

import ast
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import NormalDist, fmean, pvariance

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from selection_plans import ARITHMETICS

import comesh.core.selection as package
from comesh.core import arithmetic as core_arithmetic
from comesh.core.arithmetic import FARTHEST_MM, Arithmetic, point_of
from comesh.core.draws import Draws, mix64
from comesh.core.plan import Lsh, Place
from comesh.core.selection.hashing import chain, chain_on, id_hash
from comesh.core.selection.lsh import LARGEST, ONE, HashFamily, gaussian
from comesh.core.selection.members import config_size, domain_cap
from comesh.sim import vectorised

words = st.integers(0, 2**64 - 1)
each_arithmetic = pytest.mark.parametrize("arithmetic", ARITHMETICS, ids=lambda one: type(one).__name__)
ARITHMETIC = (core_arithmetic.__file__, vectorised.__file__)
FLOATING = {"float", "float16", "float32", "float64", "mean", "sqrt", "std", "average", "linalg"}


def without_probing(tree: ast.AST) -> Iterator[ast.AST]:
    yield tree
    for child in ast.iter_child_nodes(tree):
        if not (isinstance(child, ast.FunctionDef) and child.name.startswith("probe_")):
            yield from without_probing(child)


def test_no_float_is_anywhere_in_selection() -> None:
    """No float literal, true division, float type or function that answers with floats; probing has some."""
    paths = [*sorted(Path(package.__file__).parent.glob("*.py")), *map(Path, ARITHMETIC)]
    for path in paths:
        for node in without_probing(ast.parse(path.read_text())):
            where = f"{path.name}:{getattr(node, 'lineno', 0)}"
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float | complex)), where
            assert not isinstance(node, ast.Div), where
            assert not (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div)), where
            assert not (isinstance(node, ast.Name) and node.id in FLOATING), where
            assert not (isinstance(node, ast.Attribute) and node.attr in FLOATING), where
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                maker = node.func.attr in {"array", "zeros", "full", "ones", "empty"}
                assert not maker or any(word.arg == "dtype" for word in node.keywords), f"{where}: no dtype"


@each_arithmetic
@given(last=st.lists(words, min_size=1, max_size=5), key=words)
def test_columns_are_mixed_as_single_words_are(arithmetic: Arithmetic, last: list[int], key: int) -> None:
    mixed = arithmetic.chain_each(key, arithmetic.words(last))
    assert [int(word) for word in mixed] == [chain_on(key, word) for word in last]
    assert [mix64(key ^ word) for word in last] == [chain_on(key, word) for word in last]


def test_ids_of_different_kinds_have_different_words() -> None:
    assert len({id_hash(kind, "lamp") for kind in ("node", "device", "routine", "group", "draw")}) == 5


@each_arithmetic
@given(hashes=st.lists(words, max_size=400))
def test_lowest_first_is_a_stable_sort(arithmetic: Arithmetic, hashes: list[int]) -> None:
    repeated = hashes + hashes[:40]
    expected = sorted(range(len(repeated)), key=lambda row: (repeated[row], row))
    assert list(arithmetic.lowest_first(arithmetic.words(repeated))) == expected


def test_gaussians_have_the_right_moments_and_shape() -> None:
    drawn = [gaussian(chain(7, number)) for number in range(6000)]
    assert max(map(abs, drawn)) <= LARGEST
    assert abs(fmean(drawn)) < 4 * ONE / len(drawn) ** 0.5
    assert pvariance(drawn) / ONE**2 == pytest.approx(1, abs=0.08)
    normal = NormalDist(0, ONE)
    for rank, entry in enumerate(sorted(drawn)):
        assert abs(normal.cdf(entry) - rank / len(drawn)) < 0.025


axes = st.integers(-FARTHEST_MM, FARTHEST_MM)
far_points = st.lists(st.tuples(axes, axes, axes), min_size=1, max_size=30)
near_points = st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=1, max_size=30)


@limits(max_examples=60, deadline=None)
@given(st.one_of(far_points, near_points), st.data())
def test_both_arithmetics_agree_also_at_the_farthest_places(
    points: list[core_arithmetic.Point], data: st.DataObject
) -> None:
    plain, fast = ARITHMETICS
    row = data.draw(st.integers(0, len(points) - 1))
    some = data.draw(st.lists(st.sampled_from(range(len(points))), unique=True))
    hashes = data.draw(
        st.lists(st.sampled_from((0, 5, 2**64 - 1)), min_size=len(points), max_size=len(points))
    )
    found = [
        (
            one.by_distance(places, points[row]),
            one.nearest_first(some, places, points[row], one.words(hashes)),
            one.nearest_points(places, points[: row + 1]),
            one.mean_spacing_mm(places),
            one.by_distance(one.rows(places, some), points[row]),
            one.probe_weights(places, row, 2),
            one.probe_order(hashes[row], [turn % 4 for turn in range(len(points))]),
        )
        for one, places in ((one, one.places(points)) for one in (plain, fast))
    ]
    assert found[0] == found[1]


@limits(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(axes, min_size=6, max_size=6), min_size=1, max_size=9),
    st.sampled_from((1, 1000, 300_000_000)),
    st.sampled_from((1, 4000, 1_000_000)),
    st.integers(0, 2**64 - 1),
)
def test_buckets_do_not_overflow_at_the_farthest_places(
    vectors: list[list[int]], spacing_mm: int, r_milli: int, seed: int
) -> None:
    functions = HashFamily(Lsh(m=3, l=2, r_milli=r_milli), seed, 5, spacing_mm).functions
    assert all(0 <= offset < functions.width for offset in functions.offsets)
    near = [[entry + 1 for entry in vectors[0]], *vectors[:1]]
    plain, fast = (
        [one.sharing(functions, one.buckets(functions, vectors + near), vector) for vector in vectors]
        for one in ARITHMETICS
    )
    assert plain == fast
    for row, vector in enumerate(vectors):
        numbers = [
            (sum(a * v for a, v in zip(direction, vector, strict=True)) + offset) // functions.width
            for direction, offset in zip(functions.directions, functions.offsets, strict=True)
        ]
        assert functions.buckets(vector) == [tuple(numbers[:3]), tuple(numbers[3:])]
        assert row in plain[row]


def test_near_vectors_share_buckets_more_often() -> None:
    """What makes the hashing locality-sensitive: the nearer, the likelier a common bucket."""
    shared = []
    for away_mm in (0, 1000, 3000, 9000):
        far = [away_mm, 0, 0] * 2
        families = (HashFamily(Lsh(m=2, l=2, r_milli=4000), 1, epoch, 1000) for epoch in range(300))
        together = [
            any(a == b for a, b in zip(one, other, strict=True))
            for family in families
            for one, other in [(family.functions.buckets([0] * 6), family.functions.buckets(far))]
        ]
        shared.append(sum(together))
    assert shared[0] == 300
    assert shared == sorted(shared, reverse=True)
    assert shared[1] > 4 * shared[3]


def spacing_mm(arithmetic: Arithmetic, places: list[Place]) -> int:
    return arithmetic.mean_spacing_mm(arithmetic.places([point_of(place) for place in places]))


@each_arithmetic
def test_the_mean_spacing_of_a_grid_is_its_step(arithmetic: Arithmetic) -> None:
    for sides in ((9, 1, 1), (5, 4, 1), (3, 3, 3)):
        places = [Place(700 * x, 700 * y, 700 * z) for x, y, z in product(*map(range, sides))]
        assert spacing_mm(arithmetic, places) == 700


@each_arithmetic
def test_the_mean_spacing_does_not_collapse_where_places_stand_in_pairs(arithmetic: Arithmetic) -> None:
    pairs = [Place(10_000 * x + twin, 0, 0) for x in range(10) for twin in (0, 50)]
    assert spacing_mm(arithmetic, pairs) > 4000
    assert spacing_mm(arithmetic, [Place(5, 5, 5)] * 4) == 1


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=12))
def test_the_mean_spacing_does_not_depend_on_order(xs: list[int]) -> None:
    shuffled = list(xs)
    Draws(len(xs)).shuffle(shuffled)
    one, other = ([Place(x, x * x % 7, 0) for x in order] for order in (xs, shuffled))
    assert spacing_mm(ARITHMETICS[0], one) == spacing_mm(ARITHMETICS[0], other)


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

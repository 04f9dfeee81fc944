from collections import Counter

from comesh.core.draws import Draws, mix64

FIRST_BELOW_1000 = [701, 387, 656]


def test_the_stream_is_splitmix64() -> None:
    """Fixed for ever: recorded seeds must replay."""
    assert mix64(0) == 0xE220A8397B1DCDAF, "the first output of SplitMix64 seeded with 0"
    draws = Draws(0)
    assert draws.word() == mix64(0xE220A8397B1DCDAF), "the stream starts at the mixed seed"
    assert [draws.below(1000) for _ in range(3)] == FIRST_BELOW_1000


def test_draws_are_even() -> None:
    draws = Draws(7)
    counts = Counter(draws.below(10) for _ in range(20_000))
    assert all(1800 < counts[digit] < 2200 for digit in range(10))
    assert 0.48 < sum(draws.unit() for _ in range(5000)) / 5000 < 0.52


def test_sample_gives_distinct_items() -> None:
    draws = Draws(3)
    assert len(set(draws.sample(range(20), 8))) == 8
    assert sorted(draws.sample(range(3), 8)) == [0, 1, 2]


def test_forks_do_not_disturb_each_other() -> None:
    one, other = Draws(5).fork(1), Draws(5).fork(1)
    apart = Draws(5).fork(2)
    words = [one.word() for _ in range(4)]
    assert words == [other.word() for _ in range(4)]
    assert words != [apart.word() for _ in range(4)]

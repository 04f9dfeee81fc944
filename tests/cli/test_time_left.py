"""How long a reproduction will go on: simulations by their pace, real trials by the clock."""

import pytest

from comesh.cli.time_left import TRUSTED_S, TimeLeft
from comesh.experiments.stage import Campaign, Parameters

SIMULATED = Campaign("simulated", lambda _: [], lambda _: [], about_s=lambda case: case["s"])
REAL = Campaign(
    "real", lambda _: [], lambda _: [], lambda case: case["s"], real=True, is_quiet=lambda case: case["quiet"]
)
SHORT: Parameters = {"s": 0.04}
SLOW: Parameters = {"s": 10.0}
NOISY: Parameters = {"s": 100.0, "quiet": False}
QUIET: Parameters = {"s": 100.0, "quiet": True}


def test_simulations_go_on_as_fast_as_they_were() -> None:
    """With two at a time, twenty of them would take 100 s."""
    left = TimeLeft(jobs=2, trials=4)
    for _ in range(20):
        left.add(SIMULATED, SLOW)
    for case in range(1, 6):
        told = left.done(SIMULATED, SLOW, case * 15.0)
    assert 75.0 < told < 225.0, "they take three times as long as thought, of which a part is believed"
    for case in range(6, 20):
        told = left.done(SIMULATED, SLOW, case * 15.0)
    assert told == pytest.approx(5.0 * (285.0 + TRUSTED_S) / (95.0 + TRUSTED_S)), "more and more of it"


def test_the_first_case_has_the_start_of_the_workers_in_it() -> None:
    left = TimeLeft(jobs=2, trials=4)
    for _ in range(1001):
        left.add(SIMULATED, SHORT)
    assert left.done(SIMULATED, SHORT, 6.0) < 2 * 1000 * 0.02, "and not 300 times as long as thought"


def test_real_trials_take_their_time_whatever_simulations_did() -> None:
    left = TimeLeft(jobs=2, trials=4)
    left.add(SIMULATED, SLOW)
    for _ in range(4):
        left.add(REAL, NOISY)
    left.add(REAL, QUIET)
    assert left.done(SIMULATED, SLOW, 500.0) == pytest.approx(100.0 + 50.0), "four at once, quiet ones two"
    assert left.done(REAL, NOISY, 600.0) == pytest.approx(75.0 + 50.0)


def test_what_was_measured_before_takes_no_time() -> None:
    left = TimeLeft(jobs=1, trials=1)
    for _ in range(3):
        left.add(SIMULATED, SLOW)
    left.drop(SIMULATED, SLOW)
    assert left.done(SIMULATED, SLOW, 10.0) == pytest.approx(10.0)

"""How long a reproduction will go on: simulations by their pace, real trials by the clock."""

import pytest

from comesh.cli.time_left import TimeLeft
from comesh.experiments.campaign import Campaign, Parameters

SIMULATED = Campaign("simulated", lambda _: [], lambda _: [], about_s=lambda case: case["s"])
REAL = Campaign(
    "real", lambda _: [], lambda _: [], lambda case: case["s"], real=True, is_quiet=lambda case: case["quiet"]
)
SLOW: Parameters = {"s": 10.0}
NOISY: Parameters = {"s": 100.0, "quiet": False}
QUIET: Parameters = {"s": 100.0, "quiet": True}


def test_simulations_go_on_as_fast_as_they_were() -> None:
    left = TimeLeft(jobs=2, trials=4)
    for _ in range(4):
        left.add(SIMULATED, SLOW)
    assert left.done(SIMULATED, SLOW, 15.0) == pytest.approx(45.0), "they take three times as long as thought"
    assert left.done(SIMULATED, SLOW, 20.0) == pytest.approx(20.0), "twice"


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

"""The quick forms of the lab's scenarios, on real processes."""

from pathlib import Path

import pytest

from comesh.lab.scenarios import SCENARIOS, run

QUICK = (
    "restarted-one-by-one",
    "leaders-die",
    "all-dark-strict",
    "parted-in-two",
    "disk-full",
    "leader-stands-still",
)
"""The longest first. `make lab` plays the others: all-dark-batched waits for half a minute by itself."""


@pytest.mark.parametrize("name", QUICK)
def test_a_scenario_holds(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    if scenario.why_not():
        pytest.skip(scenario.why_not())
    told: list[str] = []
    outcome = run(scenario, tmp_path / "stage", seed=1, say=told.append)
    assert outcome.held, "\n".join([*told, outcome.failed])


def test_every_scenario_says_what_it_proves() -> None:
    for scenario in SCENARIOS.values():
        assert scenario.proves.endswith("."), scenario.name

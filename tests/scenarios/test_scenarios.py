"""Golden transcripts: each scenario is played and told, and must read exactly as it did when it was reviewed.

After a change that is meant: `pytest tests/scenarios --rewrite`, then read the difference like code.
"""

from pathlib import Path

import clean_firings
import epoch_changes
import leader_deaths
import outages
import pytest
import safety_cases
from repertoire import SCENARIOS, play

from comesh.core.routines import runs
from comesh.sim.checks import Promise

MODULES = (clean_firings, epoch_changes, leader_deaths, outages, safety_cases)
"""Importing them registers their scenarios."""
MAX_LINES = 140
TRANSCRIPTS = Path(__file__).parent / "transcripts"


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_scenario(name: str, rewrite: bool) -> None:
    text, stage = play(name)
    assert stage.checks.violations == [], "\n".join(map(str, stage.checks.violations))
    path = TRANSCRIPTS / f"{name}.txt"
    if rewrite:
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} reads otherwise now; if that is meant: --rewrite"


def test_every_transcript_has_its_scenario() -> None:
    assert {path.stem for path in TRANSCRIPTS.glob("*.txt")} == set(SCENARIOS)


def test_transcripts_stay_short_enough_to_be_read() -> None:
    lines = {path.stem: len(path.read_text().splitlines()) for path in TRANSCRIPTS.glob("*.txt")}
    assert {name: count for name, count in lines.items() if not 30 <= count <= MAX_LINES} == {}


def test_a_rule_that_is_missing_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The promises are really judged: a run that does not wait for its locks breaks one."""
    monkeypatch.setattr(runs, "holds_all", lambda run: True)
    text, stage = play("safety-sla-2")
    assert Promise.SAFETY in {violation.promise for violation in stage.checks.violations}
    assert "BROKEN" in text

"""Tests that the swarm's quiet phase ends at rest, or reports the work left."""

import pytest

from comesh.core.ids import RoutineId
from comesh.core.routines.runs import Runs
from comesh.core.step import Step
from comesh.sim import swarm
from comesh.sim.checks import Promise
from comesh.sim.swarm import Swarm
from comesh.sim.swarm_case import BREAKING_MS


def test_nothing_is_left_at_the_end() -> None:
    tried = Swarm(102)
    verdict = tried.run()
    assert verdict.broken == ()
    assert tried.rests()
    assert verdict.runs > 0


def test_a_firing_that_never_starts_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: Runs, routine: RoutineId, step: Step) -> None:
        """The next firing does not start."""

    monkeypatch.setattr(Runs, "_next", forget)
    broken = Swarm(102).run().broken
    assert [violation.promise for violation in broken] == [Promise.PROGRESS] * len(broken)
    assert any("is waiting since" in violation.what for violation in broken)


def test_a_phase_that_ends_too_soon_reports_the_work_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "QUIET_MS", swarm.SLICE_MS)
    tried = Swarm(102)
    (violation,) = tried.run().broken
    assert violation.promise is Promise.PROGRESS
    assert "is live" in violation.what
    assert tried.world.now_ms == BREAKING_MS + swarm.SLICE_MS

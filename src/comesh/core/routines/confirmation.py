"""Collects what the devices of a run tell a new leader: who holds them, and the outcomes of earlier commands.

A leader that finds a run EXECUTING, or one that went through an outage, asks all of its devices with its own
fence. Only when all answered does it go on, with the first step that no device knows an outcome of; the
device itself knows whether that one is under way.
"""

from msgspec.structs import replace

from comesh.core.ids import DeviceId
from comesh.core.records import Outcome, RunRecord, StepResult
from comesh.core.work_messages import Fenced, FencedDevice


class Confirmation:
    def __init__(self) -> None:
        self._answers: dict[DeviceId, FencedDevice] = {}

    def take(self, body: Fenced) -> None:
        for one in body.devices:
            self._answers[one.device] = one

    def unanswered(self, run: RunRecord) -> list[DeviceId]:
        return [one.device for one in run.held if one.device not in self._answers]

    def lost(self, run: RunRecord) -> list[DeviceId]:
        """Returns the devices that the run no longer holds under its committed grant."""
        return [one.device for one in run.held if self._answers[one.device].held != one.stamp]

    def merged(self, run: RunRecord) -> RunRecord:
        """Returns the run with the outcomes that its devices know, up to the first gap.

        A refused step was not tried, perhaps for the fence of the leader before: it is asked for again.
        """
        known = {
            state.step: StepResult(state.outcome, state.detail)
            for one in self._answers.values()
            for state in one.steps
            if state.outcome is not None and state.outcome is not Outcome.REFUSED
        }
        progress = list(run.progress)
        while len(progress) < len(run.steps) and len(progress) in known:
            progress.append(known[len(progress)])
        return replace(run, progress=tuple(progress))

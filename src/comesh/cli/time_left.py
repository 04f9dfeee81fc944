"""Estimates how long a reproduction will go on.

Campaigns say about how long their cases take. Of simulations that depends on the machine, so what is left
goes by how fast they were so far: the more of them there were, the more. Real trials take the time that they
take, whatever simulations did.
"""

from comesh.experiments.reproduction import QUIET_AT_ONCE
from comesh.experiments.stage import Campaign, Parameters

TRUSTED_S = 30.0
"""What campaigns say counts as much as so long a measurement: the first case of all also starts the workers,
and says next to nothing of the others."""


class TimeLeft:
    def __init__(self, jobs: int, trials: int) -> None:
        self._jobs = jobs
        self._trials = trials
        self._simulated_s = self._real_s = 0.0
        """Seconds left of each kind, as campaigns estimate their cases, this many at once."""
        self._measured_s = 0.0
        self._took_s = 0.0

    def add(self, campaign: Campaign, case: Parameters, times: int = 1) -> None:
        if campaign.real:
            at_once = min(QUIET_AT_ONCE, self._trials) if campaign.is_quiet(case) else self._trials
            self._real_s += times * campaign.about_s(case) / at_once
        else:
            self._simulated_s += times * campaign.about_s(case) / self._jobs

    def drop(self, campaign: Campaign, case: Parameters) -> None:
        self.add(campaign, case, -1)

    def done(self, campaign: Campaign, case: Parameters, after_s: float) -> float:
        """Counts one more case, at this time after the beginning. Returns how long the others will take."""
        self.drop(campaign, case)
        if not campaign.real:
            self._measured_s += campaign.about_s(case) / self._jobs
            self._took_s = after_s
        return self.seconds

    @property
    def seconds(self) -> float:
        pace = (self._took_s + TRUSTED_S) / (self._measured_s + TRUSTED_S)
        return max(0.0, self._simulated_s) * pace + max(0.0, self._real_s)

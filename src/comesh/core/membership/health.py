"""Implements Lifeguard's self-doubt: a node that gets few answers doubts itself first, and accuses more
slowly.

A score from 0 (well) to 8; timeouts are stretched by (1 + score). The probing period is not (Lifeguard's is):
when a power domain goes, helpers are silent because they are dead, and that is no time to slow down.
"""

MAX_SCORE = 8


class Health:
    __slots__ = ("score",)

    def __init__(self) -> None:
        self.score = 0

    def better(self) -> None:
        """Counts an answered probe."""
        if self.score:
            self.score -= 1

    def worse(self, by: int = 1) -> None:
        """Counts a failed probe, silent helpers, or a refutation that this node had to send."""
        self.score = min(MAX_SCORE, self.score + by)

    def stretch(self, duration_ms: float) -> float:
        return duration_ms * (1 + self.score)

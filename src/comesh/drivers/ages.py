"""Measures how old a command is on arrival, without clocks that agree.

A datagram may wait anywhere: in a socket of a process that was stopped, in a queue, in the mesh. A command
that waited too long must not be begun: whoever sent it has given it up, and another run may hold the device.
The protocol allows a device that fences by itself three seconds after the timeout.

So each answer carries what the clock of the device's process showed, and each command the latest that its
sender can know of it: what it showed in the last answer, and the time since then. That is never more than it
really shows, so a command is never taken for younger than it is. One that is too old, or comes from somebody
who knows nothing of the clock yet, is not begun and answered with TOO_LATE. The protocol knows then that it
was not done and sends it again, and the sender knows the clock.
"""

from typing import Final

MAX_AGE_MS: Final = 2000.0
"""Maximum age of a command, including the age of the answer before it."""
MAX_PAUSE_MS: Final = 900.0
"""A device skips an action that it is this late with, because its process was stopped. Together with
MAX_AGE_MS this stays below what the protocol allows."""


class PeerClock:
    """A lower bound for the clock of another process."""

    def __init__(self) -> None:
        self._life = ""
        self._ahead_ms = 0.0

    def heard(self, life: str, their_ms: float, own_ms: float) -> None:
        self._life = life
        self._ahead_ms = their_ms - own_ms

    def at(self, own_ms: float) -> tuple[str, float]:
        """Returns the life of that process and the least its clock shows; the life is empty if nothing is
        known."""
        return self._life, own_ms + self._ahead_ms


def is_too_old(life: str, at_ms: float, *, own_life: str, now_ms: float) -> bool:
    """True if a command sent when this clock showed at_ms, or later, is too old to begin."""
    return life != own_life or now_ms - at_ms > MAX_AGE_MS

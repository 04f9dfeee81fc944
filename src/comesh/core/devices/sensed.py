"""The state of one device as its leader knows it now. Nothing of it is committed."""

from comesh.core.ids import DeviceId, GroupId
from comesh.core.program import DeviceProgram, Fit
from comesh.core.stamps import Stamp
from comesh.core.values import Value

MAX_OPEN_READS = 4
"""Maximum open reads per device; the duration of an older one is not measured."""
NEVER_MS = float("inf")


class Sensed:
    __slots__ = (
        "answered",
        "calls",
        "deviation_ms",
        "device",
        "due_ms",
        "fit",
        "probing",
        "readings",
        "round_trip_ms",
        "up",
        "version",
        "watchers",
    )

    def __init__(self, program: DeviceProgram, watchers: tuple[GroupId, ...]) -> None:
        self.device: DeviceId = program.id
        self.fit: Fit | None = program.fit
        self.watchers = watchers
        """The groups of the routines whose clauses read it."""
        self.readings: dict[str, Value] | None = None
        """Latest readings; None: none came since serving began, or the device is down."""
        self.up = False
        """True if it has answered since serving began and has not been found down since."""
        self.version: Stamp | None = None
        """Version of the readings last sent to the watchers."""
        self.calls: dict[int, float] = {}
        """Reads under way: their numbers, and when they were sent."""
        self.answered = -1
        """The highest read that was answered: an older answer is outdated."""
        self.due_ms = NEVER_MS
        """Time at which to suspect the device or, while probing, to declare it down."""
        self.probing = False
        self.round_trip_ms = 0.0
        self.deviation_ms = 0.0

    def asked(self, call: int, now_ms: float) -> None:
        self.calls[call] = now_ms
        if len(self.calls) > MAX_OPEN_READS:
            del self.calls[next(iter(self.calls))]

    def overtake(self) -> None:
        """Mark open reads as overtaken: the device reported by itself, or answered a command."""
        if self.calls:
            self.answered = max(self.answered, 1 + max(self.calls))

    def sample(self, took_ms: float) -> None:
        """Update the estimate: srtt <- 7/8 srtt + 1/8 sample; deviation <- 3/4 deviation + 1/4 |srtt -
        sample|."""
        if not self.round_trip_ms:
            self.round_trip_ms = max(took_ms, 0.001)
            self.deviation_ms = took_ms / 2
            return
        self.deviation_ms += (abs(self.round_trip_ms - took_ms) - self.deviation_ms) / 4
        self.round_trip_ms += (took_ms - self.round_trip_ms) / 8

    def estimate_ms(self, usual_ms: float) -> float:
        """Returns srtt + 4 deviations; the default while nothing was measured."""
        return self.round_trip_ms + 4 * self.deviation_ms if self.round_trip_ms else usual_ms

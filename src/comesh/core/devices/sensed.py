"""What the leader knows of one device right now. Nothing of it is committed."""

from comesh.core.ids import DeviceId, GroupId
from comesh.core.program import DeviceProgram, Fit
from comesh.core.stamps import Stamp
from comesh.core.values import Value

MAX_OPEN_READS = 4
"""Reads of one device whose answers are waited for; what an older one took is not measured."""
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
        """None: it was not heard since serving began, or is down."""
        self.up = False
        """It was heard since serving began and has not been found down since."""
        self.version: Stamp | None = None
        """The version that the watchers were told last."""
        self.calls: dict[int, float] = {}
        """Reads under way: number, and when it was asked."""
        self.answered = -1
        """The highest read that was answered: an older answer says nothing new."""
        self.due_ms = NEVER_MS
        """When to suspect it, or, probing, to take it for down."""
        self.probing = False
        self.round_trip_ms = 0.0
        self.deviation_ms = 0.0

    def asked(self, call: int, now_ms: float) -> None:
        self.calls[call] = now_ms
        if len(self.calls) > MAX_OPEN_READS:
            del self.calls[next(iter(self.calls))]

    def overtake(self) -> None:
        """The device spoke by itself, or after a command: reads under way may have been answered before."""
        if self.calls:
            self.answered = max(self.answered, 1 + max(self.calls))

    def sample(self, took_ms: float) -> None:
        """srtt <- 7/8 srtt + 1/8 sample; deviation <- 3/4 deviation + 1/4 |srtt - sample|."""
        if not self.round_trip_ms:
            self.round_trip_ms = max(took_ms, 0.001)
            self.deviation_ms = took_ms / 2
            return
        self.deviation_ms += (abs(self.round_trip_ms - took_ms) - self.deviation_ms) / 4
        self.round_trip_ms += (took_ms - self.round_trip_ms) / 8

    def estimate_ms(self, usual_ms: float) -> float:
        """srtt + 4 deviations; the usual one while it was never measured."""
        return self.round_trip_ms + 4 * self.deviation_ms if self.round_trip_ms else usual_ms

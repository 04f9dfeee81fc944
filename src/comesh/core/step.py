"""One step of a node: the times it happens at and the effects it has, in order."""

from comesh.core.effects import CancelTimer, Effect, Observation, Observe, Send, SetTimer
from comesh.core.events import Timer
from comesh.core.ids import Incarnation, NodeId
from comesh.core.messages import Message


class Step:
    __slots__ = ("effects", "now_ms", "wall_ms")

    def __init__(self, now_ms: float, wall_ms: float) -> None:
        self.now_ms = now_ms
        """By the clock that is never set: what leases and durations are counted by."""
        self.wall_ms = wall_ms
        """By the clock that people read, which may be off and is set forward: for schedules and epochs."""
        self.effects: list[Effect] = []

    def send(self, to: NodeId, incarnation: Incarnation, message: Message) -> None:
        self.effects.append(Send(to, incarnation, message))

    def set_timer(self, timer: Timer, after_ms: float) -> None:
        self.effects.append(SetTimer(timer, after_ms))

    def cancel_timer(self, timer: Timer) -> None:
        self.effects.append(CancelTimer(timer))

    def observe(self, observation: Observation) -> None:
        self.effects.append(Observe(observation))

    def do(self, effect: Effect) -> None:
        self.effects.append(effect)

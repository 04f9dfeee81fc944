"""The heart: routes one event to the part of the node that it concerns."""

from collections.abc import Sequence
from typing import assert_never

from comesh.core.draws import Draws
from comesh.core.effects import Effect
from comesh.core.events import (
    ApplyAsked,
    DeviceAnswered,
    DeviceReported,
    FireAsked,
    JournalFailed,
    JournalMended,
    LeaveAsked,
    MessageReceived,
    NoticePosted,
    Started,
    TimerFired,
)
from comesh.core.ids import NodeId
from comesh.core.membership import Medley, MembershipSettings, Roster
from comesh.core.membership.table import Table
from comesh.core.step import Step

AnyEvent = (
    MessageReceived
    | TimerFired
    | DeviceAnswered
    | DeviceReported
    | JournalFailed
    | JournalMended
    | FireAsked
    | ApplyAsked
    | NoticePosted
    | Started
    | LeaveAsked
)


class Node:
    """One node of the mesh: `step` in, effects out, nothing else."""

    def __init__(
        self,
        *,
        own: NodeId,
        roster: Roster,
        membership: MembershipSettings,
        seed: int,
        seeds: Sequence[NodeId] = (),
        table: Table | None = None,
        deployment: int = 1,
    ) -> None:
        self.id = own
        self.deployment = deployment
        """The version that this node works by: every datagram carries it."""
        self.membership = Medley(
            own=own, roster=roster, settings=membership, draws=Draws(seed), seeds=seeds, table=table
        )

    def step(self, event: AnyEvent, now_ms: float, wall_ms: float | None = None) -> list[Effect]:
        """wall_ms None: the clocks agree."""
        step = Step(now_ms, now_ms if wall_ms is None else wall_ms)
        match event:
            case MessageReceived():
                self.membership.on_message(event, event.message, step)
            case TimerFired():
                self.membership.on_timer(event.timer, step)
            case NoticePosted():
                self.membership.on_notice(event, step)
            case LeaveAsked():
                self.membership.on_leave(step)
            case Started():
                self.membership.on_started(event, step)
            case DeviceAnswered() | DeviceReported() | FireAsked() | ApplyAsked():
                pass  # nothing here waits for it
            case JournalFailed() | JournalMended():
                pass  # membership works without a journal
            case _:
                assert_never(event)
        return step.effects

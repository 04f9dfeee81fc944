"""The heart: routes one event to the part of the node that it concerns."""

from collections.abc import Sequence
from typing import assert_never

from comesh.core.draws import Draws
from comesh.core.effects import Effect
from comesh.core.events import (
    DeviceAnswered,
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

AnyEvent = MessageReceived | TimerFired | DeviceAnswered | NoticePosted | Started | LeaveAsked


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
    ) -> None:
        self.id = own
        self.membership = Medley(
            own=own, roster=roster, settings=membership, draws=Draws(seed), seeds=seeds, table=table
        )

    def step(self, event: AnyEvent, now_ms: float) -> list[Effect]:
        step = Step(now_ms)
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
            case DeviceAnswered():
                pass  # late: nothing here waits for it any more
            case _:
                assert_never(event)
        return step.effects

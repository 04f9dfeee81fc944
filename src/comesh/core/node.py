"""The heart: routes one event to the part of the node that it concerns."""

from collections.abc import Sequence
from typing import assert_never

from comesh.core.draws import Draws
from comesh.core.effects import Effect
from comesh.core.events import (
    AnnouncementPosted,
    ApplyAsked,
    DeviceAnswered,
    DeviceReported,
    FireAsked,
    JournalFailed,
    JournalMended,
    LeaveAsked,
    MessageReceived,
    OrderAsked,
    RecoverAsked,
    Started,
    TimerFired,
)
from comesh.core.group.groups import Groups
from comesh.core.group.versions import Compile, Versions
from comesh.core.group_messages import InConfig
from comesh.core.ids import NodeId
from comesh.core.membership import Medley, MembershipSettings, Roster
from comesh.core.membership.table import Table
from comesh.core.messages import Gossip, GossipItems
from comesh.core.program import Program
from comesh.core.step import Step
from comesh.core.work_messages import DocumentAsked, DocumentGiven, GroupMessage

AnyEvent = (
    MessageReceived
    | TimerFired
    | DeviceAnswered
    | DeviceReported
    | AnnouncementPosted
    | Started
    | LeaveAsked
    | FireAsked
    | ApplyAsked
    | OrderAsked
    | JournalFailed
    | JournalMended
    | RecoverAsked
)


_OF_GROUPS = (InConfig, GroupMessage, DocumentAsked, DocumentGiven)


def no_compiler(text: str, version: int, before: Program) -> Program:
    raise ValueError("this node takes no new deployment versions")


MAX_TOGETHER = 256
"""Events that share an entry."""


def _shares_entry(event: AnyEvent) -> bool:
    if isinstance(event, MessageReceived):
        return isinstance(event.message, GroupMessage)
    return isinstance(event, DeviceAnswered | DeviceReported)


class Node:
    """One node of the mesh: `step` in, effects out, nothing else. Without a program: membership only."""

    def __init__(
        self,
        *,
        own: NodeId,
        roster: Roster,
        membership: MembershipSettings,
        seed: int,
        seeds: Sequence[NodeId] = (),
        table: Table | None = None,
        program: Program | None = None,
        compile_text: Compile = no_compiler,
        deployment: int = 1,
    ) -> None:
        self.id = own
        self._deployment = deployment
        draws = Draws(seed)
        self.membership = Medley(
            own=own, roster=roster, settings=membership, draws=draws, seeds=seeds, table=table
        )
        self.groups: Groups | None = None
        if program is not None:
            versions = Versions(program, compile_text)
            self.groups = Groups(own, self.membership, versions, draws.fork(1))

    @property
    def deployment(self) -> int:
        """The version that this node works by: every datagram carries it."""
        return self._deployment if self.groups is None else self.groups.versions.newest.version

    def step(self, event: AnyEvent, now_ms: float, wall_ms: float | None = None) -> list[Effect]:
        """wall_ms None: the clocks agree."""
        return self.steps((event,), now_ms, wall_ms)

    def steps(self, events: Sequence[AnyEvent], now_ms: float, wall_ms: float | None = None) -> list[Effect]:
        """Events that happened together, in order. Messages and what devices say share an entry of their
        group, so that a busy group commits many of them at once. All else finds the groups settled."""
        step = Step(now_ms, now_ms if wall_ms is None else wall_ms)
        groups = self.groups
        if groups is None:
            for event in events:
                self._on_membership(event, step)
            return step.effects
        for number, event in enumerate(events):
            shares = number % MAX_TOGETHER and _shares_entry(event) and _shares_entry(events[number - 1])
            if number and not shares:
                groups.settle(step)
            self._route(event, groups, step)
        groups.settle(step)
        return step.effects

    def _on_membership(self, event: AnyEvent, step: Step) -> None:
        match event:
            case MessageReceived(message=message):
                if not isinstance(message, _OF_GROUPS):
                    self.membership.on_message(event, message, step)
            case TimerFired():
                self.membership.on_timer(event.timer, step)
            case AnnouncementPosted():
                self.membership.on_announcement(event, step)
            case LeaveAsked():
                self.membership.on_leave(step)
            case Started():
                self.membership.on_started(event, step)
            case (
                DeviceAnswered()
                | DeviceReported()
                | FireAsked()
                | OrderAsked()
                | ApplyAsked()
                | RecoverAsked()
            ):
                pass  # nothing here waits for it
            case JournalFailed() | JournalMended():
                pass  # membership works without a journal
            case _:
                assert_never(event)

    def _route(self, event: AnyEvent, groups: Groups, step: Step) -> None:
        match event:
            case MessageReceived(message=message):
                newest = groups.versions.newest.version
                if event.deployment != newest:
                    self._on_other_version(event, newest, groups, step)
                if isinstance(message, _OF_GROUPS):
                    # A node that the newest version has no more keeps its seats until they are handed off,
                    # and may still have to hear of that version; or it led when the next one was committed.
                    keeps = isinstance(message, InConfig | DocumentAsked | DocumentGiven)
                    if self.membership.hears(event.sender, event.incarnation, step, also_former=keeps):
                        self._on_group_message(event, message, groups, step)
                else:
                    self.membership.on_message(event, message, step)
            case TimerFired(timer=timer):
                if timer.part == "membership":
                    self.membership.on_timer(timer, step)
                else:
                    groups.on_timer(timer, step)
            case DeviceAnswered():
                groups.on_answer(event, step)
            case DeviceReported():
                groups.on_report(event, step)
            case FireAsked():
                groups.router.on_fire(event, step)
            case ApplyAsked():
                groups.router.on_apply(event, step)
            case OrderAsked():
                groups.router.on_order(event, step)
            case Started():
                self.membership.on_started(event, step)
                groups.on_started(event, step)
            case LeaveAsked():
                groups.on_leave(step)
                self.membership.on_leave(step)
            case RecoverAsked():
                groups.on_recover(event.group, step)
            case JournalFailed():
                groups.on_unable(step)
            case JournalMended():
                groups.on_able(event.journal, step)
            case AnnouncementPosted():
                self.membership.on_announcement(event, step)
            case _:
                assert_never(event)

    def _on_other_version(self, event: MessageReceived, newest: int, groups: Groups, step: Step) -> None:
        if event.deployment > newest:
            groups.router.on_newer(event.sender, step)
        elif self.membership.is_former(event.sender):
            # It does not know yet that it was removed, and nobody else speaks to it any more.
            step.send(event.sender, self.membership.incarnation, Gossip(GossipItems()))

    def _on_group_message(
        self,
        event: MessageReceived,
        message: InConfig | GroupMessage | DocumentAsked | DocumentGiven,
        groups: Groups,
        step: Step,
    ) -> None:
        match message:
            case InConfig():
                groups.on_in_config(event.sender, message, step)
            case GroupMessage():
                groups.router.on_message(event, message, step)
            case DocumentAsked():
                groups.router.on_document_asked(event.sender, message, step)
            case DocumentGiven():
                groups.router.on_document_given(event.sender, message, step)
            case _:
                assert_never(message)

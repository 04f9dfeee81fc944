"""Checks that the leader of a routine sends no more commands for its runs once a pause is committed.

Judged by the letters that leave: what its predecessor had sent may still arrive, but who leads a group whose
routine is paused sends no command of it to the group of any device, neither a new one nor one again.
"""

from comesh.core.ids import NodeId
from comesh.core.messages import Message
from comesh.core.orders.standing import ALL, is_by_hand
from comesh.core.records import Kind, Standing, standing_key
from comesh.core.work_messages import Command, GroupMessage
from comesh.sim.checks.history import Histories
from comesh.sim.checks.violation import Promise, Verdicts


class PausedCommands:
    def __init__(self, verdicts: Verdicts, histories: Histories) -> None:
        self._verdicts = verdicts
        self._histories = histories

    def on_sent(self, now_ms: float, node: NodeId, to: NodeId, message: Message, size_bytes: int) -> None:
        if not isinstance(message, GroupMessage) or not isinstance(message.body, Command):
            return
        run = message.body.origin.run
        if is_by_hand(run) or message.sender is None or message.by is None:
            return
        history = self._histories.groups.get(message.sender)
        leader = None if history is None else history.leader
        if history is None or leader is None or (leader.node, leader.ballot) != (node, message.by.ballot):
            return  # a deposed leader: its commands are fenced off, or were sent before
        for of in (ALL, run.routine):
            order = history.records.get(standing_key(Kind.PAUSED, of))
            if isinstance(order, Standing):
                what = f"{node} sends a command of {run}, whose routine was paused by {order.by}"
                self._verdicts.broken(Promise.ORDERS, now_ms, what, runs=(run,))

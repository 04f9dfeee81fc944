"""Which config should follow: the end of an epoch, a member gone, or a new deployment version.

The clock only proposes: a leader looks whether its wall clock has crossed a boundary since it began to
serve, and then counts the epoch up by one. So a clock that was set forward costs at most one handoff, epochs
never go back, and never run ahead of the clock by more than the boundaries it showed. Groups are staggered
by hash. An epoch is prolonged, by one at most, while a command is under way: the next leader would have to
wait until it cannot land any more, counted from its own beginning.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from comesh.core.draws import mix64
from comesh.core.group.config import UNBOUND_STORE, Config, unbound
from comesh.core.group.leadership import Leadership
from comesh.core.group.patience import lost_members
from comesh.core.group.replica import Replica
from comesh.core.ids import GroupId, NodeId
from comesh.core.program import Program
from comesh.core.selection.hashing import id_hash
from comesh.core.step import Step


def stagger(group: GroupId) -> float:
    """From 0 to 1, by hash."""
    return (mix64(id_hash("stagger", group)) >> 11) * 2.0**-53


def clock_epoch(group: GroupId, wall_ms: float, epoch_ms: float) -> int:
    return int((wall_ms + stagger(group) * epoch_ms) // epoch_ms)


class View(NamedTuple):
    """What a leader goes by."""

    newest: Program
    living: Collection[NodeId]
    table: Mapping[GroupId, tuple[NodeId, ...]]
    """The members of each group, as the directory has them."""


def next_config(replica: Replica, view: View, left_out: frozenset[NodeId], step: Step) -> Config | None:
    """The config that should follow now, its seats unbound; None: this one stays."""
    newest, living, table = view
    config = replica.config
    leadership = replica.leadership
    if leadership is None:
        return None
    group = config.group
    is_left = group not in newest.plan.genesis
    epoch_ms = newest.settings.epoch_ms
    crossed = not is_left and _is_epoch_over(replica, leadership, epoch_ms, step)
    adopts = newest.version > config.version
    lost = lost_members(replica, leadership, step)
    wanted = crossed or adopts or replica.forced or _is_short(replica, leadership, living, step)
    if not wanted and not lost:
        return None
    epoch = config.epoch + crossed
    alive = [node for node in living if node not in left_out and node not in lost]
    members = (
        _who_stays(config, newest, alive) if is_left else newest.selector.select(group, epoch, alive, table)
    )
    same = set(members) == set(config.nodes) and not _unseated(replica, living, step)
    if same and not (crossed or adopts or replica.forced):
        return None
    if not wanted and len(members) < len(config.seats):
        return None  # nobody is there to take the places of the lost
    return Config(
        group=group,
        number=config.number + 1,
        epoch=epoch,
        seats=unbound(members),
        lease_ms=newest.settings.lease_ms,
        version=newest.version,
    )


def _who_stays(config: Config, newest: Program, alive: Collection[NodeId]) -> tuple[NodeId, ...]:
    """Members of a group whose cluster is gone from the deployment. It serves what is left to its end, so
    whoever is there stays, in all epochs; others take the places of those who are not."""
    stay = [node for node in config.nodes if node in newest.node_since and node in alive]
    others = sorted(node for node in alive if node in newest.node_since and node not in stay)
    absent = [node for node in config.nodes if node not in stay]
    return tuple((stay + others + absent)[: len(config.nodes)])


def _is_epoch_over(replica: Replica, leadership: Leadership, epoch_ms: float, step: Step) -> bool:
    """The clock has crossed a boundary; while a command is under way, a second one."""
    group = replica.config.group
    began = clock_epoch(group, leadership.began_wall_ms, epoch_ms)
    crossings = clock_epoch(group, step.wall_ms, epoch_ms) - began
    serving = leadership.serving
    return crossings > (1 if serving is not None and serving.in_flight else 0)


def _is_short(replica: Replica, leadership: Leadership, living: Collection[NodeId], step: Step) -> bool:
    """A member is gone, and has been for replace_after_ms: the next one might be one too many."""
    config = replica.config
    unseated = len(_unseated(replica, living, step))
    gone = sum(seat.node not in living for seat in config.seats) + unseated
    if not gone:
        leadership.short_since_ms = None
        return False
    if leadership.short_since_ms is None:
        # Who is silent has been for as long already.
        waited_ms = replica.settings.replace_after_ms if unseated else 0.0
        leadership.short_since_ms = step.now_ms - waited_ms
    return step.now_ms - leadership.short_since_ms >= replica.settings.replace_after_ms


def _unseated(replica: Replica, living: Collection[NodeId], step: Step) -> list[NodeId]:
    """Nodes that live but do not fill their seat: nobody took it, or its journal is gone."""
    leadership = replica.leadership
    if leadership is None:
        return []
    silent_after_ms = replica.settings.silent_after_ms
    return [
        seat.node
        for rank, seat in enumerate(replica.config.seats)
        if rank != replica.rank
        and seat.node in living
        and (seat.store == UNBOUND_STORE or leadership.silent_ms(rank, step) > silent_after_ms)
    ]

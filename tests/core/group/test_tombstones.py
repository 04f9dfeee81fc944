"""Tests that a node retires from older configs of its group and informs their leaders."""

from collections.abc import Iterable

from comesh.core.effects import CancelTimer, Effect, Persist, Send, SetTimer
from comesh.core.events import AnnouncementPosted, Event, MessageReceived, Started, Timer, TimerFired
from comesh.core.group.config import OF_THE_SEAT, Config, Seat
from comesh.core.group.finder import listing_announcement
from comesh.core.group.groups import Groups
from comesh.core.group_messages import Acked, Body, GiveUp, InConfig, Moved, Retire, Start, Update
from comesh.core.ids import DeviceId, Incarnation, NodeId, RoutineId
from comesh.core.journal import ConfigDropped, ConfigKept, Image, StateTaken, Tombstone
from comesh.core.membership import MembershipSettings
from comesh.core.node import Node
from comesh.core.records import HandoffRecord, Record
from comesh.core.stamps import OPENING
from comesh.core.strategies import Strategy
from comesh.experiments.measures.mesh import by_hand
from comesh.experiments.measures.presets import setup
from comesh.sim.topology import Shape, make_topology

LIFE = Incarnation(1, 0, 0)
STORE = 7
TOPOLOGY = make_topology(Shape.GRID, devices=16, seed=4)
MADE = setup("default", seed=4)
PROGRAM = by_hand(
    TOPOLOGY,
    MADE.selection,
    MADE.protocol,
    {RoutineId("r"): [DeviceId(min(TOPOLOGY.devices))]},
    Strategy.SEQUENTIAL,
)
GROUP = min(PROGRAM.plan.genesis)
OWN, A, B, C, D = (NodeId(node) for node in sorted(TOPOLOGY.nodes)[:5])


def config(number: int, *nodes: NodeId) -> Config:
    return Config(GROUP, number, number, tuple(Seat(node, STORE) for node in nodes), 1000, 1)


FIFTH = config(5, B, C, D)
FOURTH, SIXTH, SEVENTH = config(4, A, OWN, B), config(6, C, OWN, D), config(7, C, D, A)
HANDED_OFF: tuple[Record, ...] = (HandoffRecord(FIFTH),)


class Alone:
    """One node, whose journal holds its seats in these configs; nobody else is there. Time stands still for
    its timers until it waits."""

    def __init__(self, *seats: Config, tombstone: Config | None = None) -> None:
        self.now_ms = 0.0
        image = Image()
        for one in seats:
            records = HANDED_OFF if one.number == FOURTH.number else ()
            image.apply(ConfigKept(one, STORE, 1, records, True))
            image.apply(StateTaken(one.mark, OPENING, 1, None))
        if tombstone is not None:
            image.apply(Tombstone(tombstone))
        self.node = Node(
            own=OWN, roster=PROGRAM.roster, membership=MembershipSettings(), seed=1, program=PROGRAM
        )
        started = Started(boot=1, nonce=1, store=STORE, journal=image)
        self._timers: dict[Timer, float] = {}
        self.first = self._step(started)

    def _step(self, event: Event) -> list[Effect]:
        effects = list(self.node.step(event, self.now_ms, self.now_ms))
        for one in effects:
            match one:
                case SetTimer():
                    self._timers[one.timer] = self.now_ms + one.after_ms
                case CancelTimer():
                    self._timers.pop(one.timer, None)
                case _:
                    pass
        return effects

    def waits(self, for_ms: float) -> list[Effect]:
        """Pass time; timers fire in order."""
        ends_ms = self.now_ms + for_ms
        effects: list[Effect] = []
        while self._timers and min(self._timers.values()) <= ends_ms:
            timer = min(self._timers, key=lambda one: (self._timers[one], one))
            self.now_ms = self._timers.pop(timer)
            effects += self._step(TimerFired(timer=timer))
        self.now_ms = ends_ms
        return effects

    def learns(self, of: Config) -> list[Effect]:
        """Put this config into the directory."""
        key, version, value = listing_announcement(of, OPENING, of.nodes[0], quiet=False)
        return self._step(AnnouncementPosted(key=key, version=version, value=value))

    @property
    def groups(self) -> Groups:
        assert self.node.groups is not None
        return self.node.groups

    @property
    def seats(self) -> list[int]:
        return [one.config.number for one in self.groups.replicas.values() if one.config.group == GROUP]

    def hears(self, sender: NodeId, of: Config, body: Body, *, after_ms: float = 1.0) -> list[Effect]:
        self.now_ms += after_ms
        message = InConfig(*of.address, OF_THE_SEAT, body)
        event = MessageReceived(sender=sender, incarnation=LIFE, deployment=1, message=message)
        return self._step(event)


def said(effects: Iterable[Effect], to: NodeId) -> list[Body]:
    sent = [one.message for one in effects if isinstance(one, Send) and one.to == to]
    return [message.body for message in sent if isinstance(message, InConfig)]


def dropped(effects: Iterable[Effect]) -> list[int]:
    written = [one.record for one in effects if isinstance(one, Persist)]
    return [record.mark for record in written if isinstance(record, ConfigDropped)]


TOUCH = Update(OPENING, 2, (), 1, 0, False)


def test_a_retiring_member_leaves_older_configs_too() -> None:
    alone = Alone(FOURTH, SIXTH)
    assert alone.seats == [4, 6]
    effects = alone.hears(C, SIXTH, Retire(SEVENTH))
    assert alone.seats == []
    assert dropped(effects) == [SIXTH.mark, FOURTH.mark]
    assert next(one.record for one in effects if isinstance(one, Persist)) == Tombstone(SEVENTH)


def test_a_follower_informs_the_leader_of_an_older_config() -> None:
    """This holds even if it would have to start a config without living members."""
    alone = Alone(FOURTH, SIXTH)
    assert [type(one) for one in said(alone.hears(A, FOURTH, TOUCH), A)] == [Acked]
    alone.hears(C, SIXTH, Retire(SEVENTH))
    assert said(alone.hears(A, FOURTH, TOUCH), A) == [Moved(SEVENTH)]


def test_a_newer_config_stays() -> None:
    alone = Alone(FOURTH, SIXTH)
    alone.hears(A, FOURTH, Retire(FIFTH))
    assert alone.seats == [6]


def test_an_interrupted_retirement_is_completed_at_the_start() -> None:
    alone = Alone(FOURTH, SIXTH, tombstone=SIXTH)
    assert alone.seats == [6]
    assert dropped(alone.first) == [FOURTH.mark]


def test_a_seat_marks_the_config_before_it_as_ended() -> None:
    """The config before it is still needed, because no other member may be installed yet."""
    fifth = config(5, B, OWN, C)
    alone = Alone(FOURTH, fifth, SIXTH)
    alone.hears(A, FOURTH, TOUCH)
    alone.hears(A, FOURTH, GiveUp(OPENING))
    assert alone.seats == [5, 6]
    (moved,) = said(alone.hears(A, FOURTH, TOUCH), A)
    assert isinstance(moved, Moved)
    assert (moved.newest.number, moved.newest.nodes) == (5, SIXTH.nodes)
    assert [type(one) for one in said(alone.hears(B, fifth, TOUCH), B)] == [Acked]


def test_a_starter_of_an_ended_config_learns_it_from_the_directory() -> None:
    """Its members may be gone: they do not say so. That somebody leads it is no reason to retire."""
    alone = Alone(config(4, OWN))
    assert any(isinstance(one, Start) for one in said(alone.waits(6000), B)), "it leads, and hands off"
    alone.learns(FIFTH)
    assert any(isinstance(one, Start) for one in said(alone.waits(3000), B))
    assert alone.seats == [4]
    alone.learns(SIXTH)
    assert not any(isinstance(one, Start) for one in said(alone.waits(3000), B))
    assert alone.seats == []

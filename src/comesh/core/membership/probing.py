"""Probes: ask a member directly, then through others, then suspect it.

    period starts -> Ping -> (no Ack within the estimated round trip) -> Ping again, and PingRequest to
    three near nodes -> (no Ack, nor one through them) -> suspect

The suspect's ring neighbours hear of it at once and look for themselves, so that within a round trip a
suspicion is either confirmed by several nodes or contradicted by the suspect. Whoever suspects also tries
at once those that hang on the same power: an outage takes them all.
"""

import msgspec

from comesh.core.draws import Draws
from comesh.core.events import Timer
from comesh.core.ids import Incarnation, NodeId
from comesh.core.membership.beliefs import Beliefs
from comesh.core.membership.health import Health
from comesh.core.membership.probe_schedule import ProbeSchedule
from comesh.core.membership.roster import Roster
from comesh.core.membership.round_trips import RoundTrips
from comesh.core.membership.settings import MembershipSettings
from comesh.core.messages import Ack, Gossip, MemberState, MemberUpdate, Nack, Ping, PingRequest
from comesh.core.step import Step

MAX_PROBES = 1024
"""Probes under way at once, those for others included; further requests are not taken on."""
MAX_SAME_POWER = 8
"""Nodes of a suspect's power domain that are tried along with it."""
CONFIRMERS_EACH_WAY = 2
"""Ring neighbours on each side of a suspect that look for themselves."""

PERIOD = Timer("membership", "period")


class Probe(msgspec.Struct):
    """A probe under way. asker: the node on whose behalf it is, with its own number for the probe."""

    target: int
    sent_ms: float
    wait_ms: float
    asker: NodeId | None = None
    asker_number: int = 0
    retried: bool = False
    helpers: tuple[int, ...] = ()
    """Nodes that were asked to try, and have not reported yet."""


class Prober:
    __slots__ = (
        "_beliefs",
        "_number",
        "_own",
        "_probes",
        "_roster",
        "_settings",
        "health",
        "round_trips",
        "schedule",
    )

    def __init__(
        self, own: NodeId, roster: Roster, beliefs: Beliefs, settings: MembershipSettings, draws: Draws
    ) -> None:
        self._own = own
        self._roster = roster
        self._beliefs = beliefs
        self._settings = settings
        self._number = draws.below(1 << 32)
        """Number of the last probe; drawn at the start, so that answers to an earlier life fit none."""
        self._probes: dict[int, Probe] = {}
        self.schedule = ProbeSchedule(roster, roster.index[own], settings, draws)
        self.health = Health()
        self.round_trips = RoundTrips(len(roster))

    def adopt(self, roster: Roster, step: Step) -> None:
        """Another deployment version: probes of or for nodes that are not in it end, the others go on."""
        numbers = self._roster.numbers_in(roster)
        for number, probe in list(self._probes.items()):
            target = numbers[probe.target]
            if target is None or (probe.asker is not None and probe.asker not in roster.index):
                del self._probes[number]
                step.cancel_timer(_no_answer(number))
                continue
            probe.target = target
            helpers = (numbers[helper] for helper in probe.helpers)
            probe.helpers = tuple(helper for helper in helpers if helper is not None)
        self.schedule = self.schedule.renumbered(roster, roster.index[self._own], self._settings)
        self.round_trips = self.round_trips.renumbered(numbers, len(roster))
        self._roster = roster

    def on_period(self, incarnation: Incarnation, step: Step) -> None:
        target = self.schedule.next_target(self._beliefs.table)
        if target is not None:
            self.probe(target, incarnation, step)
        step.set_timer(PERIOD, self._settings.period_ms)

    def probe(self, target: int, incarnation: Incarnation, step: Step) -> None:
        """Ask a member whether it is there."""
        wait_ms = self.round_trips.timeout_ms(
            target, self._settings.min_timeout_ms, self._settings.max_timeout_ms
        )
        self._ping(Probe(target, step.now_ms, self.health.stretch(wait_ms)), incarnation, step)

    def on_request(self, asker: NodeId, request: PingRequest, incarnation: Incarnation, step: Step) -> None:
        """Another node cannot reach a member and wants this one to try."""
        if request.target == self._own:
            gossip = self._beliefs.queue.take(self._beliefs.sends)
            step.send(asker, incarnation, Ack(request.number, gossip, self._own, incarnation))
            return
        target = self._roster.index.get(request.target)
        if target is None or len(self._probes) >= MAX_PROBES:
            step.send(asker, incarnation, Nack(request.number))
            return
        wait_ms = min(request.wait_ms, self._settings.period_ms)
        self._ping(Probe(target, step.now_ms, wait_ms, asker, request.number), incarnation, step)

    def on_ack(self, sender: int, voice: Incarnation, ack: Ack, incarnation: Incarnation, step: Step) -> None:
        """voice is the incarnation of who sent the Ack, incarnation this node's own."""
        probe = self._probes.get(ack.number)
        if probe is None:
            return
        if ack.target is None:
            if probe.target != sender:
                return
            if not probe.retried:
                self.round_trips.sample(sender, step.now_ms - probe.sent_ms)
        else:
            wrong = self._roster.index.get(ack.target) != probe.target or probe.asker is not None
            if wrong or ack.target_incarnation is None:
                return
            self._beliefs.hear(probe.target, ack.target_incarnation, step)
        del self._probes[ack.number]
        step.cancel_timer(_no_answer(ack.number))
        if probe.asker is None:
            self.health.better()
        else:
            target = self._roster.ids[probe.target]
            gossip = self._beliefs.queue.take(self._beliefs.sends)
            step.send(probe.asker, incarnation, Ack(probe.asker_number, gossip, target, voice))

    def on_nack(self, sender: int, nack: Nack) -> None:
        probe = self._probes.get(nack.number)
        if probe is not None:
            probe.helpers = tuple(helper for helper in probe.helpers if helper != sender)

    def on_no_answer(self, number: int, incarnation: Incarnation, step: Step) -> None:
        """The time for a direct answer is over, or that for one through helpers."""
        probe = self._probes.get(number)
        if probe is None:
            return
        if probe.asker is not None:
            del self._probes[number]
            step.send(probe.asker, incarnation, Nack(probe.asker_number))
            return
        if not probe.retried:
            self._try_again(number, probe, incarnation, step)
            return
        del self._probes[number]
        if any(self._beliefs.table.state(helper) == MemberState.ALIVE for helper in probe.helpers):
            self.health.worse()
        self._suspect(probe.target, incarnation, step)

    def confirm(self, suspect: int, incarnation: Incarnation, step: Step) -> None:
        """Probes a member that another node suspects, as its ring neighbours do."""
        if self._settings.spatial and self._roster.index[self._own] in self._confirmers(suspect):
            self.probe(suspect, incarnation, step)

    def _ping(self, probe: Probe, incarnation: Incarnation, step: Step) -> None:
        self._number += 1
        self._probes[self._number] = probe
        gossip = self._beliefs.queue.take(self._beliefs.sends, self._beliefs.warning(probe.target))
        step.send(self._roster.ids[probe.target], incarnation, Ping(self._number, gossip))
        step.set_timer(_no_answer(self._number), probe.wait_ms)

    def _try_again(self, number: int, probe: Probe, incarnation: Incarnation, step: Step) -> None:
        """Once more directly, and through others."""
        probe.retried = True
        target = self._roster.ids[probe.target]
        again = Ping(
            number, self._beliefs.queue.take(self._beliefs.sends, self._beliefs.warning(probe.target))
        )
        step.send(target, incarnation, again)
        helpers = self.schedule.helpers(self._settings.relays, self._beliefs.table, target=probe.target)
        probe.helpers = tuple(helpers)
        for helper in helpers:
            gossip = self._beliefs.queue.take(self._beliefs.sends)
            request = PingRequest(number, target, min(probe.wait_ms, self._settings.period_ms), gossip)
            step.send(self._roster.ids[helper], incarnation, request)
        step.set_timer(_no_answer(number), 2 * probe.wait_ms)

    def _suspect(self, target: int, incarnation: Incarnation, step: Step) -> None:
        table = self._beliefs.table
        if not table.is_living(target):
            return
        node = self._roster.ids[target]
        update = MemberUpdate(node, MemberState.SUSPECT, table.incarnation(target), self._own)
        first = table.state(target) == MemberState.ALIVE
        self._beliefs.learn(target, update, step)
        if not first:
            return
        if not self._settings.spatial:
            return
        for number in self._roster.same_power(target, MAX_SAME_POWER):
            if table.state(number) == MemberState.ALIVE and number != self._roster.index[self._own]:
                self.probe(number, incarnation, step)
        for number in self._confirmers(target):
            if number != self._roster.index[self._own]:
                gossip = self._beliefs.queue.take(self._beliefs.sends, update)
                step.send(self._roster.ids[number], incarnation, Gossip(gossip))

    def _confirmers(self, suspect: int) -> list[int]:
        """The living ring neighbours of a suspect."""
        ring, at = self._roster.ring, self._roster.ring_position[suspect]
        found: list[int] = []
        for direction in (1, -1):
            count = 0
            for distance in range(1, len(ring)):
                number = ring[(at + direction * distance) % len(ring)]
                if number != suspect and self._beliefs.table.is_living(number) and number not in found:
                    found.append(number)
                    count += 1
                    if count == CONFIRMERS_EACH_WAY:
                        break
        return found


def _no_answer(number: int) -> Timer:
    return Timer("membership", "no_answer", number)

"""What a node knows of itself and of the mesh, for queries: `comesh.queries.view` says what that is.

A node knows the groups that it serves exactly; of others it knows who leads them, as the directory says. So a
picture of the whole mesh is made of what all nodes say (`comesh.queries.mesh`).
"""

import os
import resource
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from comesh import __version__
from comesh.core.devices.part import Devices as DevicePart
from comesh.core.effects import Answered
from comesh.core.events import RecoverAsked
from comesh.core.group.config import UNBOUND_STORE
from comesh.core.group.groups import Groups
from comesh.core.group.replica import Replica
from comesh.core.group.serving import Serving
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.node import Node
from comesh.core.orders.part import PAUSED
from comesh.core.orders.standing import paused, standing
from comesh.core.plan import DEPLOYMENT
from comesh.core.program import Program
from comesh.core.records import (
    AuditRecord,
    DeviceRecord,
    Kind,
    RoutineRecord,
    RunRecord,
    Stage,
    Standing,
    Status,
    VersionRecord,
)
from comesh.deployment.model import Deployment
from comesh.drivers.virtual.devices import VirtualDevice
from comesh.queries.answers import (
    AuditSeen,
    DeviceSeen,
    GroupSeen,
    Hears,
    NodeHealth,
    NodeStatus,
    RoutineSeen,
    RunSeen,
    TraceLine,
)
from comesh.queries.view import Command, Ranks, TimeTold
from comesh.runtime.clock import Clock, MeshClock
from comesh.runtime.devices import Devices
from comesh.runtime.devices.homes import nearest_node
from comesh.runtime.documents import Documents
from comesh.runtime.history import History
from comesh.runtime.host import Host
from comesh.runtime.journal import Journal
from comesh.runtime.journal.files import JOURNAL
from comesh.runtime.log import Log
from comesh.runtime.options import NodeOptions
from comesh.runtime.transport.udp import UdpTransport
from comesh.runtime.trust import Trust

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a node that are looked at."""

    node: Node
    options: NodeOptions
    log: Log
    documents: Documents
    clock: MeshClock
    machine_clock: Clock
    trust: Trust
    journal: Journal
    transport: UdpTransport
    devices: Devices
    host: Host
    history: History
    trouble: Callable[[], tuple[str, ...]]
    """What a person should look after."""


class NodeView:
    """A node, as queries see it: `comesh.queries.view.NodeView`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._node = parts.node
        self.own = parts.node.id
        self.compiler = parts.documents.compiler
        self.devices_at = parts.options.devices_at
        self._requests = 0

    # -- what it knows of the mesh -----------------------------------------------------------------------

    @property
    def deployment(self) -> Deployment:
        return self._parts.documents.deployment

    @property
    def _groups(self) -> Groups:
        groups = self._node.groups
        assert groups is not None, "a node of a deployment has groups"
        return groups

    @property
    def program(self) -> Program:
        return self._groups.versions.newest

    @property
    def living(self) -> tuple[NodeId, ...]:
        return tuple(dict.fromkeys((self.own, *self._node.membership.living)))

    def is_dead(self, node: NodeId) -> bool:
        return self._node.membership.is_dead(node)

    def unreached(self) -> dict[NodeId, str]:
        peers = self._parts.transport.peers()
        return {node: peer.why for node, peer in sorted(peers.items()) if not peer.connected}

    def all_paused(self) -> bool:
        announced = self._groups.announcement(PAUSED)
        return announced is not None and bool(announced.value)

    # -- what it says of itself --------------------------------------------------------------------------

    def wall_ms(self) -> float:
        return self._parts.clock.wall_ms()

    def machine_wall_ms(self) -> float:
        return self._parts.machine_clock.wall_ms()

    def monotonic_ms(self) -> float:
        return self._parts.machine_clock.monotonic_ms()

    def time_told(self) -> TimeTold:
        parts = self._parts
        return TimeTold(
            wall_ms=parts.clock.wall_ms(),
            valid=parts.clock.valid,
            version=parts.node.deployment,
            document=parts.documents.digest,
            first=parts.documents.first_digest,
        )

    @property
    def ready(self) -> bool:
        """It has joined, and every group in which it has a seat has a leader that it knows."""
        if not self._node.membership.joined:
            return False
        return all(one.leader is not None for one in self.groups() if self.own in one.members)

    def status(self) -> NodeStatus:
        parts, node = self._parts, self._node
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return NodeStatus(
            node=node.id,
            software=__version__,
            pid=os.getpid(),
            wall_ms=parts.clock.wall_ms(),
            boot=parts.journal.boot,
            deployment=parts.documents.deployment.name or "",
            version=node.deployment,
            ready=self.ready,
            joined=node.membership.joined,
            document=parts.documents.digest,
            trouble=parts.trouble(),
            living=node.membership.living,
            groups=self.groups(),
            devices=self.devices(),
            routines=self.routines(),
            memory_kb=resident_kb(),
            cpu_s=usage.ru_utime + usage.ru_stime,
            counters={
                **parts.transport.counters,
                **parts.host.counters,
                **parts.devices.traffic(),
                **parts.history.refused,
            },
        )

    def health(self) -> NodeHealth:
        parts, options, credentials = self._parts, self._parts.options, self._parts.trust.credentials
        disk = shutil.disk_usage(options.data)
        return NodeHealth(
            node=self.own,
            software=__version__,
            version=self._node.deployment,
            document=parts.documents.digest,
            machine_wall_ms=parts.machine_clock.wall_ms(),
            clock_source=parts.clock.source,
            listens=parts.transport.listens,
            certificate_ends_ms=1000.0 * credentials.certificate.not_valid_after_utc.timestamp(),
            authority_ends_ms=1000.0 * credentials.authorities[0].not_valid_after_utc.timestamp(),
            data=str(options.data.absolute()),
            data_free_bytes=disk.free,
            data_disk_bytes=disk.total,
            journal_bytes=_size(options.data / JOURNAL),
            memory_kb=resident_kb(),
            memory_free_kb=_available_kb(),
            hears=self._hears(),
        )

    def _hears(self) -> dict[NodeId, Hears]:
        membership, peers = self._node.membership, self._parts.transport.peers()
        found: dict[NodeId, Hears] = {}
        for other in sorted(self.deployment.nodes.keys() - {self.own}):
            peer = peers.get(other)
            found[other] = Hears(
                living=other in membership.living,
                connected=peer is not None and peer.connected,
                address="" if peer is None else peer.address,
                round_trip_ms=membership.round_trip_ms(other),
                why="" if peer is None else peer.why,
            )
        return found

    # -- what it serves ----------------------------------------------------------------------------------

    def served(self) -> tuple[GroupId, ...]:
        return self._groups.served

    def trace(self, run: str) -> tuple[TraceLine, ...]:
        return self._parts.history.trace(run)

    def runs(self) -> tuple[TraceLine, ...]:
        return self._parts.history.runs()

    def version_records(self) -> tuple[VersionRecord, ...] | None:
        serving = self._groups.serving(DEPLOYMENT)
        return None if serving is None else tuple(serving.all(VersionRecord))

    def texts(self) -> Mapping[int, str]:
        return self._parts.documents.chain().texts

    def chain(self) -> str:
        return self._parts.documents.chain().dump()

    def groups(self) -> tuple[GroupSeen, ...]:
        groups = self._groups
        return tuple(self._group(group, groups) for group in sorted(groups.versions.newest.plan.genesis))

    def _group(self, group: GroupId, groups: Groups) -> GroupSeen:
        seats = [one for one in groups.replicas.values() if one.config.group == group]
        seat = max(seats, key=lambda one: one.config.number, default=None)
        listing = groups.router.finder.listing(group)
        serving = groups.serving(group)
        if seat is not None and (listing is None or seat.config.number >= listing.number):
            leader = self._node.id if serving is not None else None
            if leader is None and seat.leader is not None:
                leader = seat.config.nodes[seat.leader]
            return GroupSeen(
                group=group,
                number=seat.config.number,
                epoch=seat.config.epoch,
                members=seat.config.nodes,
                unseated=tuple(one.node for one in seat.config.seats if one.store == UNBOUND_STORE),
                leader=leader,
                role=seat.role.value,
                serves=serving is not None,
                version=seat.config.version,
                state=_state(seat),
            )
        if listing is not None:
            return GroupSeen(
                group=group,
                number=listing.number,
                epoch=listing.epoch,
                members=listing.nodes,
                leader=listing.leader,
                version=listing.version,
            )
        return GroupSeen(
            group=group,
            number=0,
            epoch=0,
            members=groups.versions.newest.plan.genesis[group],
            leader=None,
        )

    def devices(self) -> tuple[DeviceSeen, ...]:
        """The devices of the groups that this node serves."""
        return tuple(seen for serving in self._servings() for seen in _devices(serving))

    def routines(self) -> tuple[RoutineSeen, ...]:
        return tuple(seen for serving in self._servings() for seen in _routines(serving))

    def audit(self) -> tuple[AuditSeen, ...]:
        """The audit logs of the groups that this node serves."""
        return tuple(
            AuditSeen(
                group=serving.group,
                number=one.number,
                wall_ms=one.at_ms,
                by=one.by,
                what=one.what,
                request=one.request,
                run=None if one.run is None else str(one.run),
            )
            for serving in self._servings()
            for one in serving.all(AuditRecord)
        )

    def _servings(self) -> Iterator[Serving]:
        for group in self._groups.served:
            serving = self._groups.serving(group)
            if serving is not None:
                yield serving

    # -- what it is given --------------------------------------------------------------------------------

    def new_request(self) -> str:
        self._requests += 1
        return f"{self.own}.{self._parts.journal.boot}.o{self._requests}"

    def give(self, command: Command | RecoverAsked) -> None:
        self._parts.host.give(command)

    def on_answer(self, request: str, told: Callable[[Answered], None]) -> Callable[[], None]:
        answers = self._parts.history.answers
        answers.setdefault(request, []).append(told)

        def forget() -> None:
            answers[request].remove(told)
            if not answers[request]:
                del answers[request]

        return forget

    def newer_revocations(self, than: Ranks) -> tuple[bytes, ...]:
        return tuple(one.der for one in self._parts.trust.newer_than(than))

    def take_revocation(self, proof: bytes) -> None:
        if proof:
            self._parts.trust.take(proof)
        else:
            self._parts.trust.hear_of_revocation()

    def virtual(self, device: DeviceId) -> VirtualDevice | None:
        return self._parts.devices.virtual(device)

    def home_of(self, device: DeviceId) -> NodeId | None:
        on = self.deployment.devices[device].on
        place = self.deployment.place_of(device)
        return nearest_node(self.deployment, place) if on is None else NodeId(on)

    def disturb(self, device: DeviceId, be: str, ms: float) -> None:
        self._parts.devices.set_fault(device, be, ms)

    def warn(self, what: str) -> None:
        self._parts.log.warn(what)

    def error(self, what: str) -> None:
        self._parts.log.error(what)


def _state(seat: Replica) -> tuple[int, int, int, int]:
    return seat.config.number, seat.accepted.round, seat.accepted.rank, seat.ledger.number


def _devices(serving: Serving) -> Iterator[DeviceSeen]:
    part = serving.parts.get("devices")
    for device in serving.program.devices_of(serving.group):
        record = serving.get("device/" + device, DeviceRecord)
        sensed = part.sensed(device) if isinstance(part, DevicePart) else None
        yield DeviceSeen(
            device=device,
            group=serving.group,
            status=str(Status.UNKNOWN if record is None else record.status),
            readings=None if sensed is None else sensed.readings,
            holder=None if record is None or record.hold is None else str(record.hold.run),
            waiting=() if record is None else tuple(str(one.run) for one in record.queue),
            maintained_by=_by(standing(serving, Kind.MAINTAINED, device)),
            breaking_by=_by(standing(serving, Kind.BREAKING, device)),
        )


def _by(order: Standing | None) -> str | None:
    return None if order is None else order.by


def _routines(serving: Serving) -> Iterator[RoutineSeen]:
    for routine in serving.program.routines_of(serving.group):
        record = serving.get("routine/" + routine, RoutineRecord)
        run = serving.get("run/" + routine, RunRecord)
        ended = None if record is None else record.ended
        yield RoutineSeen(
            routine=routine,
            group=serving.group,
            truth=None if record is None else record.truth,
            live=None if run is None else _run(run),
            waiting=0 if record is None else len(record.waiting),
            last=None if ended is None else str(ended.run),
            last_reason="" if ended is None else ended.reason,
            paused_by=_by(paused(serving, routine)),
        )


def _run(record: RunRecord) -> RunSeen:
    return RunSeen(
        run=str(record.run),
        stage=Stage(record.stage).name,
        attempt=record.attempt,
        held=tuple(one.device for one in record.held),
        done=len(record.progress),
        steps=len(record.steps),
    )


def resident_kb() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE_BYTES // 1024


def _available_kb() -> int:
    """0: the system does not say."""
    with open("/proc/meminfo", "rb") as file:
        for line in file:
            if line.startswith(b"MemAvailable:"):
                return int(line.split()[1])
    return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

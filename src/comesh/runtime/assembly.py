"""Puts a node together: document, journal, credentials, transport, devices, host; and takes it apart again.

assembly = Assembly(options, log)
await assembly.open()
await assembly.stopped.wait()
await assembly.close()
"""

import asyncio
import secrets
from typing import Final

from comesh import __version__
from comesh.core.events import LeaveAsked, Started
from comesh.core.ids import NodeId
from comesh.core.membership import MembershipSettings
from comesh.core.node import Node
from comesh.core.program import Program
from comesh.core.traces import Failed, Finished, Fired
from comesh.deployment.model import Deployment
from comesh.queries.answers import News
from comesh.queries.mesh import Mesh
from comesh.queries.news import NewsDesk
from comesh.queries.node_reads import answered
from comesh.queries.peers import FIRST_BYTE as READ
from comesh.queries.peers import Answers, Peers
from comesh.queries.table import Table
from comesh.queries.times import zone_named
from comesh.queries.trace_text import text_of
from comesh.runtime.addresses import known_addresses, listen_at, need_addresses
from comesh.runtime.catching_up import chain_of_others, should_ask, took_part
from comesh.runtime.clock import Clock, LastWall, MeshClock
from comesh.runtime.comparison import Comparison
from comesh.runtime.control import Control
from comesh.runtime.credentials import Credentials
from comesh.runtime.devices import DeviceEvent, Devices
from comesh.runtime.devices.frames import FIRST_BYTE as DEVICES
from comesh.runtime.documents import (
    Chain,
    Compiler,
    Documents,
    claim_data_directory,
    first_chain,
    make_data_directory,
    tell_other_document,
)
from comesh.runtime.history import History
from comesh.runtime.host import Host
from comesh.runtime.housekeeping import Housekeeping
from comesh.runtime.journal import Journal, JournalError
from comesh.runtime.journal.files import JOURNAL
from comesh.runtime.journal.first_start import mark_of, note_first_start
from comesh.runtime.log import Log
from comesh.runtime.node_recorder import NodeRecorder
from comesh.runtime.node_view import NodeView, Parts
from comesh.runtime.options import Address, NodeOptions
from comesh.runtime.revocation_gossip import RevocationGossip
from comesh.runtime.transport.udp import UdpTransport
from comesh.runtime.trust import Trust

FLUSH_MS: Final = 50.0
"""What need not be flushed before it is acknowledged is durable after this long."""
LONGEST_LEAVE_S: Final = 5.0
"""Where a slow disk holds its good-bye back."""
LEAVE_S: Final = 0.5
"""How long a node that leaves stays to hand its groups over and say good-bye."""
NOT_FIRST: Final = (
    "--init does nothing here: this data directory was begun without it, or its journal was lost. If the "
    "deployment never ran, stop all nodes, remove their data directories, and the files NAME.began beside "
    "their keys, and start all of them with --init"
)


class Assembly:
    def __init__(self, options: NodeOptions, log: Log) -> None:
        self.options = options
        self.log = log
        self.stopped = asyncio.Event()
        self.why_stopped = ""
        self._leaves = False
        self._recorder: NodeRecorder | None = None

    async def open(self) -> None:
        options = self.options
        make_data_directory(options.data)
        compiler = Compiler()
        chain, other_text = first_chain(options.document, options.data, options.name, compiler)
        self.documents = Documents(chain, compiler)
        claim_data_directory(options.data, options.name)
        book = known_addresses(self.deployment, options.addresses)
        need_addresses(options.name, self.deployment, book, listens=bool(options.listen))
        self.machine_clock = Clock(offset_ms=options.clock_offset_ms)
        self.clock = MeshClock(
            self.machine_clock,
            last=LastWall(options.data),
            told=self.log.warn,
            mesh_size=len(self.deployment.nodes),
        )
        self.trust = Trust(options.keys, options.data, options.name, self.log, self.clock.monotonic_ms)
        self.clock.raise_floor(self.credentials.issued_ms)
        self.trust.set_clock(self._certain_wall_ms)
        mark = mark_of(options.keys, options.name)
        first = options.initialise and not (options.data / JOURNAL).exists() and not mark.exists()
        if should_ask(options.data, initialise=first):
            chain = await self._chain_of_mesh(chain)
        programs = chain.programs(compiler)
        first = first and note_first_start(mark)
        self.journal = Journal.open(
            options.data,
            create="initialise" if first else "replace",
            strict=programs[-1].settings.strict,
            boot_id=options.boot_id,
        )
        self.journal.flush_takes_ms = options.flush_takes_ms
        for note in self.journal.notes:
            self.log.warn(note)
        self.documents.later = lambda: self.journal.image.documents
        tell_other_document(options.document, other_text, self.documents.chain().texts, self.log)
        self._init_came_late = options.initialise and not self.journal.initialised
        if self._init_came_late:
            self.log.warn(NOT_FIRST)
        self._make_node(programs)
        self._connect()
        self._answer()
        for driver, wanting in (await self.devices.open()).items():
            self.log.warn(f"driver {driver} is not built yet: {', '.join(wanting)} will be down")
        await self.transport.open(self._deliver, self.host.rest)
        await self.control.open()
        self._begin()
        self.revocation_gossip.post()
        self.house.begin(
            self.comparison.go_on(),
            self.revocation_gossip.look_after_files(),
            self.revocation_gossip.ask_others(),
        )

    async def _chain_of_mesh(self, own: Chain) -> Chain:
        """What the others run by, in the place of what this node was given."""
        options = self.options
        found = await chain_of_others(
            self.make_transport, self.machine_clock, self.documents, options.name, options.data
        )
        if found.texts != own.texts:
            self.log.say(f"begins with the {found.newest} versions of the document that the others have")
            self.documents = Documents(found, self.documents.compiler)
            found.write(options.data)
        return found

    def _make_node(self, programs: list[Program]) -> None:
        self.node = Node(
            own=self.options.name,
            roster=programs[-1].roster,
            membership=MembershipSettings(period_ms=self.deployment.settings.membership_period_ms),
            seed=secrets.randbits(63),
            program=programs[0],
            compile_text=self.documents.compiler,
        )
        assert self.node.groups is not None
        for later in programs[1:]:
            self.node.groups.versions.add(later)

    def make_transport(self) -> UdpTransport:
        options = self.options
        return UdpTransport(
            options.name,
            self.credentials,
            guard=self.trust,
            listen=options.listen
            or listen_at(options.name, known_addresses(self.deployment, options.addresses)),
            addresses=self._addresses(self.deployment),
        )

    def _connect(self) -> None:
        """To other nodes, to devices, and both to the core."""
        options = self.options
        if options.record is not None:
            self._recorder = NodeRecorder(options.record, options.name, self.machine_clock.monotonic_us)
        self.transport = self.make_transport()
        self.devices = Devices(
            options.name,
            self.deployment,
            send=self.transport.send,
            give=self._give,
            now_ms=self.clock.monotonic_ms,
            devices_at=options.devices_at,
            still=options.still,
            record=self._recorder.acted if self._recorder is not None else lambda what: None,
            trouble=lambda device, what: self.log.warn(f"{device}: {what}"),
        )
        self.host = Host(
            self.node,
            journal=self.journal,
            transport=self.transport,
            devices=self.devices,
            clock=self.clock,
            flush_ms=FLUSH_MS if options.flush_ms is None else options.flush_ms,
            on_stop=self.stop,
            journal_error=JournalError,
        )
        if self._recorder is not None:
            self._recorder.listen(self.host, self.journal)

    def _answer(self) -> None:
        """People's requests, and the reads of other nodes."""
        self.history = History(self.node, self.clock.wall_ms)
        self.view = NodeView(
            Parts(
                node=self.node,
                options=self.options,
                log=self.log,
                documents=self.documents,
                clock=self.clock,
                machine_clock=self.machine_clock,
                trust=self.trust,
                journal=self.journal,
                transport=self.transport,
                devices=self.devices,
                host=self.host,
                history=self.history,
                trouble=self.trouble,
            )
        )
        answers = Answers(lambda read: answered(read, self.view), self.clock.wall_ms, __version__)
        self.peers = Peers(self.transport.send, answers, self.clock.monotonic_ms)
        mesh = Mesh(self.view, self.peers)
        self.table = Table(mesh)
        self.news = NewsDesk(mesh, self.peers, self.history.watchers)
        self.comparison = Comparison(mesh, self.peers, self.clock)
        self.revocation_gossip = RevocationGossip(self.trust, self.peers, lambda: mesh.others, self.host.give)
        self.host.listeners += [self.history.on_observation, self.revocation_gossip.on_observation]
        self.host.counters.update(self.trust.counters)
        self.trust.counters = self.host.counters
        self.trust.on_credentials.append(self._on_credentials)
        self.trust.on_revoked.append(self._on_revoked)
        self.history.watchers += [self.peers.tell_news, self._log_news]
        self.house = Housekeeping(
            self.view,
            self.log,
            adopt=self._adopt,
            on_ready=lambda: took_part(self.options.data),
            version=self.documents.first_newest,
        )
        self.control = Control(self.options.data, self.table, self.news, where=self.options.name)

    def _begin(self) -> None:
        journal = self.journal
        started = Started(
            boot=journal.boot,
            nonce=secrets.randbits(32),
            store=journal.store,
            initialised=journal.initialised,
            power_lost=journal.power_lost,
            journal=journal.image.copy(),
        )
        if self._recorder is not None:
            self._recorder.began(started)
        self.host.give(started)

    async def close(self) -> None:
        """Hand over what it leads, say good-bye, and end."""
        self.house.close()
        if not self.why_stopped:
            self._leaves = True
            self.log.say("leaving: what it leads is handed over")
            self.host.give(LeaveAsked())
            await asyncio.sleep(LEAVE_S)
            waited_s = LEAVE_S
            while not self.host.at_rest and waited_s < LONGEST_LEAVE_S:
                await asyncio.sleep(LEAVE_S)
                waited_s += LEAVE_S
        await self.control.close()
        self.host.close()
        await self.devices.close()
        await self.transport.close()
        self.journal.close()
        if self._recorder is not None:
            self._recorder.ended(self.why_stopped)

    def stop(self, why: str) -> None:
        """The core says that this process must end."""
        if self._leaves:
            self.log.say(why)
            return
        self.why_stopped = why
        self.log.error(why)
        self.stopped.set()

    # -- what comes --------------------------------------------------------------------------------------

    def _give(self, events: list[DeviceEvent]) -> None:
        self.host.give(*events)

    def _deliver(self, sender: NodeId, message: bytes) -> None:
        first = message[0] if message else 0
        if first not in (READ, DEVICES):  # then it is of the core, in this wire version or another
            self.host.deliver(sender, message)
        elif sender not in self.deployment.nodes:
            self.host.counters["dropped: from a node that the deployment does not have"] += 1
        elif first == READ:
            if not self.peers.on_frame(sender, message):
                self.host.counters["dropped: a read of another node that cannot be read"] += 1
        elif not self.devices.on_frame(sender, message):
            self.host.counters["dropped: a frame that cannot be read"] += 1

    def _on_credentials(self) -> None:
        self.transport.take_credentials(self.credentials)
        self.transport.end_refused()

    def _on_revoked(self) -> None:
        self.transport.end_refused()
        if self.trust.is_revoked:
            self.stop(self.trust.own_words())

    @property
    def deployment(self) -> Deployment:
        """The document as it is now."""
        return self.documents.deployment

    @property
    def credentials(self) -> Credentials:
        """As they are now."""
        return self.trust.credentials

    def trouble(self) -> tuple[str, ...]:
        """What a person should look after."""
        late = NOT_FIRST if self._init_came_late and not self.view.ready else ""
        peers = self.transport.peers()
        connected = {name for name, peer in peers.items() if peer.connected}
        keys = self.trust.trouble(lambda node: node in connected or node not in self.deployment.nodes)
        own = (self.host.journal_trouble, self.house.broken_chore, late, self.clock.trouble)
        return tuple(filter(None, (*own, *keys)))

    def _certain_wall_ms(self) -> float | None:
        """For dates of certificates; None: this node knows no time yet."""
        wall_ms = self.clock.wall_ms()
        return wall_ms if self.clock.source in ("own", "mesh") else None

    # -- telling -----------------------------------------------------------------------------------------

    def _log_news(self, news: News) -> None:
        if news.trace is not None:
            if isinstance(news.trace, Fired | Finished | Failed):
                zone = zone_named(self.deployment.settings.time_zone)
                self.log.say(f"{news.about} {text_of(news.trace, zone=zone)}", kind=news.kind)
            return
        detail = f" ({news.detail})" if news.detail else ""
        self.log.say(f"{news.about} {news.what}{detail}", kind=news.kind)

    # -- addresses and versions --------------------------------------------------------------------------

    def _addresses(self, deployment: Deployment) -> dict[NodeId, tuple[Address, ...]]:
        """Of the others."""
        known = known_addresses(deployment, self.options.addresses)
        return {name: found for name, found in known.items() if name != self.options.name}

    def _adopt(self, version: int) -> None:
        """A newer deployment version: its addresses, devices and durability. DocumentError: it is no use."""
        newest = self.view.program
        self.documents.adopt(version, newest.text)
        for name, addresses in self._addresses(self.deployment).items():
            self.transport.set_addresses(name, addresses)
        self.devices.adopt(self.deployment)
        self.host.declare_strict(newest.settings.strict)

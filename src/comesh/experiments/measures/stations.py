"""What a mesh of real processes stands on: stations joined by cables, with routes; or only this machine.

Every place of the workload is a station, with a node or without; the process of a device is reached at the
address of its station. In network namespaces (`lab/namespaces.py`) a message takes as many hops as the shape
has, also one to a device, and stations without a node relay. What a station sends over its cables, its own
and what it relays, is counted by nftables as IP packets, headers and encryption included; routing messages of
babeld are counted apart, and left out. On loopback there are no hops.

Many may run at once: namespaces carry the number of their process, and on loopback each process has an
address of its own.
"""

import ctypes
import json
import os
import subprocess
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from comesh.core.ids import DeviceId, NodeId
from comesh.drivers.virtual.server import DevicesServer
from comesh.experiments.measures.deployed_workload import PaperWorkload, device_at, node_at
from comesh.lab.mesh import DEVICES_PORT, NODE_PORT, Links, Mesh
from comesh.lab.namespaces import Namespaces, what_is_missing
from comesh.lab.proxy import Address, free_addresses
from comesh.lab.shapes import PLACES, Link, links_of
from comesh.runtime.local_mesh import DEVICES

ROUTES_S: Final = 60.0
COUNT_S: Final = 30.0
ROUTING_PORT: Final = 6696
"""Of babeld."""
OURS: Final = ("nodes", "devices")
"""Counters of what is no routing."""
_COUNTERS: Final = f"""table inet counted {{
  chain leaving {{
    type filter hook postrouting priority 0;
    oifname "to*" udp dport {NODE_PORT} counter comment "nodes"
    oifname "to*" udp dport {DEVICES_PORT} counter comment "devices"
    oifname "to*" udp sport {DEVICES_PORT} counter comment "devices"
    oifname "to*" udp dport {ROUTING_PORT} counter comment "routing"
  }}
}}
"""
_NAMESPACES: Final = Path("/run/netns")
_NETWORK: Final = 0x40000000
"""CLONE_NEWNET, as setns wants it."""


class Stations(Protocol):
    name: str
    devices_at: dict[DeviceId, str]
    """Where to listen for requests to each device."""

    def mesh(self, document: Path, directory: Path) -> Mesh: ...

    async def open(self, device: DeviceId, server: DevicesServer) -> None:
        """The process of this device listens from now on, at its station."""

    def transmitted(self) -> dict[NodeId, Counter[str]]:
        """Bytes that the station of each node put on the air so far: nodes, devices, routing. Empty: there
        are no hops here."""
        ...


@contextmanager
def stations_of(workload: PaperWorkload) -> Iterator[Stations]:
    """Namespaces where that is possible, else loopback. All that was made is removed again."""
    missing = what_is_missing()
    if missing:
        yield OnLoopback(missing)
        return
    names, links = station_links(workload)
    with Namespaces(names, links) as namespaces:
        namespaces.wait_for_routes(bound_s=ROUTES_S)
        yield InNamespaces(namespaces, workload)


def station_links(workload: PaperWorkload) -> tuple[list[str], list[Link]]:
    """All stations and who hears whom: those of nodes have the names of nodes, others those of devices."""
    names = [_station(workload, place) for place in range(PLACES)]
    places = {name: (float(x), float(y)) for name, (x, y) in zip(names, workload.places, strict=True)}
    return names, links_of(places)


def _station(workload: PaperWorkload, place: int) -> str:
    node = node_at(place)
    return node if node in workload.nodes else device_at(place)


class InNamespaces:
    name = "namespaces with babeld"

    def __init__(self, namespaces: Namespaces, workload: PaperWorkload) -> None:
        self._namespaces = namespaces
        self._nodes = workload.nodes
        self._stations = {device_at(place): _station(workload, place) for place in range(PLACES)}
        self._hosts = {device: namespaces.addresses[station][0] for device, station in self._stations.items()}
        self.devices_at = {device: f"{host}:{DEVICES_PORT}" for device, host in self._hosts.items()}
        for name in namespaces.nodes:
            self._nft(name, "-f", "-", text=_COUNTERS)

    def mesh(self, document: Path, directory: Path) -> Mesh:
        return Mesh(document, directory, links=self._namespaces)

    async def open(self, device: DeviceId, server: DevicesServer) -> None:
        with _inside(self._namespaces.namespace(self._stations[device])):
            await server.open(self._hosts[device], DEVICES_PORT)

    def transmitted(self) -> dict[NodeId, Counter[str]]:
        found: dict[NodeId, Counter[str]] = {}
        for node in self._nodes:
            found[node] = Counter()
            for row in json.loads(self._nft(node, "-j", "list", "table", "inet", "counted"))["nftables"]:
                rule = row.get("rule", {})
                for part in rule.get("expr", ()):
                    if "counter" in part:
                        found[node][rule["comment"]] += part["counter"]["bytes"]
        return found

    def _nft(self, name: str, *arguments: str, text: str = "") -> str:
        done = subprocess.run(
            [*self._namespaces.inside(name), "nft", *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=COUNT_S,
            check=True,
        )
        return done.stdout


class OnLoopback:
    def __init__(self, missing: str) -> None:
        """missing: why there are no namespaces."""
        self.name = f"loopback: {missing}"
        self._host = own_loopback(os.getpid())
        at = free_addresses([device_at(place) for place in range(PLACES)], self._host)
        self._at = {DeviceId(name): address for name, address in at.items()}
        self.devices_at = {device: f"{host}:{port}" for device, (host, port) in self._at.items()}

    def mesh(self, document: Path, directory: Path) -> Mesh:
        return _LoopbackMesh(document, directory, host=self._host, besides=tuple(self._at.values()))

    async def open(self, device: DeviceId, server: DevicesServer) -> None:
        await server.open(*self._at[device])

    def transmitted(self) -> dict[NodeId, Counter[str]]:
        return {}


class _LoopbackMesh(Mesh):
    """On an address that no other process uses: no two draw the same ports. besides: those of the devices."""

    def __init__(
        self,
        document: Path,
        directory: Path,
        *,
        host: str,
        besides: Collection[Address],
        links: Links = None,
    ) -> None:
        super().__init__(document, directory, links=links)
        self._host = host
        self._besides = besides

    def _choose_addresses(self) -> None:
        found = free_addresses([*self.nodes, DEVICES], self._host, besides=self._besides)
        self.devices_at = found.pop(DEVICES)
        self.addresses = {NodeId(name): at for name, at in found.items()}


def own_loopback(number: int) -> str:
    """One of the 16 million addresses of loopback, by the number of a process."""
    return f"127.{64 + (number >> 16) % 128}.{number >> 8 & 255}.{number & 255}"


@contextmanager
def _inside(namespace: str) -> Iterator[None]:
    """Sockets that this thread opens meanwhile are in that network namespace, and stay there."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    other = os.open(_NAMESPACES / namespace, os.O_RDONLY)
    try:
        _enter(other)
        try:
            yield
        finally:
            _enter(own)
    finally:
        os.close(other)
        os.close(own)


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _NETWORK) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

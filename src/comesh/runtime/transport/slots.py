"""Shares the slots for handshakes that others began fairly.

Rules: one address, and one network (/24 of IPv4, /64 of IPv6), has a bounded part of them. With no slot left,
the oldest handshake of the greediest network's greediest address goes: at once for a source that has less,
for any other only when it had its time, so that a crowd that comes at once does not displace itself for ever.
Hosts of the address book have slots of their own, so that strangers cannot keep a mesh from itself.
"""

import ipaddress
from collections.abc import Iterable

from comesh.runtime.transport.session import Session

_BITS = {4: 24, 6: 64}

Of = dict[str, dict[str, list[Session]]]
"""By network, by host, oldest first."""


class Slots:
    def __init__(self, most: int, *, of_one_network: int, of_one_host: int, chance_ms: float) -> None:
        self._most = most
        self._of_one_network = of_one_network
        self._of_one_host = of_one_host
        self._chance_ms = chance_ms
        self._taken = 0
        self._of: Of = {}

    def __len__(self) -> int:
        return self._taken

    def make_room(self, host: str, now_ms: float) -> tuple[bool, Session | None]:
        """Says if one more handshake of this host may begin, and which one goes for it."""
        name = network(host)
        hosts = self._of.get(name, {})
        own = len(hosts.get(host, ()))
        if own >= self._of_one_host:
            victim = hosts[host][0]
            is_greedier = False
        elif _count(hosts) >= self._of_one_network:
            greediest = _greediest(hosts.values())
            victim = greediest[0]
            is_greedier = len(greediest) > own + 1
        elif self._taken >= self._most:
            greediest_network = max(self._of.values(), key=lambda of: (_count(of), -_oldest_ms(of)))
            greediest = _greediest(greediest_network.values())
            victim = greediest[0]
            is_greedier = (
                len(greediest) > own + 1
                if greediest_network is hosts
                else _count(greediest_network) > _count(hosts) + 1
            )
        else:
            return True, None
        may = is_greedier or now_ms - victim.began_ms >= self._chance_ms
        return may, victim if may else None

    def add(self, session: Session) -> None:
        host = _host(session)
        self._of.setdefault(network(host), {}).setdefault(host, []).append(session)
        self._taken += 1

    def discard(self, session: Session) -> None:
        host = _host(session)
        name = network(host)
        hosts = self._of.get(name, {})
        sessions = hosts.get(host, [])
        if session not in sessions:
            return
        sessions.remove(session)
        self._taken -= 1
        if not sessions:
            del hosts[host]
        if not hosts:
            del self._of[name]


def network(host: str) -> str:
    """Returns the network of an address, whose hosts can take each other's addresses."""
    address = ipaddress.ip_address(host.partition("%")[0])
    return str(ipaddress.ip_network((address, _BITS[address.version]), strict=False))


def _host(session: Session) -> str:
    return str(session.hello_key[0][0])


def _count(hosts: dict[str, list[Session]]) -> int:
    return sum(len(sessions) for sessions in hosts.values())


def _oldest_ms(hosts: dict[str, list[Session]]) -> float:
    return min(sessions[0].began_ms for sessions in hosts.values())


def _greediest(hosts: Iterable[list[Session]]) -> list[Session]:
    return max(hosts, key=lambda sessions: (len(sessions), -sessions[0].began_ms))

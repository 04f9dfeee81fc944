"""Who is refused although its authority is a known one: asked at each handshake, before anything is read."""

from typing import Protocol

from cryptography import x509

from comesh.core.ids import NodeId


class Guard(Protocol):
    def why_refused(self, certificate: x509.Certificate) -> str:
        """Why there is no session with who shows this; empty: there may be."""
        ...

    def farewell(self, name: NodeId, certificate: x509.Certificate, at: str, why: str) -> bytes:
        """Somebody is refused. What it is told, if it fits a datagram; empty: nothing."""
        ...


class NobodyRefused:
    def why_refused(self, certificate: x509.Certificate) -> str:
        return ""

    def farewell(self, name: NodeId, certificate: x509.Certificate, at: str, why: str) -> bytes:
        return b""

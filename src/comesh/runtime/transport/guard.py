"""Decides at each handshake who is refused although a known authority signed its certificate."""

from typing import Protocol

from cryptography import x509

from comesh.core.ids import NodeId


class Guard(Protocol):
    def why_refused(self, certificate: x509.Certificate) -> str:
        """Why there is no session with who shows this; empty: there may be."""
        ...

    def farewell(self, name: NodeId, certificate: x509.Certificate, at: str, why: str) -> bytes:
        """Returns the bytes that a refused peer gets, if they fit a datagram; empty: none."""
        ...


class NobodyRefused:
    def why_refused(self, certificate: x509.Certificate) -> str:
        return ""

    def farewell(self, name: NodeId, certificate: x509.Certificate, at: str, why: str) -> bytes:
        return b""

"""A running node's credentials and the peers that it refuses, as its files and the other nodes say now.

    keys/NAME.key, NAME.crt, authority.crt    read again when they change: no restart for new keys
    keys/revoked.crl                          from a person; data/revoked.crl: the newest from anybody

Rules: new files count once they can be used, all of them together; until then the former ones do, and the log
says why. A list of revoked certificates counts if an authority of this node signed it and it is newer than
what the node has. Of a peer that is refused the log tells now and then, the trouble as long as it tries.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from cryptography import x509

from comesh.core.ids import NodeId
from comesh.runtime.credentials import (
    AUTHORITY,
    Credentials,
    CredentialsError,
    WallClock,
    signer_of,
    write_file,
)
from comesh.runtime.log import Log
from comesh.runtime.revocation import FILE, NO_RANK, Rank, RevocationList, Revocations, read_lists, verified

REFUSED_MS: Final = 60_000.0
"""Time after its last try in which a refused peer counts as trouble."""
TOLD_MS: Final = 3_600_000.0
"""Minimum time between log lines about the same peer."""
MAX_REFUSED: Final = 256
"""Names of refused ones that are remembered."""
REVOKED: Final = "shows a revoked certificate"
UNTRUSTED: Final = "shows a certificate of an authority that is not trusted any more"

Stamps = tuple[tuple[int, ...] | None, ...]


class RevokedError(CredentialsError):
    """This node's own certificate is revoked."""


class Trust:
    def __init__(self, keys: Path, data: Path, name: NodeId, log: Log, now_ms: Callable[[], float]) -> None:
        """Raises CredentialsError. Dates are told, not refused: a clock that is wrong must not keep the node
        from asking the others."""
        self._keys = keys
        self._kept = data / FILE
        self._name = name
        self._log = log
        self._now_ms = now_ms
        self._wall_ms: WallClock = _no_time
        self.counters: Counter[str] = Counter()
        self.revocations = Revocations()
        self.on_credentials: list[Callable[[], object]] = []
        """Called when the node has other keys, or trusts other authorities."""
        self.on_revoked: list[Callable[[], object]] = []
        """Called when other certificates are revoked than before."""
        self.last_words: Callable[[RevocationList], bytes] = lambda _: b""
        """Bytes for a node whose revoked certificate this list has."""
        self._refused: dict[NodeId, tuple[float, str, str]] = {}
        """When it last tried, why it is refused, and that in words."""
        self._told_ms: dict[NodeId, float] = {}
        self._told_notes: set[str] = set()
        self._trouble = ""
        self._forgotten = ""
        self._said_revoked = False
        self._stamps = self._look()
        self._list_stamp = _stamp(keys / FILE)
        self._unusable: Stamps = ()
        self.credentials = Credentials.load(keys, name, _no_time)
        for path in (self._kept, keys / FILE):
            self._read_lists(path)
        if self.is_revoked:
            raise RevokedError(self.own_words())

    def set_clock(self, wall_ms: WallClock) -> None:
        self._wall_ms = wall_ms
        self.credentials = self.credentials.with_clock(wall_ms)

    # -- files -------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Says if files have changed, and what a person should know of dates."""
        stamps = self._look()
        if stamps != self._stamps:
            self._renew(stamps)
        stamp = _stamp(self._keys / FILE)
        if stamp != self._list_stamp:
            self._list_stamp = stamp
            self._read_new_lists(self._keys / FILE)
        for note in self.credentials.notes():
            if note not in self._told_notes:
                self._told_notes.add(note)
                self._log.warn(note)

    def _look(self) -> Stamps:
        files = (f"{AUTHORITY}.crt", f"{self._name}.crt", f"{self._name}.key")
        return tuple(_stamp(self._keys / file) for file in files)

    def _renew(self, stamps: Stamps) -> None:
        """Files are copied one by one: what cannot be used now may be whole at the next look."""
        try:
            found = Credentials.load(self._keys, self._name, _no_time).with_clock(self._wall_ms)
            if self.revocations.since(found.certificate, found.authorities) and not self.is_revoked:
                raise CredentialsError(f"the certificate in {self._keys} is revoked")
        except CredentialsError as wrong:
            if self._unusable == stamps and not self._trouble:
                self._trouble = f"new keys are not used: {wrong}"
                self._log.error(self._trouble)
            self._unusable = stamps
            return
        self._stamps, self._unusable, self._trouble = stamps, (), ""
        former, self.credentials = self.credentials, found
        if found.certificate != former.certificate:
            self._said_revoked = False
            self._log.say("new keys of this node are used from now on")
        if found.authorities != former.authorities:
            count = len(found.authorities)
            self._log.say(f"certificates of {count} {'authority' if count == 1 else 'authorities'} count now")
            self.revocations.keep_only(found.authorities)
        if (found.certificate, found.authorities) != (former.certificate, former.authorities):
            for changed in self.on_credentials:
                changed()
            # Of an authority that was not known before, or is known again.
            self._read_new_lists(self._kept, self._keys / FILE)

    def _read_new_lists(self, *paths: Path) -> None:
        known = self.revocations.lists
        for path in paths:
            self._read_lists(path)
        if self.revocations.lists != known:
            self._on_lists()

    def _read_lists(self, path: Path) -> None:
        try:
            lists = read_lists(path)
        except CredentialsError as wrong:
            self._log.error(str(wrong))
            return
        for der in lists:
            why_not = self._take(der)
            if why_not and path != self._kept:
                self._log.warn(f"{path} is not used: {why_not}")

    # -- lists of revoked certificates -------------------------------------------------------------------

    def take(self, der: bytes) -> None:
        """A list that another node has."""
        known = self.revocations.lists
        self._take(der)
        if self.revocations.lists != known:
            self._on_lists()

    def hear_of_revocation(self) -> None:
        """Another node says that this one is revoked; the list was too long to be shown."""
        if not self._said_revoked:
            self._said_revoked = True
            self._log.error(self.own_words())

    def _known(self, der: bytes) -> bool:
        return any(one.der == der for one in self.revocations.lists)

    def _take(self, der: bytes) -> str:
        """Why it is not taken; empty: it is, or it was before."""
        if self._known(der):
            return ""
        found = verified(der, self.credentials.authorities)
        if found is None:
            self.counters["revocation lists refused: not signed by our authority"] += 1
            return "no authority of this node signed it"
        former = next((one for one in self.revocations.lists if one.authority == found.authority), None)
        taken = self.revocations.take(found)
        if former is not None:
            self._look_for_forgotten(*((former, found) if taken else (found, former)))
        if not taken:
            self.counters["revocation lists refused: older"] += 1
            return f"its number is {found.number}, and this node has a newer one: {self._kept}"
        self.counters["revocation lists taken"] += 1
        self._log.say(f"list {found.number} of revoked certificates: {len(found.revoked)} on it")
        self._keep()
        return ""

    def _look_for_forgotten(self, older: RevocationList, newer: RevocationList) -> None:
        """Each list has all of the one before. If not, they come of two copies of the authority's files, or
        of one that had lost its list."""
        forgotten = older.revoked.keys() - newer.revoked.keys()
        if forgotten:
            self._forgotten = (
                f"{len(forgotten)} of the certificates on list {older.number} of revoked ones are not on "
                f"list {newer.number}, which counts: copy {self._kept} to where authority.key is, and revoke "
                "them once more"
            )
            self._log.error(self._forgotten)
        elif newer.number > older.number:
            self._forgotten = ""

    def _keep(self) -> None:
        try:
            write_file(self._kept, self.revocations.pem(), 0o600)
        except CredentialsError as wrong:
            self._log.error(f"{wrong}; at the next start others have to tell it again")

    def _on_lists(self) -> None:
        if self.is_revoked:
            stamps = self._look()
            if stamps != self._stamps:  # new keys may be there already
                self._renew(stamps)
        for changed in self.on_revoked:
            changed()

    def newer_than(self, ranks: Mapping[str, Rank]) -> tuple[RevocationList, ...]:
        lists = self.revocations.lists
        return tuple(one for one in lists if one.rank > ranks.get(one.authority, NO_RANK))

    # -- ourselves ---------------------------------------------------------------------------------------

    @property
    def is_revoked(self) -> bool:
        """This node's own certificate counts no more: others refuse it."""
        own = self.credentials
        return self.revocations.since(own.certificate, own.authorities) is not None

    def own_words(self) -> str:
        return (
            f"the certificate of this node is revoked: no other node talks to it. If {self._name} is to go "
            f"on here, make new keys with: comesh keys node {self._name} --force, copy {self._name}.key and "
            f"{self._name}.crt to {self._keys}, and start it again"
        )

    # -- others ------------------------------------------------------------------------------------------

    def why_refused(self, certificate: x509.Certificate) -> str:
        authorities = self.credentials.authorities
        if self.revocations.since(certificate, authorities) is not None:
            return REVOKED
        return "" if signer_of(certificate, authorities) is not None else UNTRUSTED

    def farewell(self, name: NodeId, certificate: x509.Certificate, at: str, why: str) -> bytes:
        self.counters[f"refused: {why}"] += 1
        now_ms = self._now_ms()
        if name in self._refused or len(self._refused) < MAX_REFUSED:
            self._refused[name] = (now_ms, why, f"{name} {why} (at {at}): it is kept out")
            if now_ms - self._told_ms.get(name, -TOLD_MS) >= TOLD_MS:
                self._told_ms[name] = now_ms
                self._log.warn(self._refused[name][2])
        signer = signer_of(certificate, self.credentials.authorities)
        proof = None if signer is None else self.revocations.of(signer)
        return b"" if why != REVOKED or proof is None else self.last_words(proof)

    def trouble(self, settled: Callable[[NodeId], bool] = lambda _: False) -> tuple[str, ...]:
        """What a person should look after. settled: this node has a session again, or is in the document no
        more: a former authority is of no concern then. A revoked certificate is, for a thief may show it."""
        now_ms = self._now_ms()
        refused = [
            words
            for name, (at_ms, why, words) in self._refused.items()
            if now_ms - at_ms < REFUSED_MS and not (why == UNTRUSTED and settled(name))
        ]
        own = self.own_words() if self._said_revoked else ""
        return tuple(filter(None, (own, self._trouble, self._forgotten, *self.credentials.notes(), *refused)))


def _no_time() -> float | None:
    return None


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size

"""Lists of revoked certificates that the authority signs: X.509 CRLs, in the file revoked.crl.

Rules: a list names serial numbers of certificates of the authority that signed it, and no other. The higher
number replaces the lower, so what was revoked cannot be taken back by an older list. Dates of lists are not
looked at: a node that knows no time yet still refuses whom it must. Whoever has a list can check it, so it
goes from node to node, and nobody has to agree on it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from comesh.runtime.credentials import (
    AUTHORITY,
    Authority,
    CredentialsError,
    read_certificates,
    read_file,
    signer_of,
)

FILE: Final = "revoked.crl"
MAX_REVOKED: Final = 1_000
"""Certificates on one list: it fits the file and one message."""
MAX_LIST_BYTES: Final = 49_152
MAX_FILE_BYTES: Final = 262_144
"""Maximum bytes of a file with the lists of two authorities, as text."""
MAX_NUMBER: Final = (1 << 63) - 1
UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""Exceptions for bytes that are no list, wherever they are wrong."""

Rank = tuple[int, int, str]
NO_RANK: Final[Rank] = (0, 0, "")


@dataclass(frozen=True)
class RevocationList:
    """The list of one authority."""

    authority: str
    """The key that signed it, as `key_of` says."""
    number: int
    revoked: dict[int, datetime]
    """Serial numbers, and since when."""
    der: bytes

    @property
    def digest(self) -> str:
        return sha256(self.der).hexdigest()[:32]

    @property
    def rank(self) -> Rank:
        """The greater one counts. Two lists with one number come of two copies of the authority's files."""
        return self.number, len(self.revoked), self.digest

    def pem(self) -> bytes:
        return x509.load_der_x509_crl(self.der).public_bytes(serialization.Encoding.PEM)


def key_of(authority: x509.Certificate) -> str:
    """Returns the key that tells authorities apart, also those of one name."""
    key = authority.public_key()
    return x509.SubjectKeyIdentifier.from_public_key(_signing(key)).digest.hex()[:16]


def _signing(key: object) -> ec.EllipticCurvePublicKey:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise CredentialsError("the authority has no elliptic-curve key; make it with: comesh keys init")
    return key


def sign(
    authority: Authority, former: RevocationList | None, serials: Iterable[int], now: datetime | None = None
) -> RevocationList:
    """A list with all of the former one, and these; its number is the next one."""
    now = (now or datetime.now(UTC)).replace(microsecond=0)
    revoked = {} if former is None else dict(former.revoked)
    for serial in serials:
        revoked.setdefault(serial, now)
    if len(revoked) > MAX_REVOKED:
        raise CredentialsError(
            f"{MAX_REVOKED} certificates are revoked already; make a new authority with: comesh keys rotate "
            "--authority"
        )
    number = 1 if former is None else former.number + 1
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.certificate.subject)
        .last_update(now)
        .next_update(authority.certificate.not_valid_after_utc)
        .add_extension(x509.CRLNumber(number), critical=False)
        .add_extension(signer, critical=False)
    )
    for serial, since in revoked.items():
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(since)
        builder = builder.add_revoked_certificate(entry.build())
    made = builder.sign(authority.key, hashes.SHA256())
    der = made.public_bytes(serialization.Encoding.DER)
    return RevocationList(key_of(authority.certificate), number, revoked, der)


def verified(der: bytes, authorities: Iterable[x509.Certificate]) -> RevocationList | None:
    """The list, if one of these authorities signed it."""
    if len(der) > MAX_LIST_BYTES:
        return None
    try:
        found = x509.load_der_x509_crl(der)
        number = found.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
        signer = next((one for one in authorities if _is_signed_by(found, one)), None)
        if signer is None or not 0 < number <= MAX_NUMBER or len(found) > MAX_REVOKED:
            return None
        revoked = {one.serial_number: one.revocation_date_utc for one in found}
    except UNREADABLE:
        return None
    return RevocationList(key_of(signer), number, revoked, der)


def _is_signed_by(found: x509.CertificateRevocationList, authority: x509.Certificate) -> bool:
    try:
        return found.issuer == authority.subject and found.is_signature_valid(
            _signing(authority.public_key())
        )
    except (InvalidSignature, *UNREADABLE):
        return False


def read_lists(path: Path) -> list[bytes]:
    """Reads all lists of a file, as they are; none where there is no file."""
    if not path.exists():
        return []
    remedy = "copy it again from where it was made"
    content = read_file(path, remedy, MAX_FILE_BYTES)
    end = b"-----END X509 CRL-----"
    try:
        return [
            x509.load_pem_x509_crl(part + end).public_bytes(serialization.Encoding.DER)
            for part in content.split(end)
            if part.strip()
        ]
    except UNREADABLE:
        raise CredentialsError(f"{path} is not a list of revoked certificates; {remedy}") from None


def is_revoked(keys: Path, shown: bytes) -> bool:
    """Says if a certificate is on a list beside these keys; lists of other authorities say nothing.
    CredentialsError: the files cannot be read."""
    authorities = read_certificates(keys / f"{AUTHORITY}.crt", "copy it from where it was made")
    known = Revocations()
    for one in filter(None, (verified(der, authorities) for der in read_lists(keys / FILE))):
        known.take(one)
    return known.since(x509.load_der_x509_certificate(shown), authorities) is not None


class Revocations:
    """The newest list of each authority."""

    def __init__(self) -> None:
        self._lists: dict[str, RevocationList] = {}

    @staticmethod
    def read(path: Path, authorities: Iterable[x509.Certificate]) -> "Revocations":
        """Reads the lists for the person who has the authority: a list that cannot be verified is an
        error."""
        found, authorities = Revocations(), tuple(authorities)
        for der in read_lists(path):
            one = verified(der, authorities)
            if one is None:
                raise CredentialsError(
                    f"{path} has a list that no authority of these keys signed; copy the right one here, or "
                    "move it away"
                )
            found.take(one)
        return found

    @property
    def lists(self) -> tuple[RevocationList, ...]:
        return tuple(self._lists[authority] for authority in sorted(self._lists))

    def of(self, authority: x509.Certificate) -> RevocationList | None:
        return self._lists.get(key_of(authority))

    def take(self, one: RevocationList) -> bool:
        """False: it is known, or older."""
        known = self._lists.get(one.authority)
        if known is not None and known.rank >= one.rank:
            return False
        self._lists[one.authority] = one
        return True

    def keep_only(self, authorities: Iterable[x509.Certificate]) -> None:
        """Lists of authorities that are not trusted any more say nothing."""
        trusted = {key_of(one) for one in authorities}
        self._lists = {authority: one for authority, one in self._lists.items() if authority in trusted}

    def since(
        self, certificate: x509.Certificate, authorities: Iterable[x509.Certificate]
    ) -> datetime | None:
        """Since when it is revoked; None: it is not."""
        serial = certificate.serial_number
        if not any(serial in one.revoked for one in self._lists.values()):
            return None
        signer = signer_of(certificate, authorities)
        known = None if signer is None else self.of(signer)
        return None if known is None else known.revoked.get(serial)

    def pem(self) -> bytes:
        return b"".join(one.pem() for one in self.lists)

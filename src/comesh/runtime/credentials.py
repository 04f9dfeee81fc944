"""The deployment's own authority, and a key and certificate per node, as files.

    authority.key, authority.crt     made once, kept by the person who runs the deployment; works offline
    NAME.key, NAME.crt               per node; a node needs these two and authority.crt, nothing else
    former/NAME.pem                  certificates that were replaced and are still valid: they can be revoked
    revoked.crl                      which certificates count no more; see `revocation`

While an authority is replaced, authority.crt holds several: the first one signs, all are trusted. Rules: keys
are P-256, readable by their owner only, and refused otherwise. A node's name stands in its certificate as the
URI `comesh:node:NAME`, and as a host name for clients of its HTTP interface. Dates are compared with the
clock that the node gives, which may know no time yet: then signature and name are still checked, so that a
certificate does not lock a node out for ever.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from OpenSSL import SSL, crypto

from comesh.core.ids import NodeId

AUTHORITY: Final = "authority"
"""The name of the authority's files, which no node can have."""
FORMER: Final = "former"
"""The directory of certificates that were replaced and are still valid."""
MAX_FORMER: Final = 64
"""Maximum former certificates of one node, the latest ones: they fit a file."""
AUTHORITY_DAYS: Final = 3650
NODE_DAYS: Final = 730
WARN_DAYS: Final = 30
"""A certificate that is valid for less is told of."""
MAX_DAYS: Final = 36_500
"""A hundred years: dates stay within what certificates can say."""
BACKDATED: Final = timedelta(days=1)
"""Time before now from which a certificate is valid, for machines whose clocks are behind."""
MAX_FILE_BYTES: Final = 65_536
"""Maximum bytes of a key or certificate file; a longer one is not ours."""
CIPHERS: Final = b"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-GCM-SHA384"
DTLS_1_2: Final = 0xFEFD

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_DEPLOYMENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,53}")
"""Names of deployments: with the word authority they make the 64 characters that a certificate allows."""
_URI: Final = "comesh:node:"
_DATES: Final = (9, 10)
"""X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED, by the machine's clock: it is not asked."""

_RENEW: Final = (
    "make a new one with: comesh keys rotate {name}, and copy {name}.key and {name}.crt to the keys of this "
    "node. It takes them without a restart"
)
_NEW_AUTHORITY: Final = (
    "replace it, and then all certificates, beginning with: comesh keys rotate --authority"
)
_FINISH: Final = "drop it with: comesh keys rotate --authority --finish, once all nodes have new certificates"

WallClock = Callable[[], float | None]
"""Milliseconds since 1970, or None as long as the node knows no time."""


class CredentialsError(Exception):
    """Raised when credentials cannot be made or used; str() says where, what is wrong, and what to do."""


def machine_clock() -> float | None:
    return time.time() * 1000.0


@dataclass(frozen=True)
class Issued:
    """A key and its certificate, as the files hold them."""

    key: bytes
    certificate: bytes

    def write(self, directory: Path, name: str, *, force: bool = False) -> None:
        files = (directory / f"{name}.key", self.key), (directory / f"{name}.crt", self.certificate)
        for path, _ in files:
            if path.exists() and not force:
                raise CredentialsError(f"{path} exists already and is left as it is; --force replaces it")
        if name != AUTHORITY:
            _keep_former(directory, name)
        for path, content in files:
            write_file(path, content, 0o600 if path.suffix == ".key" else 0o644)


@dataclass(frozen=True)
class Authority:
    """Signs the certificates of one deployment's nodes."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @staticmethod
    def create(
        directory: Path, name: str = "comesh", days: int = AUTHORITY_DAYS, *, force: bool = False
    ) -> "Authority":
        """Makes the directory and both files."""
        if not _DEPLOYMENT.fullmatch(name):
            raise CredentialsError(
                f"{name!r} cannot name a deployment; take letters, digits, space, . _ -, at most 54"
            )
        own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} authority")])
        made = Authority.make(own, days)
        make_directory(directory)
        _as_issued(made.key, made.certificate).write(directory, AUTHORITY, force=force)
        return made

    @staticmethod
    def make(own: x509.Name, days: int) -> "Authority":
        """A new one, in no file yet."""
        key = ec.generate_private_key(ec.SECP256R1())
        begins, ends = _period(days)
        certificate = (
            _builder(own, own, key.public_key(), begins, ends)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return Authority(key, certificate)

    @staticmethod
    def load(directory: Path) -> "Authority":
        key, certificate = _read_pair(
            directory,
            AUTHORITY,
            missing="make it with: comesh keys init",
            spoiled="restore it from a copy: a new authority needs new keys for all nodes",
        )
        return Authority(key, certificate)

    def key_file(self) -> bytes:
        return _as_issued(self.key, self.certificate).key

    def issue(self, name: str, days: int = NODE_DAYS) -> Issued:
        """Issues a certificate for one node, valid not longer than the authority itself."""
        if not _NAME.fullmatch(name) or name == AUTHORITY:
            raise CredentialsError(
                f"{name!r} cannot be the name of a node; take lower-case letters, digits and _, "
                f"a letter first, and not {AUTHORITY!r}"
            )
        key = ec.generate_private_key(ec.SECP256R1())
        begins, ends = _period(days)
        ends = min(ends, self.certificate.not_valid_after_utc)
        if ends <= begins + BACKDATED:
            raise CredentialsError(
                "the authority's certificate has expired; make a new one with: comesh keys rotate --authority"
            )
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        both = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        names = [x509.UniformResourceIdentifier(_URI + name), x509.DNSName(name)]
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            _builder(subject, self.certificate.subject, key.public_key(), begins, ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(both), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(signer, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return _as_issued(key, certificate)


@dataclass(frozen=True)
class Credentials:
    """The key and certificate of one node, and the authorities that it checks others by."""

    name: NodeId
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    authorities: tuple[x509.Certificate, ...]
    """All trusted authorities; the first one signs now."""
    wall_ms: WallClock = machine_clock

    @staticmethod
    def load(directory: Path, name: str, wall_ms: WallClock = machine_clock) -> "Credentials":
        """Loads a node's credentials. Refuses what no peer would accept."""
        trusted = directory / f"{AUTHORITY}.crt"
        authorities = read_certificates(trusted, "copy it from where it was made")
        make = f"comesh keys node {name}"
        key, certificate = _read_pair(
            directory, name, missing=f"make it with: {make}", spoiled=f"make it again with: {make} --force"
        )
        where = directory / f"{name}.crt"
        found = name_in(certificate)
        if found != name:
            raise CredentialsError(f"{where} is the certificate of {found or 'no node'}, not of {name}")
        signer = signer_of(certificate, authorities)
        if signer is None:
            raise CredentialsError(
                f"{where} is not signed by {trusted}; make it again with: comesh keys node {name} --force"
            )
        for path, one in ((where, certificate), (trusted, signer)):
            wrong = date_problem(one, wall_ms())
            if wrong:
                raise CredentialsError(f"{path} {wrong}; make it again, or set this machine's clock")
        return Credentials(NodeId(name), key, certificate, authorities, wall_ms)

    @property
    def issued_ms(self) -> float:
        """Time at which the youngest certificate was made: no clock that shows an earlier time is right."""
        made = max(one.not_valid_before_utc for one in (self.certificate, *self.authorities))
        return made.timestamp() * 1000.0

    def notes(self) -> tuple[str, ...]:
        """Says what a person should do about dates, in time."""
        found: list[str] = []
        if signer_of(self.certificate, self.authorities[:1]) is None:
            found.append(
                f"this node's certificate is of the former authority; {_RENEW.format(name=self.name)}"
            )
        wall_ms = self.wall_ms()
        if wall_ms is None:
            return tuple(found)
        dated = [("this node's certificate", self.certificate, _RENEW.format(name=self.name))]
        dated += [("the authority", one, _NEW_AUTHORITY) for one in self.authorities[:1]]
        dated += [("the former authority", one, _FINISH) for one in self.authorities[1:]]
        for whose, one, remedy in dated:
            wrong = date_problem(one, wall_ms)
            left_days = (one.not_valid_after_utc.timestamp() * 1000.0 - wall_ms) / 86_400_000.0
            if wrong:
                found.append(f"{whose} {wrong}; {remedy}")
            elif left_days < WARN_DAYS:
                found.append(f"{whose} expires in {left_days:.0f} days; {remedy}")
        return tuple(found)

    def with_clock(self, wall_ms: WallClock) -> "Credentials":
        return replace(self, wall_ms=wall_ms)

    def context(self) -> SSL.Context:
        """Returns a context for DTLS in both directions: each side shows a certificate of these authorities,
        or there is no session.

        Nothing is resumed, so that every session checks the certificate again.
        """
        context = SSL.Context(SSL.DTLS_METHOD)
        context.set_min_proto_version(DTLS_1_2)
        context.set_cipher_list(CIPHERS)
        context.use_certificate(self.certificate)
        context.use_privatekey(self.key)
        store = context.get_cert_store()
        if store is None:
            raise CredentialsError("this OpenSSL keeps no certificates; install another build of it")
        for authority in self.authorities:
            store.add_cert(crypto.X509.from_cryptography(authority))
        context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, self._accepts)
        context.set_verify_depth(1)
        context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
        context.set_options(SSL.OP_NO_QUERY_MTU | SSL.OP_NO_TICKET | SSL.OP_NO_RENEGOTIATION)
        return context

    def _accepts(self, _: SSL.Connection, shown: crypto.X509, error: int, depth: int, fine: int) -> bool:
        """OpenSSL's own look at the dates does not count: it asks the machine's clock. Ours is asked."""
        if not fine and error not in _DATES:
            return False
        return date_problem(shown.to_cryptography(), self.wall_ms()) is None


def name_in(certificate: x509.Certificate) -> NodeId | None:
    """Returns the node's name in a certificate; None if it is no node's."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return None
    found = [uri for uri in names.get_values_for_type(x509.UniformResourceIdentifier) if uri.startswith(_URI)]
    if len(found) != 1 or not _NAME.fullmatch(found[0].removeprefix(_URI)):
        return None
    return NodeId(found[0].removeprefix(_URI))


def signer_of(
    certificate: x509.Certificate, authorities: Iterable[x509.Certificate]
) -> x509.Certificate | None:
    """Returns the authority that signed a certificate; None: none of them."""
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (InvalidSignature, ValueError, TypeError):
            continue
        return authority
    return None


def date_problem(certificate: x509.Certificate, wall_ms: float | None) -> str | None:
    if wall_ms is None:
        return None
    try:
        now = datetime.fromtimestamp(wall_ms / 1000.0, UTC)
    except (ValueError, OverflowError, OSError):
        return "cannot be checked, because the clock is beyond all dates"
    if now > certificate.not_valid_after_utc:
        return f"expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
    if now < certificate.not_valid_before_utc:
        return f"is not valid before {certificate.not_valid_before_utc:%Y-%m-%d}"
    return None


def fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex()


def read_certificate(path: Path, remedy: str) -> x509.Certificate:
    """The first one of the file."""
    return read_certificates(path, remedy)[0]


def read_certificates(path: Path, remedy: str) -> tuple[x509.Certificate, ...]:
    """Reads all certificates of a file; at least one."""
    content = read_file(path, remedy)
    try:
        found = tuple(x509.load_pem_x509_certificates(content))
    except (ValueError, x509.InvalidVersion):
        raise CredentialsError(f"{path} is not a certificate; {remedy}") from None
    if len(found) != content.count(b"-----BEGIN "):
        raise CredentialsError(f"{path} is not whole, or has something else in it; {remedy}")
    return found


def certificates_of(directory: Path, name: str) -> list[x509.Certificate]:
    """Returns all known certificates of a node: the one in use, and former ones."""
    paths = [directory / f"{name}.crt", directory / FORMER / f"{name}.pem"]
    found = [one for path in paths if path.is_file() for one in read_certificates(path, "move it away")]
    return [one for one in found if name_in(one) == name]


def as_pem(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in certificates)


def _keep_former(directory: Path, name: str) -> None:
    """Keeps a replaced certificate, which stays valid until it expires: its number is needed to revoke it."""
    path, kept = directory / f"{name}.crt", directory / FORMER / f"{name}.pem"
    if not path.is_file():
        return
    try:
        replaced = read_certificates(path, "")
    except CredentialsError:
        return  # what is no certificate needs no revoking
    former = read_certificates(kept, "move it away") if kept.is_file() else ()
    now = datetime.now(UTC)
    left = [one for one in (*former, *replaced) if one.not_valid_after_utc > now]
    if left:
        make_directory(kept.parent)
        write_file(kept, as_pem(left[-MAX_FORMER:]), 0o644)


def _read_pair(
    directory: Path, name: str, *, missing: str, spoiled: str
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    path = directory / f"{name}.key"
    remedy = spoiled if path.exists() else missing
    key = read_key(path, remedy)
    certificate = read_certificate(directory / f"{name}.crt", remedy)
    if certificate.public_key() != key.public_key():
        raise CredentialsError(f"{path} and {directory / (name + '.crt')} do not belong together; {remedy}")
    return key, certificate


def read_key(path: Path, remedy: str) -> ec.EllipticCurvePrivateKey:
    content = read_file(path, remedy)
    if _mode(path) & (stat.S_IRWXG | stat.S_IRWXO):
        raise CredentialsError(f"{path} can be read by others; keep it to its owner with: chmod 600 {path}")
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError):
        raise CredentialsError(f"{path} is not a key without a password; {remedy}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CredentialsError(f"{path} is not an elliptic-curve key; {remedy}")
    return key


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError as problem:  # it is being replaced
        raise CredentialsError(f"{path} cannot be read ({problem.strerror})") from None


def read_file(path: Path, remedy: str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise CredentialsError(f"{path} is missing; {remedy}") from None
    except OSError as problem:
        raise CredentialsError(f"{path} cannot be read ({problem.strerror})") from None
    if len(content) > max_bytes:
        raise CredentialsError(f"{path} is longer than any key or certificate; {remedy}")
    return content


def make_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not any(directory.iterdir()):
            directory.chmod(0o700)
    except OSError as problem:
        raise CredentialsError(f"{directory} cannot be used ({problem.strerror})") from None


def write_file(path: Path, content: bytes, mode: int) -> None:
    """Writes the whole file or nothing, never readable by more people than it should be."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        scratch.replace(path)
    except OSError as problem:
        scratch.unlink(missing_ok=True)
        raise CredentialsError(f"{path} cannot be written ({problem.strerror})") from None


def _as_issued(key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> Issued:
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    return Issued(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain), certificate.public_bytes(pem)
    )


def _period(days: int) -> tuple[datetime, datetime]:
    if not 1 <= days <= MAX_DAYS:
        raise CredentialsError(f"a certificate is valid for 1 to {MAX_DAYS} days, not for {days}")
    now = datetime.now(UTC)
    return now - BACKDATED, now + timedelta(days=days)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, begins: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )

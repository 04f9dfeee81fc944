"""A bundle that waits at a node for the machine it is for, and the token that fetches it, once.

    token = id | secret | fingerprint of the authority      the person carries it to the new machine
    proof = HKDF(secret, "proof")                           shows the node that the token is known
    key   = HKDF(secret, "key")                             opens the bundle; the node never has it

So the node that keeps an invitation, whoever reads its disk, and whoever sits between can neither read the
bundle nor make another one: it is sealed with AES-256-GCM, and the fingerprint says whose it must be.
"""

import base64
import binascii
import hashlib
import os
import secrets
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from comesh.runtime.credentials import CredentialsError

PREFIX: Final = "comesh-join_"
ID_BYTES: Final = 12
SECRET_BYTES: Final = 32
FINGERPRINT_BYTES: Final = 32
NONCE_BYTES: Final = 12
MAX_SEALED_BYTES: Final = 1_000_000
_TOKEN_BYTES: Final = ID_BYTES + SECRET_BYTES + FINGERPRINT_BYTES


@dataclass(frozen=True)
class JoinToken:
    id: str
    secret: bytes
    fingerprint: str
    """Fingerprint of the authority, in hexadecimal."""

    @staticmethod
    def draw(fingerprint: str) -> "JoinToken":
        return JoinToken(secrets.token_hex(ID_BYTES), secrets.token_bytes(SECRET_BYTES), fingerprint)

    @staticmethod
    def read(text: str) -> "JoinToken":
        wrong = CredentialsError("this is no token of `comesh keys invite`; copy all of it")
        try:
            parts = base64.b64decode(text.strip().removeprefix(PREFIX), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise wrong from None
        if not text.strip().startswith(PREFIX) or len(parts) != _TOKEN_BYTES:
            raise wrong
        secret_at, fingerprint_at = ID_BYTES, ID_BYTES + SECRET_BYTES
        return JoinToken(
            parts[:secret_at].hex(), parts[secret_at:fingerprint_at], parts[fingerprint_at:].hex()
        )

    def text(self) -> str:
        parts = bytes.fromhex(self.id) + self.secret + bytes.fromhex(self.fingerprint)
        return PREFIX + base64.urlsafe_b64encode(parts).decode()

    @property
    def proof(self) -> str:
        return self._derived(b"comesh invitation: proof").hex()

    @property
    def verifier(self) -> str:
        return verifier_of(self.proof)

    def seal(self, plain: bytes) -> str:
        nonce = os.urandom(NONCE_BYTES)
        return base64.b64encode(nonce + self._cipher().encrypt(nonce, plain, self._about())).decode()

    def open(self, sealed: str) -> bytes:
        try:
            content = base64.b64decode(sealed, validate=True)
            return self._cipher().decrypt(content[:NONCE_BYTES], content[NONCE_BYTES:], self._about())
        except (InvalidTag, binascii.Error, ValueError):
            raise CredentialsError(
                "what the node has for this token was changed on its way, or is not for it; make a new "
                "invitation with: comesh keys invite"
            ) from None

    def _cipher(self) -> AESGCM:
        return AESGCM(self._derived(b"comesh invitation: key"))

    def _about(self) -> bytes:
        return bytes.fromhex(self.id) + bytes.fromhex(self.fingerprint)

    def _derived(self, purpose: bytes) -> bytes:
        return HKDF(hashes.SHA256(), 32, salt=bytes.fromhex(self.id), info=purpose).derive(self.secret)


def verifier_of(proof: str) -> str:
    """Returns the verifier that the node keeps: a proof is 256 bits that nobody can guess, so a plain hash
    will do."""
    return hashlib.sha256(proof.encode(errors="replace")).hexdigest()

"""A bundle: all that a new machine needs to be a node, as one file with keys, authorities, revocations, and
the document.

Who has the file is the node: it is written for its owner only. What comes out of it is checked as if it came
from a stranger, before anything is written.
"""

import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from comesh.core.ids import NodeId
from comesh.deployment.problems import did_you_mean
from comesh.runtime.credentials import (
    AUTHORITY,
    Authority,
    Credentials,
    CredentialsError,
    fingerprint,
    make_directory,
    read_file,
    write_file,
)
from comesh.runtime.documents import DocumentError, parsed
from comesh.runtime.options import OWNER
from comesh.runtime.revocation import FILE, Revocations

VERSION: Final = 1
MAX_BUNDLE_BYTES: Final = 700_000
"""Maximum bytes of a bundle, so that it fits an invitation, encrypted and as text."""
_DOCUMENT_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,99}")


class Bundle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    comesh_bundle: int
    """The version of this format."""
    node: NodeId
    key: str
    certificate: str
    authorities: str
    revoked: str
    document_name: str
    document: str


def pack(directory: Path, name: str, document: Path) -> tuple[bytes, bool]:
    """The bundle of a node, and whether its keys were made for it: it had none."""
    text = _text_of(document)
    _check_names(text, str(document), name)
    made = not (directory / f"{name}.crt").exists()
    if made:
        Authority.load(directory).issue(name).write(directory, name)
    own = Credentials.load(directory, name)
    revocations = Revocations.read(directory / FILE, own.authorities)
    if revocations.since(own.certificate, own.authorities) is not None:
        raise CredentialsError(
            f"the certificate of {name} is revoked; make a new one with: comesh keys node {name} --force"
        )
    content = msgspec.json.encode(
        Bundle(
            comesh_bundle=VERSION,
            node=own.name,
            key=_content(directory / f"{name}.key"),
            certificate=_content(directory / f"{name}.crt"),
            authorities=_content(directory / f"{AUTHORITY}.crt"),
            revoked=revocations.pem().decode(),
            document_name=document.name,
            document=text,
        )
    )
    if len(content) > MAX_BUNDLE_BYTES:
        raise CredentialsError(f"{document} is too long: a bundle has {MAX_BUNDLE_BYTES} bytes at most")
    return content, made


def read_bundle(path: Path) -> Bundle:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(MAX_BUNDLE_BYTES + 1)
    except OSError as wrong:
        raise CredentialsError(f"{path} cannot be read ({wrong.strerror})") from None
    bundle = decoded(content, str(path))
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise CredentialsError(f"{path} can be read by others; keep it to its owner with: chmod 600 {path}")
    return bundle


def decoded(content: bytes, where: str) -> Bundle:
    try:
        bundle = msgspec.json.decode(content[:MAX_BUNDLE_BYTES], type=Bundle)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise CredentialsError(f"{where} is not a bundle; make one with: comesh keys bundle NODE") from None
    if bundle.comesh_bundle != VERSION:
        raise CredentialsError(f"{where} is of another version of comesh; make it again with this one")
    return bundle


def unpack(bundle: Bundle, keys: Path, data: Path, *, force: bool = False) -> Path:
    """Write what a node needs, if all of it is as it should be. The file of the document."""
    name = bundle.node
    _check_names(bundle.document, "the document of the bundle", name)
    owner = data / OWNER
    if owner.is_file() and owner.read_text().strip() != name:
        raise CredentialsError(f"{data} is the data directory of another node; choose one with --data")
    document = Path(bundle.document_name)
    if not _DOCUMENT_NAME.fullmatch(bundle.document_name):
        raise CredentialsError(f"{bundle.document_name[:100]!r} in the bundle is no name of a file")
    files = {
        keys / f"{AUTHORITY}.crt": (bundle.authorities, 0o644),
        keys / f"{name}.crt": (bundle.certificate, 0o644),
        keys / f"{name}.key": (bundle.key, 0o600),
        document: (bundle.document, 0o644),
    }
    if bundle.revoked:
        files[keys / FILE] = (bundle.revoked, 0o644)
    make_directory(keys)
    with tempfile.TemporaryDirectory(prefix=".joining-", dir=keys) as scratch:
        for path, (content, mode) in files.items():
            if path.parent == keys:
                write_file(Path(scratch) / path.name, content.encode(), mode)
        own = Credentials.load(Path(scratch), name, lambda: None)
        revocations = Revocations.read(Path(scratch) / FILE, own.authorities)
    if revocations.since(own.certificate, own.authorities) is not None:
        raise CredentialsError(f"the certificate of {name} in the bundle is revoked; ask for a new bundle")
    for path, (content, _) in files.items():
        if path.exists() and not force and path.read_bytes() != content.encode():
            raise CredentialsError(f"{path} exists already and is left as it is; --force replaces it")
    for path, (content, mode) in files.items():
        write_file(path, content.encode(), mode)
    return document


def authority_of(directory: Path) -> str:
    """The fingerprint of the authority that signs now."""
    return fingerprint(Authority.load(directory).certificate)


def _check_names(text: str, where: str, name: str) -> None:
    try:
        deployment = parsed(text, where)
    except DocumentError as wrong:
        raise CredentialsError(str(wrong)) from None
    if name not in deployment.nodes:
        hint = did_you_mean(name, deployment.nodes)
        raise CredentialsError(f"{where}: there is no node {name!r}" + (f"; {hint}" if hint else ""))


def _text_of(document: Path) -> str:
    try:
        return document.read_text()
    except OSError as wrong:
        raise CredentialsError(f"{document} cannot be read ({wrong.strerror})") from None
    except UnicodeDecodeError:
        raise CredentialsError(f"{document} cannot be read: it is not UTF-8 text") from None


def _content(path: Path) -> str:
    return read_file(path, "make it with: comesh keys init").decode("ascii", "replace")

"""Changes a directory of keys beyond making them: revoke, rotate, replace. No network.

While an authority is replaced, authority.crt has the new one first and the former one after it, and the key
of the former one is authority-former.key, so that what it signed can still be revoked. Where that key was
lost, it cannot: then the former authority is dropped with all that it signed.
"""

from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from comesh.runtime.credentials import (
    AUTHORITY,
    AUTHORITY_DAYS,
    FORMER,
    NODE_DAYS,
    Authority,
    CredentialsError,
    as_pem,
    certificates_of,
    name_in,
    read_certificate,
    read_certificates,
    read_key,
    signer_of,
    write_file,
)
from comesh.runtime.revocation import FILE, Revocations, sign

FORMER_KEY: Final = f"{AUTHORITY}-former.key"
_NO_AUTHORITY: Final = "make it with: comesh keys init"


def trusted(directory: Path) -> tuple[x509.Certificate, ...]:
    """Returns all authorities; the first one signs now."""
    return read_certificates(directory / f"{AUTHORITY}.crt", _NO_AUTHORITY)


def nodes_of(directory: Path) -> list[str]:
    """Nodes that have a certificate here."""
    return list(_current(directory))


def _current(directory: Path) -> dict[str, x509.Certificate]:
    paths = [path for path in sorted(directory.glob("*.crt")) if path.stem != AUTHORITY]
    found = {path.stem: read_certificate(path, "move it away") for path in paths}
    return {name: one for name, one in found.items() if name_in(one) == name}


def revoked_of(directory: Path) -> Revocations:
    return Revocations.read(directory / FILE, trusted(directory))


def revoke(directory: Path, names: list[str], files: list[Path]) -> int:
    """Revokes all certificates that were made for these nodes, and those in these files. Returns how many
    were new."""
    found: list[x509.Certificate] = []
    for name in names:
        of_name = certificates_of(directory, name)
        if not of_name:
            raise CredentialsError(
                f"{directory} has no certificate of {name}; if you have it elsewhere, revoke it with "
                "--certificate FILE"
            )
        found += of_name
    for file in files:
        found.append(read_certificate(file, "give the file of a certificate"))
    return _revoke(directory, found)


def _revoke(directory: Path, certificates: list[x509.Certificate]) -> int:
    authorities, revocations = trusted(directory), revoked_of(directory)
    new = 0
    for authority in authorities:
        mine = [one for one in certificates if signer_of(one, [authority]) is not None]
        serials = {one.serial_number for one in mine if revocations.since(one, authorities) is None}
        if serials:
            new += len(serials)
            signer = Authority(_key_of(directory, authority), authority)
            revocations.take(sign(signer, revocations.of(authority), sorted(serials)))
    if new:
        write_file(directory / FILE, revocations.pem(), 0o644)
    return new


def _key_of(directory: Path, authority: x509.Certificate) -> ec.EllipticCurvePrivateKey:
    for file in (f"{AUTHORITY}.key", FORMER_KEY):
        if (directory / file).is_file():
            key = read_key(directory / file, "move it away")
            if key.public_key() == authority.public_key():
                return key
    raise CredentialsError(
        f"{directory} has not the key of the authority that signed it: put {AUTHORITY}.key there. If it is "
        "lost, nothing that it signed can be revoked; replace it with: comesh keys rotate --authority"
    )


def rotate(directory: Path, names: list[str], days: int = NODE_DAYS) -> None:
    """New keys and certificates; the former ones stay valid until they expire, so nothing has to stop."""
    authority, authorities, revocations = Authority.load(directory), trusted(directory), revoked_of(directory)
    for name in names:
        current = read_certificate(directory / f"{name}.crt", f"make it with: comesh keys node {name}")
        if revocations.since(current, authorities) is not None:
            raise CredentialsError(
                f"the certificate of {name} is revoked; if it is to take part again, make a new one with: "
                f"comesh keys node {name} --force"
            )
    issued = {name: authority.issue(name, days) for name in names}
    for name, one in issued.items():
        one.write(directory, name, force=True)


def replace_node(directory: Path, name: str, days: int = NODE_DAYS) -> int:
    """New keys under the old name; whoever has former ones is refused. How many were revoked."""
    new, former = Authority.load(directory).issue(name, days), certificates_of(directory, name)
    if not former:
        raise CredentialsError(
            f"{directory} has no certificate of {name}; make it with: comesh keys node {name}"
        )
    new.write(directory, name, force=True)
    return _revoke(directory, former)


def rotate_authority(directory: Path, days: int = AUTHORITY_DAYS) -> bool:
    """A new authority beside the one that there is. False: the key of the former one is not here."""
    former = trusted(directory)
    if len(former) > 1:
        raise CredentialsError(
            f"{directory / AUTHORITY}.crt has {len(former)} authorities already: one is being replaced. "
            "Finish that first with: comesh keys rotate --authority --finish"
        )
    key = directory / f"{AUTHORITY}.key"
    has_key = key.is_file()
    if has_key:
        known = read_key(key, "move it away")
        if known.public_key() != former[0].public_key():
            raise CredentialsError(
                f"{key} is not the key of {directory / AUTHORITY}.crt. If this was interrupted before, put "
                f"{directory / FORMER_KEY} back in its place; if the key is lost, move this one away"
            )
        write_file(directory / FORMER_KEY, Authority(known, former[0]).key_file(), 0o600)
    new = Authority.make(former[0].subject, days)
    write_file(key, new.key_file(), 0o600)  # before its certificate: without it that would be of no use
    write_file(directory / f"{AUTHORITY}.crt", as_pem([new.certificate, *former]), 0o644)
    return has_key


def finish(directory: Path) -> None:
    """Only the new authority counts from now on."""
    authorities, revocations = trusted(directory), revoked_of(directory)
    if len(authorities) == 1:
        raise CredentialsError(
            f"{directory / AUTHORITY}.crt has one authority only: there is nothing to finish. Begin with: "
            "comesh keys rotate --authority"
        )
    behind = [
        name
        for name, one in _current(directory).items()
        if signer_of(one, authorities[:1]) is None and revocations.since(one, authorities) is None
    ]
    if behind:
        raise CredentialsError(
            f"these nodes have certificates of the former authority, and would be refused: "
            f"{', '.join(behind)}. Make new ones with: comesh keys rotate --all, copy them to the nodes, and "
            "finish when comesh status tells of no former authority any more"
        )
    write_file(directory / f"{AUTHORITY}.crt", as_pem(authorities[:1]), 0o644)
    (directory / FORMER_KEY).unlink(missing_ok=True)
    for path in sorted((directory / FORMER).glob("*.pem")):
        left = [one for one in read_certificates(path, "move it away") if signer_of(one, authorities[:1])]
        if left:
            write_file(path, as_pem(left), 0o644)
        else:
            path.unlink()
    revocations.keep_only(authorities[:1])
    if revocations.lists:
        write_file(directory / FILE, revocations.pem(), 0o644)
    else:
        (directory / FILE).unlink(missing_ok=True)


def revoked_nodes(directory: Path) -> list[str]:
    """Nodes whose certificate here is revoked."""
    authorities, revocations = trusted(directory), revoked_of(directory)
    found = _current(directory).items()
    return [name for name, one in found if revocations.since(one, authorities) is not None]

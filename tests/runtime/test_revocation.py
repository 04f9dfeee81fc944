"""Lists of revoked certificates: what the authority signs counts, the newer one stays, others do not."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from comesh.runtime.credentials import Authority, CredentialsError, certificates_of, read_certificate
from comesh.runtime.keyring import (
    finish,
    replace_node,
    revoke,
    revoked_nodes,
    revoked_of,
    rotate,
    rotate_authority,
    trusted,
)
from comesh.runtime.revocation import FILE, MAX_REVOKED, Revocations, read_lists, sign, verified
from comesh.runtime.revocation_gossip import last_words
from comesh.runtime.transport.frames import MAX_ALONE_BYTES

FIT_A_DATAGRAM = 14
"""Revocations on a list that a revoked node is shown whole, as docs/keys.md says."""


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    authority = Authority.create(tmp_path / "keys", "office")
    for name in ("n1", "n2", "n3"):
        authority.issue(name).write(tmp_path / "keys", name)
    return tmp_path / "keys"


def certificate(keys: Path, name: str) -> x509.Certificate:
    return read_certificate(keys / f"{name}.crt", "")


def is_revoked(keys: Path, one: x509.Certificate) -> bool:
    return revoked_of(keys).since(one, trusted(keys)) is not None


def test_revoking_writes_a_real_crl_whose_number_rises(keys: Path) -> None:
    assert revoke(keys, ["n1"], []) == 1
    assert revoke(keys, ["n1"], []) == 0
    assert revoke(keys, ["n2", "n1"], []) == 1
    found = x509.load_pem_x509_crl((keys / FILE).read_bytes())
    assert found.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number == 2
    assert {one.serial_number for one in found} == {
        certificate(keys, name).serial_number for name in ("n1", "n2")
    }
    assert found.is_signature_valid(Authority.load(keys).key.public_key())
    assert revoked_nodes(keys) == ["n1", "n2"]
    assert not is_revoked(keys, certificate(keys, "n3"))


def test_revoking_means_all_certificates_of_that_name(keys: Path) -> None:
    first = certificate(keys, "n1")
    rotate(keys, ["n1"])
    second = certificate(keys, "n1")
    assert revoke(keys, ["n1"], []) == 2
    assert is_revoked(keys, first)
    assert is_revoked(keys, second)
    with pytest.raises(CredentialsError, match="the certificate of n1 is revoked"):
        rotate(keys, ["n1"])
    Authority.load(keys).issue("n1").write(keys, "n1", force=True)
    assert not is_revoked(keys, certificate(keys, "n1"))


def test_replacing_spares_the_new_certificate(keys: Path) -> None:
    former = certificate(keys, "n1")
    assert replace_node(keys, "n1") == 1
    assert is_revoked(keys, former)
    assert not is_revoked(keys, certificate(keys, "n1"))
    assert len(certificates_of(keys, "n1")) == 2


def test_a_certificate_that_is_elsewhere(keys: Path, tmp_path: Path) -> None:
    (keys / "n1.crt").rename(tmp_path / "old.crt")
    with pytest.raises(CredentialsError, match="has no certificate of n1"):
        revoke(keys, ["n1"], [])
    assert revoke(keys, [], [tmp_path / "old.crt"]) == 1
    assert is_revoked(keys, read_certificate(tmp_path / "old.crt", ""))


def test_what_the_authority_did_not_sign_is_not_taken(keys: Path, tmp_path: Path) -> None:
    """Of another authority with the same name; of none; too many; changed by one bit."""
    ours = sign(Authority.load(keys), None, [1])
    theirs = sign(Authority.create(tmp_path / "theirs", "office"), None, [1])
    authorities = trusted(keys)
    assert verified(ours.der, authorities) == ours
    assert verified(theirs.der, authorities) is None
    for bad in (b"", b"nonsense", ours.der[:-1], bytes(100_000)):
        assert verified(bad, authorities) is None
    for at in range(0, len(ours.der), 7):
        changed = bytearray(ours.der)
        changed[at] ^= 1
        assert verified(bytes(changed), authorities) is None
    for at in range(len(ours.der)):
        for other in {20, 35, 60} - {ours.der[at]}:  # also: numbers of extensions, an unknown version
            changed = bytearray(ours.der)
            changed[at] = other
            assert verified(bytes(changed), authorities) is None
    with pytest.raises(CredentialsError, match="1000 certificates are revoked already"):
        sign(Authority.load(keys), None, range(1, MAX_REVOKED + 2))
    (keys / FILE).write_bytes(theirs.pem())
    with pytest.raises(CredentialsError, match="no authority of these keys signed"):
        revoke(keys, ["n1"], [])


def test_the_newer_list_stays(keys: Path) -> None:
    authority = Authority.load(keys)
    one = sign(authority, None, [1])
    two = sign(authority, one, [2])
    other_two = sign(authority, one, [3, 4])
    known = Revocations()
    assert known.take(two)
    assert not known.take(one)
    assert not known.take(two)
    assert known.take(other_two), "of two with one number the longer"
    assert not known.take(two)
    assert set(two.revoked) == {1, 2}


def test_a_number_counts_for_its_own_authority_only(keys: Path) -> None:
    """Both authorities have the same name; a serial on the list of one says nothing of the other."""
    former = certificate(keys, "n1")
    assert rotate_authority(keys)
    new, old = trusted(keys)
    rotate(keys, ["n1"])
    current = certificate(keys, "n1")
    known = Revocations()
    known.take(sign(Authority.load(keys), None, [former.serial_number]))
    assert known.since(former, (new, old)) is None
    assert known.since(current, (new, old)) is None
    assert revoke(keys, ["n1"], []) == 2, "with the key of the former authority, too"
    assert len(read_lists(keys / FILE)) == 2
    assert is_revoked(keys, former)
    assert is_revoked(keys, current)


def test_the_steps_of_a_new_authority(keys: Path) -> None:
    revoke(keys, ["n3"], [])
    assert rotate_authority(keys)
    with pytest.raises(CredentialsError, match="one is being replaced"):
        rotate_authority(keys)
    with pytest.raises(CredentialsError, match="and would be refused: n1, n2"):
        finish(keys)
    rotate(keys, ["n1", "n2"])
    finish(keys)
    assert len(trusted(keys)) == 1
    assert {path.name for path in keys.iterdir()} == {
        *("authority.crt", "authority.key", "former"),
        *(f"{name}.{kind}" for name in ("n1", "n2", "n3") for kind in ("crt", "key")),
    }
    assert list((keys / "former").iterdir()) == []
    with pytest.raises(CredentialsError, match="nothing to finish"):
        finish(keys)


def test_a_rotation_that_was_interrupted_loses_no_key(keys: Path) -> None:
    """As it is left between its two files."""
    certificate_file, former = (keys / "authority.crt").read_bytes(), (keys / "authority.key").read_bytes()
    rotate_authority(keys)
    (keys / "authority.crt").write_bytes(certificate_file)
    with pytest.raises(CredentialsError, match=r"put .*authority-former.key back in its place"):
        rotate_authority(keys)
    assert (keys / "authority-former.key").read_bytes() == former
    (keys / "authority-former.key").replace(keys / "authority.key")
    assert rotate_authority(keys)


def test_without_the_former_authority_s_key_nothing_of_it_can_be_revoked(keys: Path) -> None:
    (keys / "authority.key").unlink()
    with pytest.raises(CredentialsError, match="has not the key of the authority"):
        revoke(keys, ["n1"], [])
    assert not rotate_authority(keys)
    with pytest.raises(CredentialsError, match="has not the key of the authority"):
        revoke(keys, ["n1"], [])
    rotate(keys, ["n1", "n2", "n3"])
    finish(keys)
    assert revoke(keys, ["n1"], []) == 1


def test_how_many_fit_what_a_revoked_node_is_shown(keys: Path) -> None:
    authority = Authority.load(keys)
    serials = [x509.random_serial_number() for _ in range(FIT_A_DATAGRAM + 30)]
    whole = last_words(sign(authority, None, serials[:FIT_A_DATAGRAM]))
    assert 500 < len(whole) <= MAX_ALONE_BYTES
    assert len(last_words(sign(authority, None, serials))) < 100


def test_what_is_kept_of_two_authorities_can_be_read_again(keys: Path) -> None:
    former = sign(Authority.load(keys), None, range(1 << 158, (1 << 158) + MAX_REVOKED))
    rotate_authority(keys)
    newer = sign(Authority.load(keys), None, range(1 << 157, (1 << 157) + MAX_REVOKED))
    (keys / FILE).write_bytes(former.pem() + newer.pem())
    assert {one.authority for one in revoked_of(keys).lists} == {former.authority, newer.authority}


def test_dates_of_a_list_are_not_looked_at(keys: Path) -> None:
    old = sign(Authority.load(keys), None, [5], datetime(2020, 1, 1, tzinfo=UTC))
    assert verified(old.der, trusted(keys)) == old
    assert old.pem() == x509.load_der_x509_crl(old.der).public_bytes(serialization.Encoding.PEM)

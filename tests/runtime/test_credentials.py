"""Authority and credentials: what is made can be used, and what is wrong is told plainly."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from comesh.runtime.credentials import (
    Authority,
    Credentials,
    CredentialsError,
    date_problem,
    fingerprint,
    machine_clock,
    name_in,
)

DAY_MS = 86_400_000.0


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    where = tmp_path / "keys"
    Authority.create(where, "office").issue("n1").write(where, "n1")
    return where


def refuses(directory: Path, name: str, why: str) -> None:
    with pytest.raises(CredentialsError, match=re.escape(why)):
        Credentials.load(directory, name)


def test_a_node_needs_three_files(directory: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    node.mkdir()
    for name in ("authority.crt", "n1.crt", "n1.key"):
        (node / name).write_bytes((directory / name).read_bytes())
        (node / name).chmod(0o600)
    loaded = Credentials.load(node, "n1")
    assert loaded.name == name_in(loaded.certificate) == "n1"
    assert len(fingerprint(loaded.certificate)) == 64
    assert loaded.context() is not None


def test_keys_are_their_owner_s_alone(directory: Path) -> None:
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "authority.key").stat().st_mode & 0o777 == 0o600
    assert (directory / "n1.key").stat().st_mode & 0o777 == 0o600
    assert {path.name for path in directory.iterdir()} == {
        "authority.key",
        "authority.crt",
        "n1.key",
        "n1.crt",
    }


def test_nothing_is_overwritten(directory: Path) -> None:
    before = (directory / "n1.key").read_bytes()
    authority = Authority.load(directory)
    with pytest.raises(CredentialsError, match="exists already"):
        authority.issue("n1").write(directory, "n1")
    with pytest.raises(CredentialsError, match="exists already"):
        Authority.create(directory)
    assert (directory / "n1.key").read_bytes() == before
    authority.issue("n1").write(directory, "n1", force=True)
    assert (directory / "n1.key").read_bytes() != before
    Credentials.load(directory, "n1")


@pytest.mark.parametrize("name", ["", "N1", "1n", "a b", "../n1", "authority", "a" * 65])
def test_bad_names_of_nodes(directory: Path, name: str) -> None:
    with pytest.raises(CredentialsError, match="cannot be the name of a node"):
        Authority.load(directory).issue(name)


def test_bad_names_and_days(tmp_path: Path, directory: Path) -> None:
    with pytest.raises(CredentialsError, match="cannot name a deployment"):
        Authority.create(tmp_path / "other", "a/b")
    with pytest.raises(CredentialsError, match="cannot name a deployment"):
        Authority.create(tmp_path / "other", "a" * 55)
    Authority.create(tmp_path / "longest", "a" * 54)
    for days in (0, -1, 40_000):
        with pytest.raises(CredentialsError, match="1 to 36500 days"):
            Authority.load(directory).issue("n2", days)


def test_missing_files(directory: Path) -> None:
    refuses(directory, "n2", "n2.key is missing; make it with: comesh keys node n2")
    (directory / "authority.crt").unlink()
    refuses(directory, "n1", "authority.crt is missing; copy it from where it was made")
    with pytest.raises(CredentialsError, match="comesh keys init"):
        Authority.load(directory / "none")


def test_a_key_that_others_can_read(directory: Path) -> None:
    (directory / "n1.key").chmod(0o640)
    refuses(directory, "n1", "n1.key can be read by others")


def test_key_and_certificate_of_different_nodes(directory: Path) -> None:
    Authority.load(directory).issue("n2").write(directory, "n2")
    (directory / "n2.crt").write_bytes((directory / "n1.crt").read_bytes())
    refuses(directory, "n2", "do not belong together")
    (directory / "n2.key").write_bytes((directory / "n1.key").read_bytes())
    refuses(directory, "n2", "n2.crt is the certificate of n1, not of n2")


def test_the_authority_s_files_are_no_node_s(directory: Path) -> None:
    refuses(directory, "authority", "is the certificate of no node")


def test_another_authority(directory: Path, tmp_path: Path) -> None:
    Authority.create(tmp_path / "other", "office")
    (directory / "authority.crt").write_bytes((tmp_path / "other" / "authority.crt").read_bytes())
    refuses(directory, "n1", "is not signed by")


@pytest.mark.parametrize("file", ["authority.crt", "n1.crt", "n1.key"])
@pytest.mark.parametrize(
    "content", [b"", b"nonsense", bytes(100_000), b"-----BEGIN CERTIFICATE-----\nAAAA\n"]
)
def test_damaged_files(directory: Path, file: str, content: bytes) -> None:
    (directory / file).write_bytes(content)
    refuses(directory, "n1", file)


def test_expired_and_not_yet_valid_by_the_clock_that_is_given(directory: Path) -> None:
    now_ms = machine_clock()
    assert now_ms is not None
    with pytest.raises(CredentialsError, match=r"n1.crt expired on"):
        Credentials.load(directory, "n1", lambda: now_ms + 731 * DAY_MS)
    with pytest.raises(CredentialsError, match=r"is not valid before"):
        Credentials.load(directory, "n1", lambda: 0.0)
    loaded = Credentials.load(directory, "n1", lambda: None)
    assert date_problem(loaded.certificate, now_ms + 729 * DAY_MS) is None
    assert date_problem(loaded.certificate, now_ms) is None
    for nonsense in (1e30, -1e30, float("nan"), float("inf")):
        assert "beyond all dates" in str(date_problem(loaded.certificate, nonsense))


def test_a_node_s_certificate_does_not_outlive_the_authority_s(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "keys", days=10)
    authority.issue("n1", 100).write(tmp_path / "keys", "n1")
    loaded = Credentials.load(tmp_path / "keys", "n1")
    assert loaded.certificate.not_valid_after_utc == authority.certificate.not_valid_after_utc
    assert (loaded.certificate.not_valid_after_utc - datetime.now(UTC)).days == 9

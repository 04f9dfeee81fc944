"""What a node trusts as its files change under it, and what others tell it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from comesh.core.ids import NodeId
from comesh.runtime.credentials import Authority, as_pem, read_certificate
from comesh.runtime.keyring import finish, revoke, rotate, rotate_authority, trusted
from comesh.runtime.log import Log
from comesh.runtime.revocation import FILE, read_lists, sign
from comesh.runtime.trust import REFUSED_MS, REVOKED, UNTRUSTED, RevokedError, Trust

DAY_MS = 86_400_000.0
ONE, TWO = NodeId("n1"), NodeId("n2")


class Node:
    def __init__(self, place: Path) -> None:
        self.keys, self.data = place / "keys", place / "data"
        self.data.mkdir()
        authority = Authority.create(self.keys)
        for name in (ONE, TWO):
            authority.issue(name).write(self.keys, name)
        self.now_ms = 0.0
        self._to = os.open(place / "log", os.O_WRONLY | os.O_CREAT, 0o600)
        self.log = Log(ONE, to=self._to)
        self._file = place / "log"

    def trust(self) -> Trust:
        return Trust(self.keys, self.data, ONE, self.log, lambda: self.now_ms)

    def said(self) -> str:
        self.close()
        return self._file.read_text()

    def close(self) -> None:
        if self._to >= 0:
            self.log.close()
            os.close(self._to)
            self._to = -1


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.close()


def test_new_keys_are_taken_when_both_files_are_there(node: Node) -> None:
    trust = node.trust()
    changed: list[bool] = []
    trust.on_credentials.append(lambda: changed.append(True))
    before = trust.credentials.certificate
    issued = Authority.load(node.keys).issue(ONE)
    (node.keys / "n1.key").write_bytes(issued.key)
    for _ in range(3):
        trust.look()
    assert trust.credentials.certificate == before
    assert any("new keys are not used" in what for what in trust.trouble())
    (node.keys / "n1.crt").write_bytes(issued.certificate)
    trust.look()
    assert trust.credentials.certificate != before
    assert (trust.trouble(), changed) == ((), [True])
    trust.look()
    assert changed == [True]
    assert "do not belong together" in node.said()


def test_a_list_is_kept_and_older_and_foreign_ones_are_counted(node: Node, tmp_path: Path) -> None:
    trust = node.trust()
    authority = Authority.load(node.keys)
    one = sign(authority, None, [1])
    two = sign(authority, one, [2])
    told: list[bool] = []
    trust.on_revoked.append(lambda: told.append(True))
    for der in (two.der, two.der, one.der, sign(Authority.create(tmp_path / "o"), two, [3]).der, b"nonsense"):
        trust.take(der)
    assert told == [True]
    assert read_lists(node.data / FILE) == [two.der]
    assert trust.counters["revocation lists taken"] == 1
    assert trust.counters["revocation lists refused: older"] == 1
    assert trust.counters["revocation lists refused: not signed by our authority"] == 2
    assert node.trust().revocations.lists == (two,), "the next start has it from its data directory"
    (node.keys / FILE).write_bytes(one.pem())
    trust.look()
    assert trust.revocations.lists == (two,)
    assert "its number is 1, and this node has a newer one" in node.said()


def test_who_is_refused_is_trouble_as_long_as_it_tries(node: Node) -> None:
    trust = node.trust()
    trust.last_words = lambda proof: b"list %d" % proof.number
    revoke(node.keys, [TWO], [])
    trust.look()
    shown = read_certificate(node.keys / "n2.crt", "")
    assert trust.why_refused(shown) == REVOKED
    for _ in range(5):
        assert trust.farewell(TWO, shown, "10.0.0.2:7440", REVOKED) == b"list 1"
    (what,) = trust.trouble()
    assert what == "n2 shows a revoked certificate (at 10.0.0.2:7440): it is kept out"
    node.now_ms += REFUSED_MS
    assert trust.trouble() == ()
    assert trust.counters[f"refused: {REVOKED}"] == 5
    assert node.said().count("n2 shows a revoked certificate") == 1


def test_its_own_revocation_ends_a_node_unless_new_keys_are_there(node: Node) -> None:
    trust = node.trust()
    Authority.load(node.keys).issue(ONE).write(node.keys, ONE, force=True)
    revoke(node.keys, [], [node.keys / "former" / "n1.pem"])
    trust.look()
    assert not trust.is_revoked
    revoke(node.keys, [ONE], [])
    trust.look()
    assert trust.is_revoked
    with pytest.raises(RevokedError, match="make new keys with: comesh keys node n1 --force"):
        node.trust()


def test_revoked_keys_are_not_taken_in_the_place_of_good_ones(node: Node) -> None:
    spare = Authority.load(node.keys).issue(ONE)
    trust = node.trust()
    (node.keys / "spare.crt").write_bytes(spare.certificate)
    revoke(node.keys, [], [node.keys / "spare.crt"])
    trust.look()
    spare.write(node.keys, ONE, force=True)
    for _ in range(2):
        trust.look()
    assert not trust.is_revoked
    assert any("is revoked" in what for what in trust.trouble())


def test_keys_that_cannot_be_used_do_not_hold_up_a_list(node: Node) -> None:
    trust = node.trust()
    (node.keys / "n1.key").write_text("half of a key")
    revoke(node.keys, [TWO], [])
    trust.look()
    assert trust.why_refused(read_certificate(node.keys / "n2.crt", "")) == REVOKED


def test_an_authority_that_is_dropped_is_refused(node: Node) -> None:
    trust = node.trust()
    former = read_certificate(node.keys / "n2.crt", "")
    rotate_authority(node.keys)
    trust.look()
    assert trust.why_refused(former) == ""
    assert "of the former authority; make a new one with: comesh keys rotate n1" in trust.trouble()[0]
    rotate(node.keys, [ONE, TWO])
    trust.look()
    assert trust.trouble() == ()
    finish(node.keys)
    trust.look()
    assert trust.why_refused(former) == UNTRUSTED
    assert trust.why_refused(read_certificate(node.keys / "n2.crt", "")) == ""


def test_half_of_a_file_with_two_authorities_drops_none(node: Node) -> None:
    rotate_authority(node.keys)
    rotate(node.keys, [ONE])
    trust = node.trust()
    former, both = read_certificate(node.keys / "n2.crt", ""), (node.keys / "authority.crt").read_bytes()
    (node.keys / "authority.crt").write_bytes(both[:-20])
    for _ in range(2):
        trust.look()
    assert trust.why_refused(former) == ""
    assert any("authority.crt is not whole" in what for what in trust.trouble())
    (node.keys / "authority.crt").write_bytes(both)
    trust.look()
    assert (trust.why_refused(former), trust.trouble()) == ("", ())


def test_lists_that_do_not_build_on_each_other_are_trouble(node: Node) -> None:
    """Where revoked.crl was lost beside authority.key, or there are two copies of that."""
    trust, authority = node.trust(), Authority.load(node.keys)
    second = sign(authority, sign(authority, None, [1]), [2])
    trust.take(second.der)
    assert trust.trouble() == ()
    trust.take(sign(authority, None, [3]).der)
    assert "1 of the certificates on list 1 of revoked ones are not on list 2" in trust.trouble()[0]
    third = sign(authority, second, [3])
    trust.take(third.der)
    trust.take(sign(authority, None, [1]).der)
    assert trust.trouble() == (), "an older list that is forgotten by nobody"
    trust.take(sign(authority, sign(authority, sign(authority, sign(authority, None, []), []), []), [4]).der)
    assert "3 of the certificates on list 3 of revoked ones are not on list 4" in trust.trouble()[0]


def test_an_authority_that_comes_back_brings_its_list_back(node: Node) -> None:
    """A list that others told is in the data directory only."""
    revoked = read_certificate(node.keys / "n2.crt", "")
    trust, former = node.trust(), Authority.load(node.keys)
    trust.take(sign(former, None, [revoked.serial_number]).der)
    rotate_authority(node.keys)
    rotate(node.keys, [ONE])
    both = (node.keys / "authority.crt").read_bytes()
    trust.look()
    (node.keys / "authority.crt").write_bytes(as_pem(trusted(node.keys)[:1]))
    trust.look()
    assert trust.why_refused(revoked) == UNTRUSTED
    told: list[bool] = []
    trust.on_revoked.append(lambda: told.append(True))
    (node.keys / "authority.crt").write_bytes(both)
    trust.look()
    assert trust.why_refused(revoked) == REVOKED
    assert told == [True]


def test_dates_are_told_ahead_with_what_to_do(node: Node) -> None:
    trust = node.trust()
    ends_ms = trust.credentials.certificate.not_valid_after_utc.timestamp() * 1000.0
    trust.set_clock(lambda: ends_ms - 31 * DAY_MS)
    trust.look()
    assert trust.trouble() == ()
    trust.set_clock(lambda: ends_ms - 29 * DAY_MS)
    for _ in range(3):
        trust.look()
    (what,) = trust.trouble()
    assert what.startswith(
        "this node's certificate expires in 29 days; make a new one with: comesh keys rotate"
    )
    authority_ends_ms = trust.credentials.authorities[0].not_valid_after_utc.timestamp() * 1000.0
    trust.set_clock(lambda: authority_ends_ms - 5 * DAY_MS)
    assert any("the authority expires in 5 days" in one for one in trust.trouble())
    assert node.said().count("expires in 29 days") == 1


def test_a_certificate_of_a_former_authority_is_no_trouble_once_there_is_a_session(node: Node) -> None:
    trust = node.trust()
    certificate = read_certificate(node.keys / "n2.crt", "")
    trust.farewell(TWO, certificate, "10.0.0.2", UNTRUSTED)
    assert "n2 shows a certificate of an authority that is not trusted any more" in trust.trouble()[0]
    assert trust.trouble(lambda name: name == TWO) == ()
    trust.farewell(TWO, certificate, "10.0.0.2", REVOKED)
    assert "n2 shows a revoked certificate" in trust.trouble(lambda name: name == TWO)[0]

"""What a node does with what others say about revoked certificates, true or not."""

import asyncio
import base64
from pathlib import Path

import msgspec
import pytest
from one_node import one_node, until

from comesh.core.effects import AnnouncementLearned
from comesh.runtime.credentials import Authority
from comesh.runtime.inquiries import Said
from comesh.runtime.questions import decoded
from comesh.runtime.revocation import FILE, sign
from comesh.runtime.revocation_gossip import ASK, KEY, MAX_WANTED, TELL


def test_lists_are_given_to_who_has_older_ones_and_posted_for_all(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:
            spreading, trust = node.assembly.revocation_gossip, node.assembly.trust
            made = sign(Authority.load(tmp_path / "keys"), None, [7])
            assert msgspec.msgpack.decode(spreading.answer_peer(ASK, "{}") or b"") == []
            trust.take(made.der)
            announcement = node.assembly.node.membership.beliefs.board.get(KEY + made.digest)
            assert announcement is not None
            assert announcement.version == made.number
            assert msgspec.msgpack.decode(spreading.answer_peer(ASK, "{}") or b"") == [made.der]
            has = msgspec.json.encode({made.authority: made.rank}).decode()
            assert msgspec.msgpack.decode(spreading.answer_peer(ASK, has) or b"") == []
            # Two copies of the authority's files make two lists of one number: all nodes take the same one.
            smaller = msgspec.json.encode({made.authority: (made.number, 0, "")}).decode()
            assert msgspec.msgpack.decode(spreading.answer_peer(ASK, smaller) or b"") == [made.der]

    asyncio.run(story())


@pytest.mark.parametrize(
    "about", ["nonsense", "[]", '{"a": -1.5}', "[" * 5000, "\udc80", "AAAA", "A" * 70_000]
)
def test_nonsense_is_counted_and_does_nothing(tmp_path: Path, about: str) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:
            spreading = node.assembly.revocation_gossip
            for ask in (ASK, TELL, "something else"):
                spreading.answer_peer(ask, about)
            assert node.assembly.trust.revocations.lists == ()
            refused = [
                name for name in node.assembly.host.counters if name.startswith("revocation lists ref")
            ]
            assert len(refused) == 1

    asyncio.run(story())


def test_a_node_ends_for_a_list_of_its_authority_only(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:
            own = node.assembly.credentials.certificate.serial_number
            forged = sign(Authority.create(tmp_path / "theirs"), None, [own])
            node.assembly.revocation_gossip.answer_peer(TELL, base64.b64encode(forged.der).decode())
            assert not node.assembly.stopped.is_set()
            node.assembly.revocation_gossip.answer_peer(TELL, "")  # said without proof: told, and no more
            assert not node.assembly.stopped.is_set()
            assert any("is revoked" in what for what in node.assembly.trouble())
            true = sign(Authority.load(tmp_path / "keys"), None, [own])
            node.assembly.revocation_gossip.answer_peer(TELL, base64.b64encode(true.der).decode())
            assert node.assembly.stopped.is_set()
            assert "the certificate of this node is revoked" in node.assembly.why_stopped

    asyncio.run(story())


def test_announcements_of_lists_that_nobody_has_are_bounded(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:
            for number in range(3 * MAX_WANTED):
                node.assembly.revocation_gossip.on_observation(
                    AnnouncementLearned(f"{KEY}{number:032x}", 1 << 62, b"x")
                )
            assert len(node.assembly.revocation_gossip._wanted) == MAX_WANTED

    asyncio.run(story())


def test_a_node_that_cannot_look_after_its_files_any_more_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:

            def breaks() -> None:
                raise RuntimeError("it broke")

            node.assembly.trust.on_revoked.append(breaks)
            (tmp_path / "keys" / FILE).write_bytes(sign(Authority.load(tmp_path / "keys"), None, [7]).pem())
            await until(lambda: any("it broke" in what for what in node.assembly.trouble()))
            assert "an error inside, please report it" in node.said()

    asyncio.run(story())


def test_nonsense_of_others_is_no_answer() -> None:
    assert decoded(b'[1,true,1,"\xff",""]', Said) is None

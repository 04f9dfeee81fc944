"""What a node does with what others say about revoked certificates, true or not."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from one_node import OneNode, one_node, until

from comesh.core.effects import AnnouncementLearned
from comesh.queries.node_reads import NewerRevocations, NodeRead, YouAreRevoked, answered
from comesh.runtime.credentials import Authority
from comesh.runtime.revocation import FILE, sign
from comesh.runtime.revocation_gossip import KEY, MAX_WANTED


def told(node: OneNode, read: NodeRead[Any]) -> Any:
    """What the node answers to a read of another one."""
    answer = answered(msgspec.Raw(msgspec.msgpack.encode(read)), node.assembly.view)
    assert answer is not None
    return msgspec.msgpack.decode(answer)


def test_newer_lists_go_to_nodes_with_older_ones_and_are_announced(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:
            trust = node.assembly.trust
            made = sign(Authority.load(tmp_path / "keys"), None, [7])
            assert told(node, NewerRevocations()) == []
            trust.take(made.der)
            announced = node.assembly.node.membership.beliefs.board.get(KEY + made.digest)
            assert announced is not None
            assert announced.version == made.number
            assert told(node, NewerRevocations()) == [made.der]
            assert told(node, NewerRevocations(than={made.authority: made.rank})) == []
            # Two copies of the authority's files make two lists of one number: all nodes take the same one.
            smaller = NewerRevocations(than={made.authority: (made.number, 0, "")})
            assert told(node, smaller) == [made.der]

    asyncio.run(story())


@pytest.mark.parametrize("proof", [b"nonsense", b"[]", b"[" * 5000, b"A" * 70_000])
def test_nonsense_is_counted_and_does_nothing(tmp_path: Path, proof: bytes) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:
            told(node, YouAreRevoked(proof=proof))
            garbled = msgspec.msgpack.encode({"read": "revocations", "than": {"a": -1.5}})
            assert answered(msgspec.Raw(garbled), node.assembly.view) is None
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
            told(node, YouAreRevoked(proof=forged.der))
            assert not node.assembly.stopped.is_set()
            told(node, YouAreRevoked())  # said without proof: told, and no more
            assert not node.assembly.stopped.is_set()
            assert any("is revoked" in what for what in node.assembly.trouble())
            true = sign(Authority.load(tmp_path / "keys"), None, [own])
            told(node, YouAreRevoked(proof=true.der))
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
            await until(lambda: "an error inside, please report it" in node.said())

    asyncio.run(story())

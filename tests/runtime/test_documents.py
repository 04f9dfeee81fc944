"""What a node begins with: whose a data directory is, and the chain of documents in it."""

import base64
import lzma
import resource
from pathlib import Path

import msgspec
import pytest

from comesh.core.ids import NodeId
from comesh.runtime.documents import Chain, Compiler, DocumentError, claim_data_directory, first_chain, parsed

FIRST = "settings: {f: 0}\nnodes:\n  n1: {place: [0m, 0m]}\ndevices: {}\nroutines: {}\n"
SECOND = FIRST.replace("devices:", "  n2: {place: [1m, 0m]}\ndevices:")


def test_a_node_does_not_go_on_with_the_directory_of_another(tmp_path: Path) -> None:
    claim_data_directory(tmp_path, NodeId("n1"))
    claim_data_directory(tmp_path, NodeId("n1"))
    with pytest.raises(DocumentError, match="is the data directory of n1, not of n2"):
        claim_data_directory(tmp_path, NodeId("n2"))


def test_a_chain_is_one_file_and_many_versions_of_it_are_small() -> None:
    chain = Chain({number: f"{FIRST}# version {number}\n" for number in range(1, 301)})
    text = chain.dump()
    assert Chain.load(text, "chain").texts == chain.texts
    assert len(text) < sum(map(len, chain.texts.values())) / 10
    assert parsed(text, "chain") == parsed(FIRST, "document")


def test_a_document_is_a_chain_of_one() -> None:
    assert Chain.load(FIRST, "document").texts == {1: FIRST}


def test_what_is_no_chain_is_told_with_what_to_do() -> None:
    text = Chain({1: FIRST, 2: SECOND}).dump()
    for damaged in (text[:-20], text.replace("\n", "\n!", 1), "comesh chain 1\n", "comesh chain 1\nAAAA\n"):
        with pytest.raises(
            DocumentError, match=r"chain: the chain is damaged or not complete: export it anew"
        ):
            Chain.load(damaged, "chain")
    with pytest.raises(DocumentError, match="a chain of another version of comesh"):
        Chain.load("comesh chain 9\n", "chain")
    with pytest.raises(DocumentError, match="the chain of documents lacks version 2"):
        Chain({1: FIRST, 3: FIRST})


def test_a_node_that_came_later_begins_from_the_chain(tmp_path: Path) -> None:
    document, chain = tmp_path / "floor.yaml", tmp_path / "chain"
    document.write_text(FIRST)
    chain.write_text(Chain({1: FIRST, 2: SECOND}).dump())
    data = tmp_path / "data"
    data.mkdir()
    with pytest.raises(DocumentError, match=r"there is no node 'other'.*is added with `comesh apply`"):
        first_chain(document, data, NodeId("other"), Compiler())
    begun, other = first_chain(chain, data, NodeId("n2"), Compiler())
    assert (begun.texts, other) == ({1: FIRST, 2: SECOND}, "")
    assert (data / "deployment-2.yaml").read_text() == SECOND
    chain.unlink()
    assert first_chain(chain, data, NodeId("n2"), Compiler())[0].texts == begun.texts


def test_a_longer_chain_is_taken_and_another_document_is_not(tmp_path: Path) -> None:
    document, chain = tmp_path / "floor.yaml", tmp_path / "chain"
    document.write_text(FIRST)
    chain.write_text(Chain({1: FIRST, 2: SECOND}).dump())
    data = tmp_path / "data"
    data.mkdir()
    first_chain(document, data, NodeId("n1"), Compiler())
    assert first_chain(chain, data, NodeId("n1"), Compiler())[0].newest == 2
    document.write_text(FIRST + "# changed\n")
    kept, other = first_chain(document, data, NodeId("n1"), Compiler())
    assert kept.newest == 2
    assert other == FIRST + "# changed\n", "it is told, and not used"
    chain.write_text(Chain({1: SECOND, 2: SECOND, 3: FIRST}).dump())
    assert first_chain(chain, data, NodeId("n1"), Compiler())[0].texts == kept.texts, "of another mesh"


def test_versions_are_planned_one_upon_the_other() -> None:
    programs = Chain({1: FIRST, 2: SECOND}).programs()
    assert [one.version for one in programs] == [1, 2]
    assert programs[1].node_since == {"n1": 1, "n2": 2}
    with pytest.raises(DocumentError, match="version 2 of the deployment: "):
        Chain({1: FIRST, 2: "nodes: 1\n"}).programs()


def test_what_does_not_fit_the_disk_is_not_there_in_part(tmp_path: Path) -> None:
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(SECOND) - 1, most[1]))
    try:
        with pytest.raises(DocumentError, match=r"cannot be written .*: make room"):
            Chain({1: FIRST, 2: SECOND}).write(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert [path.name for path in tmp_path.iterdir()] == ["deployment-1.yaml"]
    kept = Chain.read(tmp_path)
    assert kept is not None
    assert kept.texts == {1: FIRST}


def test_nothing_of_a_longer_chain_stays_behind_a_shorter_one(tmp_path: Path) -> None:
    Chain({1: SECOND, 2: FIRST, 3: SECOND, 4: FIRST}).write(tmp_path)
    Chain({1: FIRST, 2: SECOND}).write(tmp_path)
    kept = Chain.read(tmp_path)
    assert kept is not None
    assert kept.texts == {1: FIRST, 2: SECOND}


def test_a_chain_is_not_unpacked_where_a_document_is_wanted() -> None:
    """A few bytes from anybody with a token would become hundreds of megabytes."""
    packed = lzma.compress(msgspec.msgpack.encode([FIRST + "#" * 10_000_000]))
    text = "comesh chain 1\n" + base64.b64encode(packed).decode()
    with pytest.raises(ValueError, match="this is a chain, which only `comesh node` takes: give a document"):
        Compiler()(text, 2, None)
    with pytest.raises(DocumentError, match="this is a chain"):
        Compiler().deployment(text)

"""When a node asks the others by which documents the mesh runs: until it was told, or took part."""

import asyncio
from pathlib import Path

import pytest
from memory_network import MemoryNetwork

from comesh.core.ids import NodeId
from comesh.runtime import catching_up
from comesh.runtime.catching_up import chain_of_others, should_ask, took_part
from comesh.runtime.clock import Clock
from comesh.runtime.documents import Chain, Compiler, Documents
from comesh.runtime.journal.files import JOURNAL

DOCUMENT = "settings: {f: 0}\nnodes: {n1: {place: [0m, 0m]}, n2: {place: [1m, 0m]}}\n"


def _asks(data: Path, own: Documents) -> Chain:
    """What a node begins with in a network in which nobody else is."""
    transport = MemoryNetwork().transport(NodeId("n1"))
    return asyncio.run(chain_of_others(lambda: transport, Clock(), own, NodeId("n1"), data))


def test_who_was_told_nothing_asks_again_until_it_took_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catching_up, "WITHIN_S", 0.02)
    monkeypatch.setattr(catching_up, "ROUND_S", 0.01)
    own = Documents(Chain({1: DOCUMENT}), Compiler())
    assert should_ask(tmp_path, initialise=False), "it has no journal"
    assert _asks(tmp_path, own).texts == {1: DOCUMENT}, "nobody answers"
    (tmp_path / JOURNAL).touch()
    assert should_ask(tmp_path, initialise=False), "it has one now, and still was told nothing"
    took_part(tmp_path)
    assert not should_ask(tmp_path, initialise=False)


def test_who_begins_the_mesh_asks_nobody(tmp_path: Path) -> None:
    assert not should_ask(tmp_path, initialise=True)

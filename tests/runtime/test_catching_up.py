"""When a node asks the others by which documents the mesh runs: until it was told, or took part."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from comesh.core.ids import NodeId
from comesh.runtime import catching_up
from comesh.runtime.catching_up import chain_of_others, should_ask, took_part
from comesh.runtime.documents import Chain
from comesh.runtime.journal.files import JOURNAL
from comesh.runtime.transport.memory import MemoryNetwork

if TYPE_CHECKING:
    import pytest

    from comesh.runtime.assembly import Assembly

DOCUMENT = "nodes: {n1: {place: [0m, 0m]}, n2: {place: [1m, 0m]}}\n"


def _node(data: Path, *, initialise: bool = False) -> "Assembly":
    """As much of a node as asks, in a network in which nobody else is."""
    options = SimpleNamespace(name=NodeId("n1"), data=data, initialise=initialise)
    return cast(
        "Assembly",
        SimpleNamespace(
            options=options,
            deployment=SimpleNamespace(nodes={"n1": None, "n2": None}),
            make_transport=lambda: MemoryNetwork().transport(NodeId("n1")),
            clock=SimpleNamespace(monotonic_ms=lambda: 0.0),
        ),
    )


def test_who_was_told_nothing_asks_again_until_it_took_part(
    tmp_path: Path, monkeypatch: "pytest.MonkeyPatch"
) -> None:
    monkeypatch.setattr(catching_up, "WITHIN_S", 0.02)
    monkeypatch.setattr(catching_up, "ROUND_S", 0.01)
    node, own = _node(tmp_path), Chain({1: DOCUMENT})
    assert should_ask(node), "it has no journal"
    assert asyncio.run(chain_of_others(node, own)).texts == own.texts, "nobody answers"
    (tmp_path / JOURNAL).touch()
    assert should_ask(node), "it has one now, and still was told nothing"
    took_part(node)
    assert not should_ask(node)


def test_who_begins_the_mesh_asks_nobody(tmp_path: Path) -> None:
    assert not should_ask(_node(tmp_path, initialise=True))

"""Tests of the published vectors with the code and with the plain reference."""

import json
from typing import Any

import msgspec
import pytest
from selection_plans import ARITHMETICS, computed_by
from selection_reference import Reference, chain, id_hash
from selection_vectors import FILE, as_text, make_vectors, plans

from comesh.core.arithmetic import Arithmetic
from comesh.core.plan import Plan
from comesh.core.selection import make_plan

VECTORS: dict[str, Any] = json.loads(FILE.read_text())


@pytest.mark.parametrize("arithmetic", ARITHMETICS, ids=lambda one: type(one).__name__)
def test_the_code_still_gives_the_published_vectors(arithmetic: Arithmetic) -> None:
    """After a deliberate change of the rules: python tests/core/selection/selection_vectors.py --write"""
    with computed_by(arithmetic):
        assert as_text(make_vectors()) == FILE.read_text()


def test_the_reference_gives_the_same_words() -> None:
    for entry in VECTORS["id_hashes"]:
        assert id_hash(entry["kind"], entry["id"]) == int(entry["hash"], 16)
    for entry in VECTORS["chains"]:
        assert chain(*(int(word, 16) for word in entry["words"])) == int(entry["hash"], 16)


@pytest.mark.parametrize("vectors", VECTORS["plans"], ids=lambda vectors: vectors["name"])
def test_the_reference_selects_the_published_members(vectors: dict[str, Any]) -> None:
    plan = msgspec.convert(vectors["plan"], Plan)
    assert make_plan(plan.version, plan.settings, plan.nodes, plan.devices, plan.routines) == plan
    for epoch in vectors["epochs"]:
        reference = Reference(plan, epoch["epoch"], epoch["alive"], epoch["table"])
        assert (reference.size, reference.cap) == (epoch["size"], epoch["cap"])
        assert reference.width == epoch["width"]
        functions = [function for table in reference.tables for function in table]
        assert [direction for direction, _ in functions] == epoch["directions"]
        assert [offset for _, offset in functions] == epoch["offsets"]
        for node, buckets in epoch["buckets"].items():
            assert reference.vector(node) == epoch["vectors"][node]
            assert [bucket for table in reference.node_buckets[node] for bucket in table] == buckets
        for group, expected in epoch["groups"].items():
            assert list(reference.members(group)) == expected["members"]
            if "centre" in expected:
                assert reference.centre(group) == expected["centre"]
                assert reference.candidates(expected["centre"]) == expected["candidates"]


def test_the_vectors_cover_all_parameters() -> None:
    epochs = [epoch for vectors in VECTORS["plans"] for epoch in vectors["epochs"]]
    assert {epoch["size"] for epoch in epochs} == {1, 3, 5}
    assert any(epoch["cap"] > epoch["size"] // 2 > 0 for epoch in epochs)
    locals_missing = [
        group
        for epoch in epochs
        for group in epoch["groups"].values()
        if "candidates" in group and len(group["candidates"]) < epoch["size"] // 2 + 1
    ]
    assert locals_missing, "no group had to borrow"
    assert len(plans()) == len(VECTORS["plans"])

"""Versions of the document over HTTP: listed, read, compared, applied once, refused with the reason."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from one_node import ALONE, one_node
from real_mesh import MESH, Asked, asked_mesh, wait_for

from comesh.queries.changes import MAX_READ
from comesh.runtime.documents import Chain

MORE = MESH.replace("routines:\n", "routines:\n  extra: {do: [{device: d4, command: set, argument: true}]}\n")


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """A mesh of its own: its document does not stay as it was."""
    with asked_mesh(tmp_path_factory.mktemp("changed") / "run") as mesh:
        yield mesh


def test_a_version_is_compared_applied_once_and_worked_by(changed: Asked) -> None:
    viewer, operator = changed.client("n1", changed.viewer), changed.client("n2")
    preview = viewer.post("/api/v1/preview", json={"text": MORE}).json()
    assert (preview["base"], preview["problems"]) == (1, [])
    assert [(one["kind"], one["name"], one["what"]) for one in preview["changes"]] == [
        ("routine", "extra", "added")
    ]
    wish = {"base": 1, "text": MORE, "why": "more", "request": "a-1", "now": True}
    assert viewer.post("/api/v1/versions", json=wish).status_code == 403
    assert operator.post("/api/v1/versions", json=wish).json() == {"request": "a-1", "version": 2}
    again = changed.client("n3").post("/api/v1/versions", json=wish)
    assert again.json() == {"request": "a-1", "version": 2}, "the same request is applied once"
    other = operator.post("/api/v1/versions", json={**wish, "text": MESH})
    assert other.status_code == 409, "another document with that id is not"
    assert "the request id is that of version 2" in other.json()["error"]

    def all_follow() -> bool:
        return all(one["version"] == 2 for one in viewer.get("/api/v1/groups").json()["groups"])

    wait_for(all_follow, "all groups work by version 2")
    told = viewer.get("/api/v1/versions").json()
    assert (told["newest"], told["reached"]) == (2, True)
    assert [(one["version"], one["by"], one["why"]) for one in told["versions"]] == [
        (2, "does (token)", "more"),
        (1, "", ""),
    ]
    assert told["versions"][0]["groups"] == 5
    assert viewer.get("/api/v1/versions/2").json() == {"version": 2, "text": MORE}
    chain = Chain.load(viewer.get("/api/v1/chain").json()["chain"], "chain")
    assert chain.texts == {1: MESH, 2: MORE}
    assert operator.post("/api/v1/versions/2/reach").json() == {"version": 2, "groups": []}


def test_what_cannot_be_applied_is_refused_with_the_reason(changed: Asked) -> None:
    operator = changed.client("n1")
    newest = operator.get("/api/v1/versions").json()["newest"]
    stale = operator.post("/api/v1/versions", json={"base": newest + 5, "text": MORE})
    assert stale.status_code == 409
    assert f"builds on version {newest + 5}, but the deployment is at {newest}" in stale.json()["error"]
    wrong = operator.post(
        "/api/v1/versions", json={"base": newest, "text": MORE.replace("device: d2", "device: d9")}
    )
    assert wrong.status_code == 422
    assert "unknown device 'd9'" in wrong.json()["problems"][0]
    order = MORE.replace("hop: 1ms", "hop: 1ms, locks: {order: device}")
    unchangeable = operator.post("/api/v1/versions", json={"base": newest, "text": order})
    assert unchangeable.status_code == 422
    assert "settings.locks.order cannot change" in unchangeable.json()["problems"][0]
    for version in ("9", "0", "x"):
        assert operator.get(f"/api/v1/versions/{version}").status_code == 404
    assert operator.post("/api/v1/versions", json={"text": MORE}).status_code == 400


def test_who_may_only_look_cannot_have_a_node_read_documents_without_end(tmp_path: Path) -> None:
    """Reading documents takes the processor from what keeps leases."""

    async def flood() -> None:
        async with one_node(tmp_path) as node:
            long = ALONE + "".join(f"  r{n}: {{do: [{{device: lamp, command: set}}]}}\n" for n in range(500))
            body = msgspec.json.encode({"text": long})
            asked = [node.say(node.request("POST", "/api/v1/preview", body)) for _ in range(4 * MAX_READ)]
            answers = [answer.split()[1] for answer in await asyncio.gather(*asked)]
            assert set(answers) == {b"200", b"503"}
            assert answers.count(b"200") >= MAX_READ
            body = msgspec.json.encode({"text": ALONE})
            assert b" 200 " in (await node.say(node.request("POST", "/api/v1/preview", body)))[:20]

    asyncio.run(flood())

"""Every endpoint of real nodes: what it answers, about whom, from whom, and to whom."""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import httpx
import pytest
from real_mesh import DEVICES, Asked, wait_for

READS = (
    "/api/v1/nodes",
    "/api/v1/nodes/n2",
    "/api/v1/groups",
    "/api/v1/groups/deployment",
    "/api/v1/devices",
    "/api/v1/devices/d1",
    "/api/v1/routines",
    "/api/v1/routines/light",
    "/api/v1/runs",
    "/api/v1/status/mesh",
    "/api/v1/status/doctor",
    "/metrics",
    "/openapi.json",
)


def fired(client: httpx.Client, routine: str = "light", **wish: str) -> str:
    answer = client.post(f"/api/v1/routines/{routine}/fire", json=wish)
    assert answer.status_code == 200, answer.text
    run: str = answer.json()["run"]
    return run


# -- who may -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*READS, "/api/v1/events"])
def test_nothing_is_told_without_a_token(asked: Asked, path: str) -> None:
    for token in ("", "nonsense", asked.viewer + "x", asked.viewer[:-1]):
        answer = asked.client(token=token).get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert "comesh keys token" in answer.json()["error"]


@pytest.mark.parametrize("header", ["Basic abc", "Bearer", "bearer\tx", "", "Bearer \xff\xfe"])
def test_a_header_that_is_no_token_is_refused(asked: Asked, header: str) -> None:
    answer = asked.client(token="").get("/api/v1/nodes", headers={"authorization": header.encode("latin-1")})
    assert answer.status_code == 401


def test_a_viewer_looks_and_does_not_fire(asked: Asked) -> None:
    viewer = asked.client(token=asked.viewer)
    for path in READS:
        assert viewer.get(path).status_code == 200, path
    refused = viewer.post("/api/v1/routines/light/fire")
    assert refused.status_code == 403
    assert "looks is a viewer, and this needs an operator" in refused.json()["error"]


def test_health_needs_no_token_and_tells_nothing_else(asked: Asked) -> None:
    answer = asked.client(token="").get("/health")
    assert (answer.status_code, answer.json()) == (200, {"alive": True, "ready": True})


# -- what is answered ----------------------------------------------------------------------------------------


def test_nodes(asked: Asked) -> None:
    answer = asked.client("n2").get("/api/v1/nodes").json()
    assert answer["answered_by"] == "n2"
    assert [(one["node"], one["life"]) for one in answer["nodes"]] == [
        ("n1", "living"),
        ("n2", "living"),
        ("n3", "living"),
    ]
    assert answer["nodes"][0]["name"] == "The first"
    for name in ("n1", "n2", "n3"):
        one = asked.client("n2").get(f"/api/v1/nodes/{name}").json()
        assert (one["reached"], one["answered_by"], one["status"]["node"]) == (True, name, name)


def test_any_node_answers_for_any_device_and_routine(asked: Asked) -> None:
    """Whoever is asked, the one that leads its group answers."""
    clients = {node: asked.client(node) for node in asked.mesh.nodes}
    forwarded = 0
    for kind, names in (("device", DEVICES), ("routine", ("light", "dark"))):
        for name in names:
            answers = {node: client.get(f"/api/v1/{kind}s/{name}").json() for node, client in clients.items()}
            leaders = {one["answered_by"] for one in answers.values()}
            assert len(leaders) == 1, answers
            assert all(one["reached"] and one["as_of_ms"] > 0 for one in answers.values())
            assert {one["state"][kind] for one in answers.values()} == {name}
            group = clients["n1"].get(f"/api/v1/groups/{answers['n1']['group']}").json()
            assert group["state"]["leader"] == group["answered_by"] == leaders.pop()
            assert name in group[f"{kind}s"]
            forwarded += sum(node != one["answered_by"] for node, one in answers.items())
    assert forwarded == 12  # two of three nodes ask another one, for each of six


def test_lists_have_every_entity(asked: Asked) -> None:
    devices = asked.client("n3").get("/api/v1/devices").json()["devices"]
    assert [one["device"] for one in devices] == list(DEVICES)
    assert all(one["reached"] and one["state"]["status"] == "up" for one in devices)
    assert devices[0]["name"] == "Lamp by the first"
    routines = asked.client("n3").get("/api/v1/routines").json()["routines"]
    assert [(one["routine"], one["commands"]) for one in routines] == [
        ("dark", ["d2"]),
        ("light", ["d1", "d3"]),
    ]
    groups = asked.client("n3").get("/api/v1/groups").json()["groups"]
    assert {one["group"] for one in groups} >= {one["group"] for one in devices} | {"deployment"}


def test_the_whole_mesh(asked: Asked) -> None:
    answer = asked.client("n3").get("/api/v1/status/mesh").json()
    assert (answer["asked"], sorted(answer["nodes"]), answer["silent"]) == ("n3", ["n1", "n2", "n3"], {})


def test_a_routine_is_fired_once_per_request_and_its_run_is_told(asked: Asked) -> None:
    request = uuid.uuid4().hex
    run = fired(asked.client("n1"), request=request)
    assert {fired(asked.client(node), request=request) for node in asked.mesh.nodes} == {run}
    another = fired(asked.client("n1"))
    assert another != run
    client = asked.client("n2", asked.viewer)

    def ended() -> bool:
        answer = client.get(f"/api/v1/runs/{quote(run, safe='')}")
        return answer.status_code == 200 and bool(answer.json()["ended"])

    wait_for(ended, "the run has ended")
    answer = client.get(f"/api/v1/runs/{quote(run, safe='')}").json()
    assert (answer["routine"], answer["trace"][0]["trace"]["what"]) == ("light", "fired")
    assert answer["trace"][-1]["trace"]["what"] == "finished"
    runs = client.get("/api/v1/runs", params={"limit": 500}).json()
    assert run in [one["run"] for one in runs["runs"]]
    assert len(client.get("/api/v1/runs", params={"limit": 1}).json()["runs"]) == 1
    wait_for(
        lambda: client.get("/api/v1/devices/d1").json()["state"]["readings"] == {"on": True}, "the lamp is on"
    )


def test_the_same_request_many_times_at_once_fires_once(asked: Asked) -> None:
    request = uuid.uuid4().hex
    clients = [asked.client(node) for node in asked.mesh.nodes for _ in range(4)]
    with ThreadPoolExecutor(len(clients)) as pool:
        runs = set(pool.map(lambda client: fired(client, "dark", request=request), clients))
    assert len(runs) == 1


# -- what is wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        ("GET", "/api/v1/devices/d", 404, "there is no device 'd' here"),
        ("GET", "/api/v1/routines/lihgt", 404, "did you mean 'light'?"),
        ("POST", "/api/v1/routines/lihgt/fire", 404, "did you mean 'light'?"),
        ("GET", "/api/v1/nodes/n", 404, "there is no node 'n' here"),
        ("GET", "/api/v1/groups/nothing", 404, "there is no group 'nothing' here"),
        ("GET", "/api/v1/runs/lihgt", 404, "there is no run or routine 'lihgt' here; did you mean 'light'?"),
        ("GET", "/api/v1/runs/light%2399", 404, "no node that answers knows the run 'light#99'"),
        ("GET", "/api/v1/runs?limit=0", 400, "Expected `int` >= 1 - at `$.limit`"),
        ("GET", "/api/v1/runs?limit=501", 400, "Expected `int` <= 500 - at `$.limit`"),
        ("GET", "/api/v1/runs?limit=%C2%B2", 400, "at `$.limit`"),
        ("GET", "/api/v1/runs?limit=1&limit=2", 400, "the query has limit more than once"),
        ("GET", "/api/v1/runs?most=5", 400, "unknown field `most`"),
        ("GET", "/api/v1/devices/d1?fresh=1", 400, "unknown field `fresh`"),
        ("POST", "/api/v1/routines/light/pause?request=a", 400, "goes into the body"),
        ("GET", "/api/v1/devices/%00%ff%0a", 404, "there is no device"),
        ("GET", "/api/v1/devices/", 404, "nothing at this path"),
        ("GET", "/", 404, "/openapi.json lists all of them"),
        ("DELETE", "/api/v1/devices/d1", 405, "method not allowed here"),
        ("GET", "/api/v1/routines/light/fire", 405, "method not allowed here"),
    ],
)
def test_what_cannot_be_answered_is_told(
    asked: Asked, method: str, path: str, status: int, says: str
) -> None:
    answer = asked.client().request(method, path)
    assert (answer.status_code, says in answer.json()["error"]) == (status, True), answer.text


def test_a_misspelled_name_is_named(asked: Asked) -> None:
    assert asked.client().get("/api/v1/routines/lihgt").json()["did_you_mean"] == "light"


@pytest.mark.parametrize(
    "body",
    [
        b"nonsense",
        b"[]",
        b"\xff\xfe",
        b"[" * 30_000,
        b'{"request": 7}',
        b'{"request": ""}',
        b'{"requests": "x"}',
        b'{"request": "a\\nb"}',
        b'{"request": "\\ud800"}',
        json.dumps({"request": "x" * 200}).encode(),
    ],
)
def test_a_bad_body_is_refused_with_its_shape(asked: Asked, body: bytes) -> None:
    answer = asked.client().post("/api/v1/routines/light/fire", content=body)
    assert answer.status_code == 400, answer.text
    assert "request" in answer.json()["error"]


def test_metrics_are_text_with_few_labels(asked: Asked) -> None:
    client = asked.client()
    for number in range(50):
        client.get(f"/api/v1/devices/none{number}")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = [line for line in answer.text.splitlines() if line and not line.startswith("#")]
    names = {line.partition("{")[0].partition(" ")[0] for line in samples}
    assert {"comesh_ready", "comesh_nodes_living", "comesh_api_answers_total"} <= names
    assert 'comesh_api_answers_total{endpoint="device",status="404"}' in answer.text
    assert "none49" not in answer.text
    for line in samples:
        float(line.rpartition(" ")[2])
    told = {line.split()[2] for line in answer.text.splitlines() if line.startswith("# TYPE")}
    assert {
        name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in names
    } <= told


def test_head_is_answered_without_a_body(asked: Asked) -> None:
    for path in (*READS, "/health", "/api/v1/events"):
        answer = asked.client().head(path)
        assert (answer.status_code, answer.content) == (200, b""), path

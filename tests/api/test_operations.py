"""Orders to real nodes over HTTP: pause, maintenance, commands by hand, broken locks, and the audit log."""

import asyncio
import json
import uuid
from pathlib import Path

import httpx
import pytest
from one_node import one_node
from real_mesh import Asked, wait_for

from comesh.core.ids import DeviceId, RoutineId
from comesh.queries.answers import ConflictError, Done, RefusedError
from comesh.queries.mesh import Asker
from comesh.queries.requests import PauseRoutine, Role, UnlockDevice

ORDERS = (
    ("/api/v1/pause", {}),
    ("/api/v1/resume", {}),
    ("/api/v1/routines/light/pause", {}),
    ("/api/v1/routines/light/resume", {}),
    ("/api/v1/devices/d1/maintain", {}),
    ("/api/v1/devices/d1/command", {"command": "set", "argument": True}),
    ("/api/v1/devices/d1/unlock", {}),
)


def order(client: httpx.Client, path: str, **wish: object) -> dict[str, object]:
    answer = client.post(f"/api/v1/{path}", json=wish)
    assert answer.status_code == 200, answer.text
    done: dict[str, object] = answer.json()
    return done


def ended(client: httpx.Client, run: object) -> bool:
    found = client.get(f"/api/v1/runs/{str(run).replace('#', '%23')}")
    return found.status_code == 200 and found.json()["ended"]


@pytest.mark.parametrize(("path", "wish"), ORDERS)
def test_only_operators_order(asked: Asked, path: str, wish: dict[str, object]) -> None:
    assert asked.client(token="").post(path, json=wish).status_code == 401
    assert asked.client(token=asked.viewer).post(path, json=wish).status_code == 403


def test_a_routine_is_paused_at_one_node_and_resumed_at_another(asked: Asked) -> None:
    one, other = asked.client("n1"), asked.client("n3")
    order(one, "routines/dark/pause")
    seen = other.get("/api/v1/routines/dark").json()["state"]
    assert seen["paused_by"] == "does (token)"
    refused = other.post("/api/v1/routines/dark/fire", json={})
    assert refused.status_code == 409
    assert "paused by does" in refused.json()["error"]
    order(other, "routines/dark/resume")
    assert one.get("/api/v1/routines/dark").json()["state"]["paused_by"] is None
    assert other.post("/api/v1/routines/dark/fire", json={}).status_code == 200


def test_everything_is_stopped_with_one_order(asked: Asked) -> None:
    client = asked.client("n2")
    done = order(client, "pause")
    groups = client.get("/api/v1/groups").json()["groups"]
    assert done["groups"] == len(groups) - 1, "all but the one of the deployment, which has no routines"
    routines = client.get("/api/v1/routines").json()["routines"]
    assert {one["state"]["paused_by"] for one in routines} == {"does (token)"}
    assert client.post("/api/v1/routines/light/fire", json={}).status_code == 409
    order(asked.client("n1"), "resume")
    assert client.post("/api/v1/routines/light/fire", json={}).status_code == 200


def test_a_device_in_maintenance_is_left_alone_but_for_people(asked: Asked) -> None:
    client = asked.client("n1")
    order(client, "devices/d2/maintain")
    assert asked.client("n3").get("/api/v1/devices/d2").json()["state"]["maintained_by"] == "does (token)"
    run = client.post("/api/v1/routines/dark/fire", json={}).json()["run"]
    wait_for(lambda: ended(client, run), "the run ended")
    last = client.get(f"/api/v1/runs/{run.replace('#', '%23')}").json()["trace"][-1]["trace"]
    assert last["what"] == "failed"
    assert "in maintenance by does" in last["reason"]
    by_hand = order(client, "devices/d2/command", command="set", argument=True)
    wait_for(lambda: ended(client, by_hand["run"]), "the command by hand ended")
    order(client, "devices/d2/maintain", on=False)
    state = client.get("/api/v1/devices/d2").json()["state"]
    assert state["maintained_by"] is None
    assert state["readings"] == {"on": True}
    again = client.post("/api/v1/devices/d2/maintain", json={"on": False})
    assert again.status_code == 409
    assert "not in maintenance" in again.json()["error"]


def test_a_command_by_hand_is_given_once(asked: Asked) -> None:
    request = uuid.uuid4().hex
    runs = [
        order(asked.client(node), "devices/d4/command", command="set", argument=True, request=request)["run"]
        for node in ("n1", "n2", "n3", "n1")
    ]
    assert len(set(runs)) == 1
    assert str(runs[0]).startswith("set.d4#")


@pytest.mark.parametrize(
    ("wish", "status", "says"),
    [
        ({"command": "set", "argument": "blue"}, 400, "takes"),
        ({"command": "set"}, 400, "needs an argument"),
        ({"command": "sett", "argument": True}, 400, "did you mean 'set'"),
        ({}, 400, "openapi"),
        ({"command": "set", "argument": True, "by": "somebody else"}, 400, "openapi"),
        ({"command": "set", "argument": {"a": [1]}}, 400, "openapi"),
    ],
)
def test_what_the_document_does_not_have_is_refused(
    asked: Asked, wish: dict[str, object], status: int, says: str
) -> None:
    refused = asked.client().post("/api/v1/devices/d1/command", json=wish)
    assert refused.status_code == status
    assert says in refused.json()["error"]


def test_names_that_do_not_exist(asked: Asked) -> None:
    for path in ("devices/d9/maintain", "devices/d9/unlock", "routines/lihgt/pause", "routines/lihgt/resume"):
        refused = asked.client().post(f"/api/v1/{path}", json={})
        assert refused.status_code == 404, path
        assert "there is no" in refused.json()["error"]


def test_a_lock_that_nobody_holds_cannot_be_broken(asked: Asked) -> None:
    refused = asked.client().post("/api/v1/devices/d3/unlock", json={})
    assert refused.status_code == 409
    assert refused.json()["error"] == "nobody holds d3"


def test_every_node_tells_who_did_what(asked: Asked) -> None:
    request = uuid.uuid4().hex
    order(asked.client("n2"), "routines/dark/pause", request=request)
    order(asked.client("n2"), "routines/dark/resume")
    fired = uuid.uuid4().hex
    asked.client("n2").post("/api/v1/routines/light/fire", json={"request": fired})
    for node in ("n1", "n2", "n3"):
        log = asked.client(node, token=asked.viewer).get("/api/v1/audit").json()
        assert log["unheard"] == []
        entries = {one["request"]: one for one in log["entries"]}
        assert entries[request]["what"] == "pause dark"
        assert entries[request]["by"] == "does (token)"
        assert entries[fired]["what"] == "fire light"
        assert entries[fired]["run"].startswith("light#")
        times = [one["wall_ms"] for one in log["entries"]]
        assert times == sorted(times, reverse=True)
    assert len(asked.client().get("/api/v1/audit?limit=1").json()["entries"]) == 1
    assert asked.client().get("/api/v1/audit?limit=none").status_code == 400


def test_the_log_of_what_is_refused_stays_empty(asked: Asked) -> None:
    request = uuid.uuid4().hex
    asked.client().post("/api/v1/devices/d3/unlock", json={"request": request})
    assert request not in json.dumps(asked.client().get("/api/v1/audit?limit=500").json())


def test_orders_with_one_request_id_do_not_take_each_others_answers(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:
            desk, ann = node.assembly.table, Asker(by="ann (token)", role=Role.OPERATOR)
            pause = PauseRoutine(routine=RoutineId("light"), request="mine")
            unlock = UnlockDevice(device=DeviceId("lamp"), request="mine")
            said = await asyncio.gather(
                *(desk.answer(one, ann) for one in (pause, unlock, pause)), return_exceptions=True
            )
            assert said[0] == said[2] == Done(request="mine")
            assert isinstance(said[1], ConflictError)
            with pytest.raises(RefusedError, match="nobody holds lamp"):
                await desk.answer(UnlockDevice(device=DeviceId("lamp"), request="another"), ann)

    asyncio.run(story())


def test_an_order_with_an_id_that_is_in_use_is_a_conflict(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_node(tmp_path) as node:
            pause = node.request("POST", "/api/v1/routines/light/pause", b'{"request": "mine"}')
            unlock = node.request("POST", "/api/v1/devices/lamp/unlock", b'{"request": "mine"}')
            said = await asyncio.gather(node.say(pause), node.say(unlock))
            assert sorted(answer.split()[1] for answer in said) == [b"200", b"409"]
            (refused,) = (answer for answer in said if b" 409 " in answer[:20])
            error = json.loads(refused.partition(b"\r\n\r\n")[2])
            assert (error["kind"], error["request"]) == ("conflict", "mine")

    asyncio.run(story())


def test_only_the_lock_of_the_run_that_is_meant_is_broken(asked: Asked) -> None:
    refused = asked.client("n2").post("/api/v1/devices/d1/unlock", json={"run": "light#1:0.0:9"})
    assert refused.status_code == 409
    assert refused.json()["error"] == "nobody holds d1"

"""A node that does not reach the group of an entity says so, with the last that it heard."""

import signal
from pathlib import Path

from real_mesh import DEVICES, asked_mesh, wait_for


def test_what_is_not_reached_is_told_with_its_age(tmp_path: Path) -> None:
    with asked_mesh(tmp_path / "run") as asked:
        client = asked.client("n1")

        def all_seen() -> bool:
            listed = client.get("/api/v1/devices").json()["devices"]
            return all(one["reached"] and one["state"]["status"] == "up" for one in listed)

        wait_for(all_seen, "all devices are up")
        assert client.get("/api/v1/nodes/n2").json()["reached"]
        before = {device: client.get(f"/api/v1/devices/{device}").json() for device in DEVICES}
        for other in ("n2", "n3"):  # stopped, not ended: nobody says good-bye
            asked.mesh.signal(other, signal.SIGSTOP)

        def cut_off() -> bool:
            return not any(one["reached"] for one in client.get("/api/v1/devices").json()["devices"])

        wait_for(cut_off, "no group is served any more")
        for device in DEVICES:
            answer = client.get(f"/api/v1/devices/{device}")
            assert answer.status_code == 200
            now = answer.json()
            assert (now["reached"], now["state"]["device"]) == (False, device)
            assert now["as_of_ms"] >= before[device]["as_of_ms"]
        unheard = client.get("/api/v1/routines/dark")
        assert unheard.status_code == 503 or unheard.json()["reached"] is False
        if unheard.status_code == 503:
            assert "no node that leads its group" in unheard.json()["error"]
        node = client.get("/api/v1/nodes/n2").json()
        assert (node["reached"], node["status"]["node"]) == (False, "n2")
        group = client.get(f"/api/v1/groups/{before['d1']['group']}").json()
        assert group["reached"] is False
        for other in ("n2", "n3"):
            asked.mesh.signal(other, signal.SIGCONT)
        wait_for(all_seen, "all are reached again")

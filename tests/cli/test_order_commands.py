"""Commands that order something of a real mesh: pause, set, maintain, unlock, audit; here and over HTTP."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_processes import Ended, comesh, wait_for

from comesh.api.tokens import create
from comesh.cli.up import begin, wait_until_ready
from comesh.deployment.load import load_bytes
from comesh.queries.requests import Role
from comesh.runtime.local_mesh import LocalMesh

MESH = """
name: Ordered
settings:
  {f: 1, epoch: 1h, monitoring: 200ms, lease: 500ms, membership_period: 300ms, hop: 1ms, command_timeout: 2s}
x-lamp: &lamp
  readings: {on: bool}
  commands:
    switch: {argument: bool, sets: on}
    fade: {argument: bool, sets: on, takes: 3s}
nodes:
  n1: {place: [0m, 0m]}
  n2: {place: [1m, 0m]}
  n3: {place: [2m, 0m]}
devices:
  lamp: {place: [0m, 1m], <<: *lamp}
  other: {place: [1m, 1m], <<: *lamp}
routines:
  slowly:
    do: [{device: lamp, command: fade, argument: true}, {device: lamp, command: fade, argument: false}]
"""


class Mesh:
    def __init__(self, directory: Path, api: str, token: str) -> None:
        self.directory = directory
        self.api = api
        self.token = token

    def here(self, *words: str) -> Ended:
        return comesh(*words, "--data", self.directory)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    directory = tmp_path_factory.mktemp("ordered") / "run"
    outcome = load_bytes(MESH.encode(), "mesh.yaml")
    assert outcome.deployment is not None, outcome.errors
    local = LocalMesh(directory, outcome.deployment, MESH, api=True)
    try:
        local.prepare()
        token = create(directory / "keys", "ann", Role.OPERATOR, 1000.0 * time.time())
        begin(local)
        wait_until_ready(local)
        host, port = local.api_at["n2"]
        yield Mesh(directory, f"http://{host}:{port}", token)
    finally:
        local.close()


def _holder(mesh: Mesh) -> str | None:
    found: str | None = json.loads(mesh.here("devices", "lamp", "--json").stdout)["state"]["holder"]
    return found


def test_a_device_is_set_and_the_result_is_printed(mesh: Mesh) -> None:
    done = mesh.here("set", "lamp", "switch", "on")
    assert (done.code, done.stdout) == (0, "lamp switch on: done\n")
    told = json.loads(mesh.here("set", "lamp", "switch", "off", "--json").stdout)
    assert told["ended"] == "finished"
    assert told["run"].startswith("set.lamp#")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("lamp", "switch", "blue"), "lamp switch takes"),
        (("lamp", "switch"), "lamp switch needs an argument"),
        (("lamp", "swich", "on"), "did you mean 'switch'"),
        (("lmap", "switch", "on"), "did you mean 'lamp'"),
    ],
)
def test_unknown_commands_are_reported(mesh: Mesh, words: tuple[str, ...], says: str) -> None:
    wrong = mesh.here("set", *words)
    assert wrong.code == 1
    assert says in wrong.stderr


def test_a_pause_is_seen_everywhere_until_it_is_lifted(mesh: Mesh) -> None:
    assert mesh.here("pause", "slowly").code == 0
    refused = mesh.here("fire", "slowly")
    assert refused.code == 1
    assert "paused by" in refused.stderr
    assert "paused" in mesh.here("routines").stdout
    assert mesh.here("pause").code == 2
    assert mesh.here("pause", "--all").code == 0
    assert mesh.here("resume", "slowly").code == 1, "all are paused"
    assert mesh.here("resume", "--all").code == 0
    assert mesh.here("fire", "slowly").code == 0
    wait_for(lambda: _holder(mesh) is None, "the run ended")


def test_a_pause_that_is_lost_with_a_new_name_is_reported_before(mesh: Mesh, tmp_path: Path) -> None:
    file = tmp_path / "renamed.yaml"
    file.write_text(MESH.replace("  slowly:", "  gently:"))
    lost = ": gently will not be; order it again for gently"
    assert lost not in mesh.here("apply", str(file), "--dry-run").stdout
    assert mesh.here("pause", "slowly").code == 0
    assert lost in mesh.here("apply", str(file), "--dry-run").stdout
    assert mesh.here("resume", "slowly").code == 0


def test_maintenance(mesh: Mesh) -> None:
    assert mesh.here("maintain", "other").code == 0
    assert "maintenance" in mesh.here("devices").stdout
    assert mesh.here("set", "other", "switch", "on").code == 0
    assert mesh.here("maintain", "other", "--end").code == 0
    assert mesh.here("maintain", "other", "--end").code == 1


def test_a_lock_is_broken(mesh: Mesh) -> None:
    assert mesh.here("fire", "slowly").code == 0
    wait_for(lambda: _holder(mesh) is not None, "it holds the lamp")
    unsure = mesh.here("unlock", "lamp")
    assert unsure.code == 2
    assert "--yes" in unsure.stderr
    broken = mesh.here("unlock", "lamp", "--yes")
    assert broken.code == 0, broken.stderr
    wait_for(lambda: _holder(mesh) is None, "the lamp is free")
    assert "broke its lock of lamp" in mesh.here("trace", "slowly").stdout
    assert mesh.here("unlock", "lamp", "--yes").code == 1


def test_the_same_over_http_and_in_the_log(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMESH_TOKEN", mesh.token)
    there = ("--node", mesh.api)
    assert comesh("set", "other", "switch", "off", *there).code == 0
    assert comesh("pause", "slowly", *there).code == 0
    refused = comesh("unlock", "other", "--yes", *there)
    assert refused.code == 1
    assert "nobody holds other" in refused.stderr
    log = comesh("audit", *there, "--json")
    assert log.code == 0
    did = [(one["by"], one["what"]) for one in json.loads(log.stdout)["entries"]]
    assert ("ann (token)", "pause slowly") in did
    assert ("ann (token)", "set other: switch false") in did
    assert comesh("resume", "slowly", *there).code == 0
    assert "resume slowly" in mesh.here("audit", "--about", "resume", "--last", "1").stdout

"""What is asked of a running mesh, here and over HTTP: three real nodes for all tests of this file."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_processes import Ended, Running, comesh, free_ports, wait_for

from comesh.api.tokens import create
from comesh.queries.requests import Role

HOUSE = """
name: House
settings:
  {f: 1, epoch: 1h, monitoring: 200ms, lease: 500ms, membership_period: 300ms, hop: 1ms, command_timeout: 1s}
x-lamp: &lamp
  readings: {on: bool}
  commands: {set: {argument: bool, sets: on}}
nodes:
  n1: {name: The first, place: [0m, 0m], power_domain: a}
  n2: {place: [1m, 0m], power_domain: b}
  n3: {place: [2m, 0m], power_domain: c}
devices:
  lamp1: {name: Lamp by the door, place: [0m, 1m], <<: *lamp}
  lamp2: {place: [1m, 1m], <<: *lamp}
  door: {readings: {open: bool, warmth: {type: float, range: [0, 50]}}, on: n2}
  button: {place: [1m, 1m], readings: {press: [single, double]}, event: true}
routines:
  both:
    name: Both lamps
    do: [{device: lamp1, command: set, argument: true}, {device: lamp2, command: set, argument: true}]
  opened: {when: door.open, do: [{device: lamp1, command: set, argument: true}]}
  pressed: {on_event: button.press == 'double', do: [{device: lamp2, command: set, argument: true}]}
"""


class House:
    """A mesh, and how it is asked."""

    def __init__(self, run: Path, up: Running) -> None:
        self.run = run
        self.up = up
        now_ms = 1000.0 * time.time()
        self.viewer = create(run / "keys", "looks", Role.VIEWER, now_ms)
        self.operator = create(run / "keys", "does", Role.OPERATOR, now_ms)
        self.urls: dict[str, str] = json.loads((run / "api.json").read_bytes())

    def here(self, *arguments: str | Path) -> Ended:
        return comesh(*arguments, "--data", self.run)

    def there(self, *arguments: str | Path, node: str = "n3", token: str | None = None) -> Ended:
        """Over HTTP."""
        os.environ["COMESH_TOKEN"] = self.operator if token is None else token
        try:
            return comesh(*arguments, "--node", self.urls[node])
        finally:
            del os.environ["COMESH_TOKEN"]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    place = tmp_path_factory.mktemp("house")
    (place / "house.yaml").write_text(HOUSE)
    with Running(
        place / "output", "up", place / "house.yaml", "--data", place / "run", "--quiet", "--still"
    ) as up:
        up.wait_until_it_says("ready after")
        made = House(place / "run", up)
        wait_for(lambda: made.here("devices").code == 0, "all devices are up")
        wait_for(lambda: made.here("status").code == 0, "all is well")
        yield made


@pytest.mark.parametrize("way", ["here", "there"])
@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("status", ("House, deployment version 1", "4 devices, all up")),
        ("nodes", ("n1", "ready", "deployment", "3 nodes; as of ")),
        ("nodes n1", ("n1, The first", "power domain", "member of", "source: n1")),
        ("groups", ("c1", "leader", "2 groups; as of ")),
        ("groups c1", ("n1, n2, n3", "lamp1, lamp2", "both, opened, pressed")),
        ("devices", ("lamp1", "open false", "4 devices; as of ", "source: ")),
        ("devices --group c1", ("lamp2",)),
        ("devices lamp1", ("lamp1, Lamp by the door", "on ", "held by")),
        ("routines", ("pressed", "3 routines; as of ")),
        ("routines both", ("both, Both lamps", "lamp1, lamp2", "now")),
    ],
)
def test_every_question_is_answered_here_and_over_http(
    house: House, way: str, question: str, says: tuple[str, ...]
) -> None:
    ask = house.here if way == "here" else house.there
    shown = ask(*question.split())
    assert (shown.code, shown.stderr) == (0, "")
    for what in says:
        assert what in shown.stdout
    told = ask(*question.split(), "--json")
    assert told.code == 0
    assert json.loads(told.stdout)


@pytest.mark.parametrize("way", ["here", "there"])
@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("nodes n7", "there is no node 'n7' here; known: n1, n2, n3"),
        ("groups c7", "there is no group 'c7' here; known: c1, deployment"),
        ("devices lamp11", "there is no device 'lamp11' here; did you mean 'lamp1'?"),
        ("devices --group c7", "there is no group 'c7' with devices; known: c1"),
        ("routines bot", "there is no routine 'bot' here; did you mean 'both'?"),
        ("runs --routine bot", "there is no routine 'bot'; did you mean 'both'?"),
        ("trace bot", "there is no run or routine 'bot' here; did you mean 'both'?"),
        ("trace both#99", "no node that answers knows the run 'both#99'"),
        ("fire bot", "there is no routine 'bot'"),
    ],
)
def test_unknown_names_are_answered_with_likely_ones(
    house: House, way: str, question: str, says: str
) -> None:
    ended = (house.here if way == "here" else house.there)(*question.split())
    assert ended.code == 1
    assert says in ended.stderr


@pytest.mark.parametrize("way", ["here", "there"])
@pytest.mark.parametrize(
    ("question", "kind", "meant"),
    [
        ("fire bot", "unknown_name", "both"),
        ("devices lamp11", "unknown_name", "lamp1"),
        ("set lamp1 sett on", "malformed", None),
    ],
)
def test_what_is_not_answered_is_an_error_for_programs_too(
    house: House, way: str, question: str, kind: str, meant: str | None
) -> None:
    ended = (house.here if way == "here" else house.there)(*question.split(), "--json")
    assert ended.code == 1
    assert ended.stderr
    error = json.loads(ended.stdout)
    assert (error["kind"], error.get("did_you_mean")) == (kind, meant)
    assert ("request" in error) == (question.split(maxsplit=1)[0] != "devices")


@pytest.mark.parametrize("way", ["here", "there"])
def test_the_doctor_asks_every_node(house: House, way: str) -> None:
    """A full disk, little memory or a busy machine are found rightly: those of this one may be so."""
    ask = house.here if way == "here" else house.there
    shown = ask("doctor")
    for what in ("hears, in ms", "from median", "listens on UDP", "127.0.0.1:"):
        assert what in shown.stdout
    told = ask("doctor", "--json")
    answer = json.loads(told.stdout)
    assert {one["about"] for one in answer["findings"]} <= {"disk", "memory", "reach"}
    assert told.code == (1 if answer["findings"] else 0)
    assert all(len(one["said"]["hears"]) == 2 for one in answer["health"]["nodes"].values())


def test_a_routine_is_fired_and_followed_over_http(house: House, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(house.operator + "\n")
    far = ("--node", house.urls["n2"], "--token-file", tmp_path / "token")
    with Running(tmp_path / "watched", "watch", "--json", *far) as watching:
        fired = json.loads(house.there("fire", "both", "--json", "--request", "mine").stdout)
        assert json.loads(house.here("fire", "both", "--json", "--request", "mine").stdout) == fired
        wait_for(lambda: "finished" in house.there("trace", fired["run"]).stdout, "the run has finished")
        assert json.loads(house.there("trace", "both", "--json").stdout)[0]["run"] == fired["run"]
        for ask in (house.here, house.there):
            assert fired["run"] in ask("runs", "--routine", "both").stdout
            assert ask("runs", "--failed").code == ask("runs", "--routine", "both", "--live").code == 1
            assert len(json.loads(ask("runs", "--last", "1", "--json").stdout)["runs"]) == 1

        def heard() -> bool:
            """Whenever the watcher began to listen, it hears of one of them."""
            house.there("fire", "both")
            return '"about":"both#' in watching.said()

        wait_for(heard, "news of a run")
        assert watching.end(signal.SIGINT) == 130


def test_a_virtual_sensor_and_a_button_trigger_routines(house: House) -> None:
    done = house.here("virtual", "set", "door", "open=on", "warmth=21")
    assert (done.code, done.stdout) == (0, "door reads open true, warmth 21.0\n")
    wait_for(lambda: house.here("runs", "--routine", "opened").code == 0, "the door has fired opened")
    assert "open true, warmth 21.0" in house.here("devices", "door").stdout
    done = house.here("virtual", "press", "button", "press=double")
    assert (done.code, done.stdout) == (0, "button told press double\n")
    wait_for(lambda: house.here("runs", "--routine", "pressed").code == 0, "the button has fired pressed")
    assert house.here("virtual", "set", "lamp2", "on=false", "--json").code == 0
    assert house.here("virtual", "press", "button").stdout == "button told an event\n"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("set doo open=true", 1, "there is no device 'doo' here; did you mean 'door'?"),
        ("set door opn=true", 1, "door has no reading 'opn'; did you mean 'open'?"),
        ("set door open=maybe", 1, "door.open is true or false, not 'maybe'"),
        ("set door warmth=70", 1, "door.warmth is a number from 0 to 50, not '70'"),
        ("set door warmth", 2, "'warmth' is not READING=VALUE; write, for example, open=true"),
        ("press lamp1 on=true", 1, "lamp1"),
    ],
)
def test_wrong_commands_to_virtual_devices_are_reported(
    house: House, arguments: str, code: int, says: str
) -> None:
    ended = house.here("virtual", *arguments.split())
    assert (ended.code, says in ended.stderr) == (code, True), ended.stderr


def test_askers_without_rights_get_the_reason(
    house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refused = house.there("fire", "both", token=house.viewer)
    assert (refused.code, "looks is a viewer, and this needs an operator" in refused.stderr) == (2, True)
    assert house.there("devices", token=house.viewer).code == 0
    refused = house.there("devices", token="nonsense")
    assert (refused.code, "this token is not known here" in refused.stderr) == (2, True)
    monkeypatch.delenv("COMESH_TOKEN", raising=False)
    refused = comesh("devices", "--node", house.urls["n1"])
    assert (refused.code, "COMESH_TOKEN is not set. Make one where" in refused.stderr) == (2, True)
    (tmp_path / "empty").touch()
    refused = comesh("devices", "--node", house.urls["n1"], "--token-file", tmp_path / "empty")
    assert (refused.code, "empty is empty. Make one where" in refused.stderr) == (2, True)
    refused = comesh("devices", "--node", house.urls["n1"], "--token-file", tmp_path / "none")
    assert (refused.code, "the token cannot be read from" in refused.stderr) == (2, True)


def test_absent_nodes_are_reported(house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COMESH_TOKEN", house.viewer)
    monkeypatch.chdir(tmp_path)
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    for node, says in (
        (nowhere, f"nothing listens at http://{nowhere}; does the node run"),
        ("http://192.0.2.1:8460", "is asked without TLS, so everybody on the way could read the token"),
        ("https://192.0.2.1:8460", "keys/authority.crt is missing"),
        ("ftp://192.0.2.1:8460", "write https://HOST:PORT, or HOST:PORT"),
        ("https://here:port", "is no address"),
        ("n7", "no node 'n7' runs here. Elsewhere: --node HOST:PORT"),
    ):
        ended = comesh("devices", "--node", node)
        assert (ended.code, says in ended.stderr) == (2, True), ended.stderr


def test_a_stopped_node_is_reported_and_its_devices_are_marked(house: House) -> None:
    stopped = int((house.run / "nodes" / "n2" / "lock").read_text())
    os.kill(stopped, signal.SIGSTOP)
    try:
        wait_for(lambda: "n2 (dead)" in comesh_n1(house, "nodes").stdout, "n1 knows")
        assert comesh_n1(house, "nodes").code == comesh_n1(house, "nodes", "n2").code == 1
        assert "life          dead" in comesh_n1(house, "nodes", "n2").stdout
        found = comesh_n1(house, "doctor")
        assert found.code == 1
        assert "node: n2: dead, as n1 knows" in found.stdout
        assert "look at its machine, its log" in found.stdout
        about = {one["about"] for one in json.loads(comesh_n1(house, "doctor", "--json").stdout)["findings"]}
        assert {"node", "group"} <= about
        wait_for(lambda: "door" in comesh_n1(house, "devices", "--down").stdout, "the door is down with n2")
        assert comesh_n1(house, "devices", "--down").code == 1
    finally:
        os.kill(stopped, signal.SIGCONT)
    wait_for(lambda: house.here("status").code == 0, "all is well again")


def comesh_n1(house: House, *arguments: str) -> Ended:
    return comesh(*arguments, "--data", house.run, "--node", "n1")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("comesh do", ["doctor"]),
        ("comesh virtual s", ["set"]),
        ("comesh devices --he", ["--held", "--help"]),
        ("comesh devices --data RUN la", ["lamp1", "lamp2"]),
        ("comesh fire --data RUN op", ["opened"]),
        ("comesh groups --data RUN d", ["deployment"]),
        ("comesh status --data RUN --node n", ["n1", "n2", "n3"]),
        ("comesh virtual set --data RUN do", ["door"]),
        ("comesh devices --data NOWHERE la", []),
    ],
)
def test_the_shell_completes_commands_options_and_names(house: House, words: str, offered: list[str]) -> None:
    typed = words.replace("RUN", str(house.run))
    environment = {
        **os.environ,
        "_COMESH_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    program = "import sys; from comesh.cli.main import main; sys.argv[0] = 'comesh'; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.stdout.split(), ended.stderr) == (offered, "")

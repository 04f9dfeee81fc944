"""Eleven network namespaces with babeld: routes over hops, loss, partitions, and nothing left behind."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from comesh.lab import namespaces
from comesh.lab.namespaces import DEVICES, DEVICES_HOST, Namespaces, NamespacesError, what_is_missing
from comesh.lab.shapes import Shape, is_connected, links_of, paper_places

BOUND_S = 30.0
needs_root = pytest.mark.skipif(bool(what_is_missing()), reason=what_is_missing() or "all is there")

LISTEN = """
import json, socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
one = socket.socket(family, socket.SOCK_DGRAM)
one.settimeout(20)
if family == socket.AF_INET:
    one.setsockopt(socket.IPPROTO_IP, 12, 1)  # IP_RECVTTL
else:
    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
one.bind((sys.argv[1], 7000))
print("ready", flush=True)
heard = 0
while True:
    data, ancillary, _, source = one.recvmsg(100, 100)
    if data == b"end":
        break
    heard += 1
hops = 64 - int.from_bytes(ancillary[0][2], sys.byteorder) + 1
print(json.dumps({"heard": heard, "hops": hops, "source": source[0]}), flush=True)
"""
SEND = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
one = socket.socket(family, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[2])):
    one.sendto(b"x", (sys.argv[1], 7000))
for _ in range(int(sys.argv[3])):
    one.sendto(b"end", (sys.argv[1], 7000))
"""


def talk(
    mesh: Namespaces, sender: str, receiver: str, *, v6: bool = False, count: int = 1, ends: int = 1
) -> dict:
    """Send datagrams between two nodes, the last one `ends` times; returns those received."""
    address = mesh.addresses[receiver][v6]
    listener = mesh.run_in(receiver, [sys.executable, "-c", LISTEN, address], output=subprocess.PIPE)
    assert listener.stdout is not None
    with listener.stdout:
        assert listener.stdout.readline() == b"ready\n"
        mesh.run_in(sender, [sys.executable, "-c", SEND, address, str(count), str(ends)]).wait(BOUND_S)
        said = listener.stdout.readline()
    assert listener.wait(BOUND_S) == 0
    return json.loads(said)


@pytest.fixture(scope="module")
def line() -> Iterator[Namespaces]:
    places = paper_places(Shape.LINE)
    with Namespaces(sorted(places), links_of(places), hello_s=0.2) as mesh:
        mesh.wait_for_routes(bound_s=BOUND_S)
        yield mesh


def processes_in(prefix: str) -> list[str]:
    """Returns the existing namespaces, by the system's own list."""
    told = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [one for one in told.splitlines() if one.startswith(prefix)]


@needs_root
def test_eleven_nodes_of_the_grid_find_each_other_and_leave_nothing_behind() -> None:
    places = paper_places(Shape.GRID, seed=1)
    with Namespaces(sorted(places), links_of(places), hello_s=0.2) as mesh:
        mesh.wait_for_routes(bound_s=BOUND_S)
        routers = list(mesh._processes)
        assert len(processes_in(mesh.namespace(""))) == 12
        saw = talk(mesh, "n03", "n11")
        assert saw["source"] == mesh.addresses["n03"][0]
        assert saw["hops"] >= 4
    assert processes_in(mesh.namespace("")) == []
    assert all(router.poll() is not None for router in routers)


@needs_root
@pytest.mark.parametrize("v6", [False, True])
def test_the_ends_of_the_line_are_ten_hops_apart(line: Namespaces, v6: bool) -> None:
    saw = talk(line, "n01", "n11", v6=v6, count=20)
    assert saw == {"heard": 20, "hops": 10, "source": line.addresses["n01"][v6]}


@needs_root
def test_loss_of_a_link_is_counted(line: Namespaces) -> None:
    line.set_loss("n01", "n02", 0.5)
    saw = talk(line, "n01", "n02", count=200, ends=30)
    dropped = line.dropped("n01", "n02")
    line.set_loss("n01", "n02", 0.0)
    assert 50 < saw["heard"] < 150
    assert dropped >= 200 - saw["heard"]
    assert line.dropped("n02", "n01") == 0
    line.wait_for_routes(bound_s=BOUND_S)


@needs_root
def test_sides_lose_their_routes_until_it_is_healed(line: Namespaces) -> None:
    near, far = ["n01", "n02", "n03"], [f"n{number:02}" for number in range(4, 12)]
    line.partition([near, far])
    until = time.monotonic() + BOUND_S
    while line.reachable("n01") != {"n02", "n03"} or line.reachable("n11") != set(far) - {"n11"}:
        assert time.monotonic() < until, "the routes to the other side are still there"
    line.wait_for_routes(bound_s=BOUND_S, among=far)
    line.heal()
    line.wait_for_routes(bound_s=BOUND_S)


@needs_root
def test_every_node_reaches_the_devices(line: Namespaces) -> None:
    listener = line.run_in(DEVICES, [sys.executable, "-c", LISTEN, DEVICES_HOST], output=subprocess.PIPE)
    assert listener.stdout is not None
    with listener.stdout:
        assert listener.stdout.readline() == b"ready\n"
        for node in line.nodes:
            line.run_in(node, [sys.executable, "-c", SEND, DEVICES_HOST, "1", "0"]).wait(BOUND_S)
        line.run_in("n01", [sys.executable, "-c", SEND, DEVICES_HOST, "0", "1"]).wait(BOUND_S)
        assert json.loads(listener.stdout.readline())["heard"] == len(line.nodes)
    assert listener.wait(BOUND_S) == 0


@needs_root
def test_leftovers_of_a_crashed_run_are_removed() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    namespace = f"{namespaces.PREFIX}{gone.pid}-0-n1"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    left = subprocess.Popen(["ip", "netns", "exec", namespace, "sleep", "1000"])
    while not Path(f"/proc/{left.pid}/cmdline").read_bytes().startswith(b"sleep"):
        os.sched_yield()
    with Namespaces(["n1"], []) as mesh:
        assert processes_in(namespace) == []
        assert len(processes_in(mesh.namespace(""))) == 2
    assert left.wait(BOUND_S) < 0


@needs_root
def test_impossible_links_are_refused() -> None:
    with pytest.raises(NamespacesError, match="'n3', which is no node"):
        Namespaces(["n1", "n2"], [("n1", "n3")])
    with Namespaces(["n1", "n2"], []) as mesh, pytest.raises(NamespacesError, match="are no neighbours"):
        mesh.cut("n1", "n2")


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert what_is_missing().startswith("not installed: iproute2, babeld, nftables")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NamespacesError, match="need root"):
        Namespaces(["n1"], [])


@pytest.mark.parametrize("seed", range(20))
def test_shapes_are_those_of_the_paper(seed: int) -> None:
    for shape in Shape:
        places = paper_places(shape, seed)
        assert len(set(places.values())) == 11
        assert is_connected(places, links_of(places))
    assert len(links_of(paper_places(Shape.LINE))) == 10
    assert not is_connected(["a", "b", "c"], [("a", "b")])


def test_leftovers_may_be_removed_by_another_lab_first(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [f"{namespaces.PREFIX}999999999-0-n1", f"{namespaces.PREFIX}999999999-0-n2"]

    def another_was_faster(namespace: str) -> None:
        left.remove(namespace)
        raise NamespacesError("no such namespace")

    def cannot(namespace: str) -> None:
        raise NamespacesError(f"{namespace} is busy")

    monkeypatch.setattr(namespaces, "_namespaces", lambda prefix: list(left))
    monkeypatch.setattr(namespaces, "_remove", another_was_faster)
    assert namespaces.remove_left_over() == []
    left.append(f"{namespaces.PREFIX}999999999-0-n3")
    monkeypatch.setattr(namespaces, "_remove", cannot)
    with pytest.raises(NamespacesError, match="is busy"):
        namespaces.remove_left_over()

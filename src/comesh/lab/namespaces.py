"""A mesh of several hops on one machine: a network namespace per node, a cable per link, babeld for routes.

    with Namespaces(["n1", "n2", "n3"], [("n1", "n2"), ("n2", "n3")]) as mesh:
        mesh.wait_for_routes(bound_s=20)
        process = mesh.run_in("n1", ["comesh", "node", ...])
        mesh.set_loss("n1", "n2", 0.05)          # of what n2 gets from n1
        mesh.partition([["n1"], ["n2", "n3"]]); mesh.heal()

Every node has one IPv4 and one IPv6 address (`addresses`), which babeld makes known to all others, over as
many hops as it takes. Loss is dropped at the receiving end of a link, from whatever goes through it, routing
messages too; a partition takes links down. A namespace of its own, joined to every node by a cable that leads
nowhere else, is for processes with devices (`DEVICES`).

Needs root and the programs in PROGRAMS: `what_is_missing` says which are not there. All that was made is
removed again: namespaces carry the process id of who made them, so what a crashed run left is found, its
processes ended and its namespaces deleted, before the next one begins.
"""

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from comesh.lab.shapes import Link

PREFIX: Final = "comesh-lab-"
PROGRAMS: Final = {"ip": "iproute2", "babeld": "babeld", "nft": "nftables"}
"""And the Debian packages that have them."""
DEVICES: Final = "devices"
DEVICES_HOST: Final = "10.98.0.1"
"""Address at which every node reaches a process in the namespace DEVICES."""
HELLO_S: Final = 0.3
COMMAND_S: Final = 30.0
"""A command that takes longer has failed."""
END_S: Final = 5.0
"""Time that a process has to end before it is killed."""
LOOK_S: Final = 0.1
MAX_NODES: Final = 250
LOSS_PARTS: Final = 10_000
"""Loss is set in steps of one part of these."""


_meshes = itertools.count()
"""Numbers of this process's meshes: each has names of its own."""


class NamespacesError(Exception):
    """Raised when something cannot be done; str() says what is wrong and what to do."""


def what_is_missing() -> str:
    """Why there can be no namespaces here; empty: there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    return f"not installed: {', '.join(missing)} (apt-get install {' '.join(missing)})" if missing else ""


class Namespaces:
    def __init__(self, nodes: Sequence[str], links: Sequence[Link], *, hello_s: float = HELLO_S) -> None:
        missing = what_is_missing()
        if missing:
            raise NamespacesError(missing)
        if DEVICES in nodes or not 0 < len(nodes) <= MAX_NODES:
            raise NamespacesError(f"from 1 to {MAX_NODES} nodes, none of them called {DEVICES!r}")
        unknown = sorted({name for link in links for name in link} - set(nodes))
        if unknown:
            raise NamespacesError(f"a link of {unknown[0]!r}, which is no node")
        self.nodes = tuple(nodes)
        self.links = tuple(links)
        self.addresses = {
            name: (f"10.99.0.{number}", f"fd99::{number:x}") for number, name in enumerate(nodes, start=1)
        }
        """IPv4 and IPv6 of each node."""
        self._numbers = {name: number for number, name in enumerate(nodes, start=1)}
        self._hello_s = hello_s
        self._prefix = f"{PREFIX}{os.getpid()}-{next(_meshes)}-"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._loss: dict[Link, float] = {}
        """Share of loss, by sender and receiver."""
        self._directory: Path | None = None

    def __enter__(self) -> "Namespaces":
        remove_left_over()
        self._directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything that runs in them, and remove them."""
        end_all(self._processes)
        self._processes.clear()
        for namespace in _namespaces(self._prefix):
            _remove(namespace)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    # -- making ------------------------------------------------------------------------------------------

    def _make(self) -> None:
        for name in (*self.nodes, DEVICES):
            _run(["ip", "netns", "add", self.namespace(name)])
        for name in self.nodes:
            self._switch_on_forwarding(name)
        self._make_links()
        for name in self.nodes:
            self._start_routing(name)

    def namespace(self, name: str) -> str:
        return self._prefix + name

    def _switch_on_forwarding(self, name: str) -> None:
        """And no waiting for whether an address is taken: on a cable between two it is not."""
        settings = [
            "net.ipv4.ip_forward=1",
            "net.ipv4.conf.all.rp_filter=0",
            "net.ipv4.conf.default.rp_filter=0",
            "net.ipv6.conf.all.forwarding=1",
            "net.ipv6.conf.default.accept_dad=0",
        ]
        script = "; ".join(
            f"echo {value} > /proc/sys/{key.replace('.', '/')}"
            for key, value in (setting.split("=") for setting in settings)
        )
        _run([*self.inside(name), "sh", "-ec", script])

    def _make_links(self) -> None:
        lines: list[str] = []
        for one, other in self.links:
            lines.append(
                f"link add name {self._port(other)} netns {self.namespace(one)} type veth "
                f"peer name {self._port(one)} netns {self.namespace(other)}"
            )
        devices = self.namespace(DEVICES)
        for name in self.nodes:
            lines.append(
                f"link add name wire netns {self.namespace(name)} type veth "
                f"peer name {self._port(name)} netns {devices}"
            )
        _batch(None, lines)
        lines = ["link set lo up", f"addr add {DEVICES_HOST}/32 dev lo"]
        for name, number in self._numbers.items():
            port = self._port(name)
            lines += [f"addr add 10.98.{number}.1/30 dev {port}", f"link set {port} up"]
        _batch(devices, lines)
        for name, number in self._numbers.items():
            v4, v6 = self.addresses[name]
            lines = ["link set lo up", f"addr add {v4}/32 dev lo", f"addr add {v6}/128 dev lo"]
            for port in self._ports(name):
                lines += [f"addr add {v4}/32 dev {port}", f"link set {port} up"]
            lines += [f"addr add 10.98.{number}.2/30 dev wire", "link set wire up"]
            lines.append(f"route add {DEVICES_HOST}/32 via 10.98.{number}.1")
            _batch(self.namespace(name), lines)

    def _port(self, towards: str) -> str:
        return f"to{self._numbers[towards]}"

    def _ports(self, name: str) -> list[str]:
        return [
            self._port(other if one == name else one) for one, other in self.links if name in (one, other)
        ]

    def _start_routing(self, name: str) -> None:
        assert self._directory is not None
        v4, v6 = self.addresses[name]
        statements = [
            f"default type wireless hello-interval {self._hello_s} update-interval {4 * self._hello_s}",
            f"redistribute local ip {v4}/32 allow",
            f"redistribute local ip {v6}/128 allow",
            "redistribute local deny",
        ]
        arguments = ["babeld", "-I", "", "-S", str(self._directory / f"{name}.state")]
        arguments += ["-L", str(self._directory / f"{name}.log")]
        for statement in statements:
            arguments += ["-C", statement]
        self.run_in(name, [*arguments, *self._ports(name)])

    # -- using -------------------------------------------------------------------------------------------

    def run_in(
        self, name: str, arguments: Sequence[str], *, output: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        """A process in the namespace of a node, or of DEVICES; its pid is that of the program itself. It is
        ended with everything else, if it still runs."""
        process = subprocess.Popen(
            [*self.inside(name), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def inside(self, name: str) -> list[str]:
        """Returns the words before a command that make it run in that namespace."""
        return ["ip", "netns", "exec", self.namespace(name)]

    def reachable(self, name: str) -> set[str]:
        """Returns the nodes that a node has routes to, by both families, over whatever hops."""
        heard: list[set[str]] = []
        for family in ("-4", "-6"):
            told = _run(["ip", "-n", self.namespace(name), family, "-j", "route", "show"])
            routes = json.loads(told or "[]")  # what was lost stays for a while, as unreachable
            heard.append({one["dst"].split("/")[0] for one in routes if "type" not in one})
        return {
            other
            for other, (v4, v6) in self.addresses.items()
            if other != name and v4 in heard[0] and v6 in heard[1]
        }

    def wait_for_routes(self, *, bound_s: float, among: Collection[str] = ()) -> float:
        """Waits until all (or these) nodes have routes to each other. Returns how many seconds that took."""
        wanted = set(among or self.nodes)
        began = time.monotonic()
        while True:
            lacking = {name for name in wanted if not wanted - {name} <= self.reachable(name)}
            took_s = time.monotonic() - began
            if not lacking:
                return took_s
            if took_s > bound_s:
                names = ", ".join(sorted(lacking))
                raise NamespacesError(f"after {bound_s:.0f} s there are no routes to all from {names}")
            time.sleep(LOOK_S)

    # -- breaking ----------------------------------------------------------------------------------------

    def set_loss(self, sender: str, receiver: str, loss: float, *, both: bool = False) -> None:
        """Sets the loss from one node to its neighbour; 1 cuts one direction."""
        self._link(sender, receiver)
        if not 0.0 <= loss <= 1.0:
            raise NamespacesError(f"loss is {loss}: it must be from 0 to 1")
        self._loss[sender, receiver] = loss
        self._drop_at(receiver)
        if both:
            self.set_loss(receiver, sender, loss)

    def set_all_loss(self, loss: float) -> None:
        for one, other in self.links:
            self.set_loss(one, other, loss, both=True)

    def dropped(self, sender: str, receiver: str) -> int:
        """Packets of that direction that were lost since its loss was set."""
        told = _run([*self.inside(receiver), "nft", "-j", "list", "ruleset"])
        for row in json.loads(told)["nftables"]:
            rule = row.get("rule", {})
            if rule.get("comment") == sender:
                return sum(part["counter"]["packets"] for part in rule["expr"] if "counter" in part)
        return 0

    def _drop_at(self, receiver: str) -> None:
        """Sets all rules of one node at once."""
        rules = "".join(
            f'iifname "{self._port(sender)}" numgen random mod {LOSS_PARTS} < {round(loss * LOSS_PARTS)} '
            f'counter drop comment "{sender}"\n'
            for (sender, to), loss in self._loss.items()
            if to == receiver and loss > 0
        )
        chain = f"chain lossy {{ type filter hook prerouting priority -300;\n{rules}}}"
        text = f"add table inet lab\ndelete table inet lab\ntable inet lab {{\n{chain}\n}}\n"
        _run([*self.inside(receiver), "nft", "-f", "-"], text)

    def cut(self, one: str, other: str) -> None:
        """Their link is down."""
        self._link(one, other)
        _run(["ip", "-n", self.namespace(one), "link", "set", self._port(other), "down"])

    def mend(self, one: str, other: str) -> None:
        self._link(one, other)
        _run(["ip", "-n", self.namespace(one), "link", "set", self._port(other), "up"])

    def partition(self, sides: Sequence[Collection[str]]) -> None:
        """Links between nodes of different sides go down; those in none are a side together."""
        side_of = {name: number for number, side in enumerate(sides) for name in side}
        for one, other in self.links:
            if side_of.get(one) != side_of.get(other):
                self.cut(one, other)
            else:
                self.mend(one, other)

    def heal(self) -> None:
        for one, other in self.links:
            self.mend(one, other)

    def _link(self, one: str, other: str) -> None:
        if (one, other) not in self.links and (other, one) not in self.links:
            raise NamespacesError(f"{one} and {other} are no neighbours")


# -- what others left --------------------------------------------------------------------------------------


def remove_left_over() -> list[str]:
    """Namespaces of labs whose process is no more; what runs in them is ended."""
    removed = []
    for namespace in _namespaces(PREFIX):
        owner = namespace.removeprefix(PREFIX).split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            try:
                _remove(namespace)
            except NamespacesError:
                if namespace in _namespaces(PREFIX):
                    raise
                continue  # another lab that begins now was faster
            removed.append(namespace)
    return removed


def _namespaces(prefix: str) -> list[str]:
    names = [line.split()[0] for line in _run(["ip", "netns", "list"]).splitlines() if line]
    return [name for name in names if name.startswith(prefix)]


def _remove(namespace: str) -> None:
    for pid in _run(["ip", "netns", "pids", namespace]).split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    _run(["ip", "netns", "delete", namespace])


def end_all(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ends processes in good order, and kills what is left after END_S."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    until = time.monotonic() + END_S
    for process in processes:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _batch(namespace: str | None, lines: Sequence[str]) -> None:
    where = [] if namespace is None else ["-n", namespace]
    _run(["ip", *where, "-batch", "-"], "\n".join(lines) + "\n")


def _run(arguments: Sequence[str], text: str = "") -> str:
    try:
        done = subprocess.run(
            list(arguments), input=text, capture_output=True, text=True, timeout=COMMAND_S, check=False
        )
    except subprocess.TimeoutExpired as wrong:
        raise NamespacesError(f"{' '.join(arguments)} did not end within {COMMAND_S:.0f} s") from wrong
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise NamespacesError(f"{' '.join(arguments)} failed: {said}")
    return done.stdout

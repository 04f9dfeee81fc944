"""Serf: ten agents on loopback, one is killed, and the time until all others say that it failed.

The agents have Debian's defaults (the `lan` profile). Each tells on its output what it learns; we read these
lines as they come, so nothing is polled and nothing else runs. Every trial has agents of its own.
"""

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from comesh.core.streams import stream
from peers.results import Effort, Result, result
from peers.stage import LOOPBACK, MissingError, free_ports, install, running, scratch

PACKAGE: Final = "serf"
AGENTS: Final = 10
JOINED_S: Final = 30.0
"""Within which all agents know all."""
CALM_S: Final = (3.0, 4.0)
"""Between joining and the kill, so that it comes at any moment of a probe period, which is a second."""
NOTICED_S: Final = 60.0
"""Within which the others notice."""
CHUNK_BYTES: Final = 65_536


class Agents:
    """Agents by name, and what they say."""

    def __init__(self, processes: dict[str, subprocess.Popen[bytes]]) -> None:
        self.processes = processes
        self._said = dict.fromkeys(processes, b"")
        """What each said that is not a whole line yet."""
        self._selector = selectors.DefaultSelector()
        for name, process in processes.items():
            assert process.stdout is not None
            os.set_blocking(process.stdout.fileno(), False)
            self._selector.register(process.stdout, selectors.EVENT_READ, name)

    def close(self) -> None:
        self._selector.close()

    def forget(self, name: str) -> None:
        output = self.processes[name].stdout
        assert output is not None
        self._selector.unregister(output)

    def listen(self, for_s: float, heard: Callable[[str, str], bool]) -> bool:
        """Give each line with who said it to heard, until that says enough or the time is over."""
        end_s = time.monotonic() + for_s
        while (left_s := end_s - time.monotonic()) > 0:
            for key, _ in self._selector.select(left_s):
                name = str(key.data)
                data = os.read(key.fd, CHUNK_BYTES)
                if not data:
                    raise MissingError(
                        f"serf agent {name} ended: {self._said[name].decode(errors='replace')}"
                    )
                *lines, self._said[name] = (self._said[name] + data).split(b"\n")
                if any(heard(name, line.decode(errors="replace")) for line in lines):
                    return True
        return False


@contextlib.contextmanager
def serf_agents() -> Iterator[Agents]:
    """Ten agents that all know each other."""
    install(PACKAGE, "serf")
    with scratch() as directory, contextlib.ExitStack() as started:
        names = [f"a{number}" for number in range(AGENTS)]
        ports = free_ports(2 * AGENTS)
        processes = {
            name: started.enter_context(
                running(
                    _command(name, ports[number], ports[AGENTS + number], ports[0]),
                    directory / name,
                    piped=True,
                )
            )
            for number, name in enumerate(names)
        }
        agents = Agents(processes)
        started.callback(agents.close)
        _wait_joined(agents, names)
        yield agents


def _command(name: str, port: int, rpc_port: int, first_port: int) -> list[str]:
    bound = [f"-bind={LOOPBACK}:{port}", f"-rpc-addr={LOOPBACK}:{rpc_port}"]
    joins = [] if port == first_port else [f"-retry-join={LOOPBACK}:{first_port}", "-retry-interval=1s"]
    return ["serf", "agent", f"-node={name}", *bound, *joins]


def _wait_joined(agents: Agents, names: Sequence[str]) -> None:
    unknown = {name: set(names) - {name} for name in names}

    def heard(name: str, line: str) -> bool:
        _, found, joined = line.partition("EventMemberJoin: ")
        if found:
            unknown[name].discard(joined.split()[0])
        return not any(unknown.values())

    if not agents.listen(JOINED_S, heard):
        raise MissingError(f"the serf agents did not find each other within {JOINED_S:.0f} s")


def kill_and_wait(agents: Agents, victim: str) -> float:
    """Seconds from kill -9 until the last of the others said that it failed."""
    agents.forget(victim)
    not_yet = set(agents.processes) - {victim}

    def heard(name: str, line: str) -> bool:
        _, found, failed = line.partition("EventMemberFailed: ")
        if found and failed.split()[0] == victim:
            not_yet.discard(name)
        return not not_yet

    agents.processes[victim].kill()
    began = time.monotonic()
    if not agents.listen(NOTICED_S, heard):
        raise MissingError(f"{len(not_yet)} serf agents did not notice within {NOTICED_S:.0f} s")
    return time.monotonic() - began


def measure(effort: Effort) -> Iterator[Result]:
    draws = stream(1, "serf trials")
    took_s = []
    for _ in range(effort.trials):
        with serf_agents() as agents:
            agents.listen(draws.between(*CALM_S), lambda name, line: False)
            took_s.append(kill_and_wait(agents, draws.choice(sorted(agents.processes))))
    yield result(f"Serf, {AGENTS} agents: kill -9 until all others know", "s", took_s)

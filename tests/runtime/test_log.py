"""The log of a node never holds the node up, whoever reads it or does not."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from comesh.queries.answers import QueryError
from comesh.queries.requests import ShowStatus
from comesh.runtime.client import Client
from comesh.runtime.credentials import Authority
from comesh.runtime.log import MAX_WAITING_BYTES, Log, LogFormat

BOUND_S = 60.0
MANY = 20_000
ALONE = """
settings: {f: 0, lease: 500ms, membership_period: 300ms}
nodes:
  n1: {place: [0m, 0m], address: "127.0.0.1:%d"}
devices:
  lamp: {place: [0m, 1m], readings: {on: bool}}
"""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for end in (reading, writing):
        try:
            os.close(end)
        except OSError:
            continue  # the test closed it


def read_to_end(reading: int) -> list[str]:
    with open(reading, "rb", closefd=False) as file:
        return file.read().decode().splitlines()


def test_lines_come_in_order_and_all_of_them_at_the_end(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    log = Log("n1", to=writing)
    log.say("one")
    log.warn("two")
    log.error("three")
    log.close(BOUND_S)
    os.close(writing)
    lines = read_to_end(reading)
    assert [line.split(" ", 1)[1] for line in lines] == ["n1: one", "n1: warning: two", "n1: error: three"]


@pytest.mark.parametrize("form", list(LogFormat))
@pytest.mark.parametrize("waits", [True, False])  # whoever shares the pipe may have said that writes do not
def test_a_pipe_that_nobody_reads_holds_nobody_up_and_what_was_dropped_is_told(
    pipe: tuple[int, int], form: LogFormat, waits: bool
) -> None:
    reading, writing = pipe
    os.set_blocking(writing, waits)
    log = Log("n1", form, to=writing)

    async def goes_on() -> None:
        for number in range(MANY):
            log.say(f"line {number}")
            if number % 100 == 0:
                await asyncio.sleep(0)

    asyncio.run(goes_on())
    assert log._waiting_bytes <= MAX_WAITING_BYTES
    with ThreadPoolExecutor(1) as reader:
        lines = reader.submit(read_to_end, reading)
        log.close(BOUND_S)
        os.close(writing)
        said = lines.result(BOUND_S)
    told = [json.loads(one)["what"] if form is LogFormat.JSON else one for one in said]
    next_number = dropped = 0
    for line in told:
        if found := re.search(r"(\d+) lines? of the log (was|were) dropped: nobody read them$", line):
            dropped += int(found[1])
            next_number += int(found[1])
        else:
            assert line.endswith(f"line {next_number}"), "in order, and how many are missing where they are"
            next_number += 1
    assert next_number == MANY
    assert dropped > 0


def test_a_reader_that_is_gone_is_nobody_elses_trouble(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.close(reading)
    log = Log("n1", to=writing)
    log.say("to nobody")
    log.close(BOUND_S)
    assert not log._lines


def test_a_node_whose_log_nobody_reads_answers_and_ends(pipe: tuple[int, int], tmp_path: Path) -> None:
    Authority.create(tmp_path / "keys").issue("n1").write(tmp_path / "keys", "n1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        (tmp_path / "mesh.yaml").write_text(ALONE % free.getsockname()[1])
    _, writing = pipe
    os.set_blocking(writing, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    os.set_blocking(writing, True)
    command = [
        sys.executable,
        "-m",
        "comesh",
        "node",
        "mesh.yaml",
        "--name",
        "n1",
        "--data",
        "data",
        "--init",
    ]
    with subprocess.Popen(
        [*command, "--keys", "keys"], cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=writing
    ) as process:
        try:
            ends = time.monotonic() + BOUND_S
            while not is_ready(tmp_path / "data"):
                assert process.poll() is None and time.monotonic() < ends
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            assert process.wait(BOUND_S) == 0
        finally:
            process.kill()


def is_ready(data: Path) -> bool:
    try:
        with Client(data, within_s=1.0) as client:
            return client.ask(ShowStatus()).ready
    except QueryError:
        return False

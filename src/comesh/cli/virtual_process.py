"""`comesh virtual FILE`: a process with the virtual devices of a document that are part of no node.

It stands for things outside of the mesh, such as bulbs on a radio. So nodes reach it by a plain socket: there
is no encryption, and whoever reaches the socket can do what a person in the room could. It listens on
loopback unless told otherwise. It prints `ready HOST:PORT` when it listens, and nodes and `DevicesClient`
take that address.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from comesh.cli.documents import DocumentFile, read_deployment
from comesh.cli.terminal import Exit, err, fail
from comesh.core.ids import DeviceId
from comesh.deployment.model import Deployment
from comesh.deployment.problems import did_you_mean
from comesh.drivers.interface import DeviceFailedError
from comesh.drivers.virtual.devices import Acted, Pressed
from comesh.drivers.virtual.server import DevicesServer, outside_devices
from comesh.drivers.virtual.wire import show_address, split_address
from comesh.runtime.recording import DeviceActed, DevicePressed, Recorder

WHO = "devices"
"""Name of the process in recordings."""


def be_devices(
    file: DocumentFile,
    *,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address to listen on; port 0 takes any free one.")
    ] = "127.0.0.1:0",
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record what the devices do to this file.")
    ] = None,
    only: Annotated[str, typer.Option(metavar="IDS", help="Only these devices, separated by commas.")] = "",
    seed: Annotated[
        int | None, typer.Option(min=0, help="Random seed of the readings.  [default: the document's seed]")
    ] = None,
    still: Annotated[bool, typer.Option("--still", help="The devices change nothing by themselves.")] = False,
    stand_in: Annotated[
        bool, typer.Option("--stand-in", help="Also stand in for devices whose driver is not built yet.")
    ] = False,
    end_with_stdin: Annotated[
        bool, typer.Option("--end-with-stdin", help="End when standard input ends.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print what the devices do.")] = False,
) -> None:
    """Run the virtual devices of a document."""
    deployment = read_deployment(file)
    chosen = _chosen(deployment, only, stand_in=stand_in)
    try:
        host, port = split_address(listen)
    except ValueError as wrong:
        fail(f"--listen: {wrong}")
    recorder = _recorder(record)

    def told(entry: Acted | Pressed) -> None:
        if recorder is not None:
            what = DeviceActed(entry) if isinstance(entry, Acted) else DevicePressed(entry)
            recorder.write(int(entry.at_ms * 1000), what)
        if not quiet:
            err.print(_line(entry), markup=False)

    try:
        server = DevicesServer(
            deployment,
            chosen,
            seed=deployment.settings.seed if seed is None else seed,
            now_ms=_now_ms,
            record=told,
            still=still,
        )
        asyncio.run(_serve(server, host, port, end_with_stdin=end_with_stdin))
    except DeviceFailedError as wrong:
        fail(str(wrong), Exit.NO)
    except OSError as wrong:
        fail(f"cannot listen at {listen}: {wrong.strerror or wrong}; choose another with --listen")
    finally:
        if recorder is not None:
            recorder.close()


async def _serve(server: DevicesServer, host: str, port: int, *, end_with_stdin: bool) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, over.set)
    try:
        address = await server.open(host, port)
        if end_with_stdin:
            _watch_stdin(lambda: loop.call_soon_threadsafe(over.set))
        typer.echo(f"ready {show_address(*address)}")
        await over.wait()
    finally:
        server.close()


def _watch_stdin(ended: Callable[[], object]) -> None:
    """Waits for the end of standard input in a thread: it may be a file, which an event loop cannot wait
    for."""

    def watch() -> None:
        try:
            while os.read(0, 4096):
                pass
            ended()
        except (OSError, RuntimeError):
            pass  # there is none, or the process ends already

    threading.Thread(target=watch, name="stdin", daemon=True).start()


def _chosen(deployment: Deployment, only: str, *, stand_in: bool) -> list[DeviceId]:
    outside = outside_devices(deployment, stand_in=stand_in)
    wanted = [DeviceId(name.strip()) for name in only.split(",") if name.strip()]
    for device in wanted:
        if device not in deployment.devices:
            fail(f"--only: no device {device}; {did_you_mean(device, deployment.devices)}".rstrip("; "))
        if device not in outside:
            why = "is part of a node" if deployment.devices[device].on else "is not virtual"
            fail(f"--only: {device} {why}")
    chosen = wanted or outside
    if not chosen:
        err.print("no virtual device of this document is outside of its nodes: there is nothing to be")
    return chosen


def _recorder(record: Path | None) -> Recorder | None:
    if record is None:
        return None
    try:
        return Recorder(record, WHO)
    except OSError as wrong:
        fail(f"{record} cannot be written ({wrong.strerror or wrong}); choose another place")


def _line(entry: Acted | Pressed) -> str:
    if isinstance(entry, Pressed):
        return f"{entry.device}: event {entry.values}" + (" dropped" if entry.dropped else "")
    outcome = f"refused: {entry.refused}" if entry.refused else f"now {entry.readings}"
    return f"{entry.device}: {entry.command.action} by {entry.command.by}, {outcome}"


def _now_ms() -> float:
    """Returns the time by the clock that all processes of this machine share, as recordings want it."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1_000_000

"""Runs a node until somebody wants it to end, or it has to. Exit codes are those of the commands."""

import asyncio
import ctypes
import gc
import os
import signal
import socket
import sys
from contextlib import closing, suppress
from importlib import import_module
from typing import Final, Protocol

from comesh.runtime.assembly import Assembly
from comesh.runtime.credentials import CredentialsError
from comesh.runtime.documents import DocumentError
from comesh.runtime.journal import JournalError
from comesh.runtime.local_mesh import end_with_stdin
from comesh.runtime.log import Log
from comesh.runtime.options import NodeOptions, from_text
from comesh.runtime.transport import TransportError
from comesh.runtime.trust import RevokedError

READY_LOOK_S: Final = 0.05
COLLECT_AFTER: Final = (10_000, 20, 20)
"""Objects more than before that have Python look for garbage in cycles: there is little of it here."""
WANTED, ENDED_ITSELF, COULD_NOT_RUN, REVOKED, BROKE = 0, 1, 2, 3, 70
"""A service manager starts it again after BROKE, and not after ENDED_ITSELF (another process has its name) or
REVOKED (its certificate counts no more)."""


class Api(Protocol):
    """What is asked over HTTP: a package of its own, which a node without it never loads."""

    async def open(self) -> None: ...
    async def close(self) -> None: ...


def load_api(options: NodeOptions) -> None:
    """What a node with an HTTP interface needs, so that many nodes can share it."""
    if options.api is not None:
        import_module("comesh.api.opening").load()


def run(text: str) -> int:
    """With options as `as_text` has them; the exit code."""
    options = from_text(text)
    try:
        with closing(Log(options.name, options.log)) as log:
            code = asyncio.run(_run(options, log))
    except RevokedError as wrong:
        sys.stderr.write(f"comesh: {options.name}: {wrong}\n")
        return REVOKED
    except (DocumentError, CredentialsError, JournalError, TransportError) as wrong:
        sys.stderr.write(f"comesh: {options.name}: {wrong}\n")
        return COULD_NOT_RUN
    except OSError as wrong:
        where = f"{wrong.filename}: " if wrong.filename else ""
        sys.stderr.write(f"comesh: {options.name}: {where}{wrong.strerror or wrong}\n")
        return COULD_NOT_RUN
    return code


async def _run(options: NodeOptions, log: Log) -> int:
    """The exit code."""
    assembly = Assembly(options, log)
    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, assembly.stopped.set)
    if options.end_with_stdin:
        end_with_stdin(lambda: loop.call_soon_threadsafe(assembly.stopped.set))
    api: Api | None = None if options.api is None else import_module("comesh.api.opening").api_of(assembly)
    await assembly.open()
    log.say(_greeting(assembly))
    if api is not None:
        await api.open()
    settle_memory()
    readiness = asyncio.create_task(_tell_service_manager(assembly))
    await assembly.stopped.wait()
    readiness.cancel()
    if api is not None:
        await api.close()
    await assembly.close()
    if assembly.host.broke:
        return BROKE
    if assembly.trust.is_revoked:
        return REVOKED
    return ENDED_ITSELF if assembly.why_stopped else WANTED


def _greeting(assembly: Assembly) -> str:
    """Who it is, where it listens, what it waits for."""
    deployment, options = assembly.deployment, assembly.options
    others = sorted(deployment.nodes.keys() - {options.name})
    waits = f"waits for the other {len(others)} nodes" if len(others) > 1 else f"waits for {''.join(others)}"
    return (
        f"{options.name} of {deployment.name or options.document.name}, data in {options.data}: "
        f"listens on UDP {', '.join(assembly.transport.listens)}; "
        + (f"{waits}, as far as its groups need them" if others else "it is alone")
    )


def settle_memory() -> None:
    """Reading the document and meeting the others took much that is not needed any more: give it back, and do
    not look through what stays for ever at each collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


async def _tell_service_manager(assembly: Assembly) -> None:
    """READY=1 for systemd, once the node takes part in the mesh."""
    while not assembly.house.was_ready:
        await asyncio.sleep(READY_LOOK_S)
    settle_memory()
    where = os.environ.get("NOTIFY_SOCKET")
    if where:
        address = "\0" + where[1:] if where.startswith("@") else where
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, suppress(OSError):
            manager.sendto(b"READY=1", address)

"""`comesh up`: runs a whole deployment as processes on this machine, until Ctrl-C.

A node that is killed is started again after a while, as a service manager would do. One that ended by itself
is not: it has said why. When this process ends, however it does, all of them end.

When the mesh runs by another document (`comesh apply`), nodes that it adds are started here, too, and the
process of the virtual devices is started anew if others are in it now.
"""

import signal
import time
from pathlib import Path
from threading import Thread
from typing import Annotated, Final

import typer

from comesh.api.opening import installed
from comesh.cli.documents import DocumentFile, read_deployment, read_text
from comesh.cli.nodes_here import RUNS
from comesh.cli.terminal import Exit, err, fail, number, out, plain
from comesh.cli.watch import words
from comesh.core.group.phases import Role
from comesh.deployment.load import load_bytes
from comesh.deployment.model import Deployment
from comesh.deployment.virtual import all_virtual
from comesh.queries.answers import ChainText, News, QueryError
from comesh.queries.requests import ListNodes, ShowChain, ShowStatus
from comesh.queries.trace_text import Telling
from comesh.runtime.client import Client
from comesh.runtime.documents import Chain
from comesh.runtime.local_mesh import DEVICES, LocalMesh, LocalMeshError

READY_S: Final = 60.0
LOOK_S: Final = 0.1
VERSION_S: Final = 1.0
"""Interval at which a newer version of the document is looked for."""
RESTART_S: Final = 5.0
"""Time until a killed node is restarted, so that the mesh is seen to go on without it."""


HANDOFF: Final = (Role.HANDING_OFF, Role.RETIRED)


def up(
    file: DocumentFile,
    *,
    data: Annotated[
        Path | None,
        typer.Option(help="Directory for the files of the mesh.  [default: .comesh/NAME, for NAME.yaml]"),
    ] = None,
    api: Annotated[
        bool, typer.Option("--api/--no-api", help="Give each node an HTTP interface, if that is installed.")
    ] = True,
    still: Annotated[
        bool,
        typer.Option("--still", help="Devices change nothing by themselves, only by `comesh virtual set`."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print what happens.")] = False,
) -> None:
    """Run every node of a document here, with virtual devices.

    Ctrl-C ends all of them.
    """
    deployment, text = with_virtual_devices(read_deployment(file), read_text(file))
    directory = data or RUNS / file.stem
    mesh = LocalMesh(directory, deployment, text, api=api and installed(), still=still)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: all nodes end in good order
    ready = False
    try:
        mesh.prepare()
        out.print(f"starting {number(len(mesh.nodes), 'node')}; files and logs: {directory}")
        if mesh.is_outdated:
            out.print(
                plain(f"the mesh goes by version {mesh.version} of its document: {file} is no longer used")
            )
        begin(mesh)
        took_s = wait_until_ready(mesh)
        ready = True
        where = "" if data is None else f" (each with --data {data})"
        out.print(
            f"ready after {took_s:.1f} s. From another terminal: comesh status, comesh devices, comesh fire "
            f"ROUTINE, comesh trace, comesh watch, comesh doctor{where}. Ctrl-C ends it."
        )
        out.print(f"virtual devices {_moods(still)}: comesh virtual set DEVICE READING=VALUE{where}")
        _tell_api(mesh)
        _look_after(mesh, quiet=quiet)
    except LocalMeshError as wrong:
        fail(str(wrong))
    except KeyboardInterrupt:
        err.print("ending all nodes in good order")
    finally:
        mesh.close()
    raise typer.Exit(int(Exit.OK if ready else Exit.INTERRUPTED))


def _moods(still: bool) -> str:
    return (
        "change only when told"
        if still
        else "change by themselves (--still: they do not), and also when told"
    )


def _tell_api(mesh: LocalMesh) -> None:
    if mesh.api_at:
        host, port = mesh.api_at[mesh.nodes[0]]
        out.print(
            f"HTTP interface of {mesh.nodes[0]}: http://{host}:{port}; of the others: see "
            f"{mesh.directory / 'api.json'}. For a token: comesh keys token ME --role operator "
            f"--keys {mesh.directory / 'keys'}"
        )


def with_virtual_devices(deployment: Deployment, text: str) -> tuple[Deployment, str]:
    """Returns what can run here: virtual devices stand in for those whose driver is not built, which is
    printed."""
    kinds = sorted({one.driver.type for one in deployment.devices.values()} - {"virtual"})
    if not kinds:
        return deployment, text
    count = sum(one.driver.type != "virtual" for one in deployment.devices.values())
    err.print(
        f"note: virtual devices stand in for {number(count, 'device')} with the "
        f"{'driver' if len(kinds) == 1 else 'drivers'} {', '.join(kinds)}: nothing real is read or switched"
    )
    made = all_virtual(text)
    outcome = load_bytes(made.encode(), "the document with virtual devices")
    if outcome.deployment is None:
        fail("\n".join(map(str, outcome.errors)))
    return outcome.deployment, made


def begin(mesh: LocalMesh) -> None:
    """Starts the devices and all nodes."""
    mesh.start_devices()
    for node in mesh.nodes:
        mesh.start(node)


def wait_until_ready(mesh: LocalMesh) -> float:
    """Waits until every node takes part. Returns how long that took."""
    began = time.monotonic()
    waiting = list(mesh.nodes)
    while waiting:
        for node in list(waiting):
            if is_ready(mesh, node):
                waiting.remove(node)
        ended = [name for name in (*mesh.nodes, DEVICES) if not mesh.runs(name)]
        if ended:
            raise LocalMeshError(f"{ended[0]} ended by itself: {mesh.last_words(ended[0], 1)}")
        if time.monotonic() - began > READY_S:
            raise LocalMeshError(
                f"{', '.join(waiting)} not ready after {READY_S:.0f} s; see {mesh.directory / 'logs'}"
            )
        time.sleep(LOOK_S)
    mesh.note_started(*mesh.nodes)
    return time.monotonic() - began


def is_ready(mesh: LocalMesh, node: str) -> bool:
    try:
        with Client(mesh.data_of(node), within_s=2.0) as client:
            return client.ask(ShowStatus()).ready
    except QueryError:
        return False


def _look_after(mesh: LocalMesh, *, quiet: bool) -> None:
    """Prints what happens, and restarts nodes that were killed; until Ctrl-C, or as long as anything runs."""
    if not quiet:
        Thread(target=_tell, args=(mesh,), daemon=True).start()
    due: dict[str, float] = {}
    given_up: set[str] = set()
    looked = time.monotonic()
    while set(mesh.nodes) - given_up:
        if time.monotonic() - looked > VERSION_S:
            looked = time.monotonic()
            _follow(mesh)
            given_up -= {name for name in given_up if mesh.runs(name)}
        for name in (*mesh.nodes, DEVICES):
            if name in given_up or mesh.runs(name):
                continue
            code = mesh.exit_code(name)
            if name in due:
                if time.monotonic() >= due[name]:
                    del due[name]
                    mesh.kill(name)  # it is gone already: this closes what is left of it
                    mesh.start_devices() if name == DEVICES else mesh.start(name)
            elif code is not None and code < 0:
                due[name] = time.monotonic() + RESTART_S
                err.print(f"{name} was killed (signal {-code}); it is started again in {RESTART_S:.0f} s")
            else:
                given_up.add(name)
                _follow(mesh)
                if name in (*mesh.nodes, DEVICES):
                    err.print(plain(f"{name} ended by itself: {mesh.last_words(name, 1)}", "red"))
        time.sleep(LOOK_S)
    raise LocalMeshError(f"no node runs any more; see {mesh.directory / 'logs'}")


def _follow(mesh: LocalMesh) -> None:
    """Brings the processes here in line with a newer version of the document."""
    chain = _newer_chain(mesh)
    if chain is None:
        return
    nodes, devices = set(mesh.nodes), mesh.deployment.devices
    mesh.take_chain(Chain.load(chain.chain, "the chain of a node"))
    out.print(f"version {chain.newest} of the document")
    for node in mesh.nodes:
        if node not in nodes:
            out.print(f"{node} is new: it is started")
            mesh.start(node)
    for node in sorted(nodes - set(mesh.nodes)):
        out.print(f"{node} leaves")
    if mesh.deployment.devices != devices:
        out.print("virtual devices are started anew, with what this version has: their readings begin again")
        mesh.terminate(DEVICES)
        mesh.start_devices()


def _newer_chain(mesh: LocalMesh) -> ChainText | None:
    for node in mesh.nodes:
        try:
            with Client(mesh.data_of(node), within_s=2.0) as client:
                if client.ask(ShowStatus()).version <= mesh.version:
                    return None
                return client.ask(ShowChain())
        except QueryError:
            continue
    return None


def _tell(mesh: LocalMesh) -> None:
    """Prints what happens, from any node that answers."""
    while True:
        for node in mesh.nodes:
            try:
                with Client(mesh.data_of(node)) as client:
                    telling = Telling(time_zone=client.ask(ListNodes()).time_zone)
                    for news in client.watch():
                        if isinstance(news, News) and is_told(news):
                            out.print(plain(words(news, telling)))
            except QueryError:
                continue
        time.sleep(LOOK_S)


def is_told(news: News) -> bool:
    """Says if an event is printed: a change of leader once, by the new leader, not also by all who leave
    their seats."""
    return news.kind != "leader" or news.what not in HANDOFF

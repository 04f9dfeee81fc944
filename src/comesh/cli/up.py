"""`comesh up`: a whole deployment as processes on this machine, until Ctrl-C."""

import time
from pathlib import Path
from typing import Annotated, Final

import typer

from comesh.cli.documents import DocumentFile, read_deployment
from comesh.cli.nodes_here import RUNS
from comesh.cli.terminal import Exit, err, fail, number, out, plain
from comesh.cli.watch import words
from comesh.runtime.client import Client, NoAnswerError
from comesh.runtime.local_mesh import DEVICES, LocalMesh, LocalMeshError
from comesh.runtime.view import News, NodeStatus

READY_S: Final = 60.0
LOOK_S: Final = 0.1


def up(
    file: DocumentFile,
    *,
    data: Annotated[
        Path | None, typer.Option(help="Where to keep its files; left out: .comesh/ and the document's name.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not tell what happens.")] = False,
) -> None:
    """Run every node of a document as a process here, with virtual devices. Ctrl-C ends all of them."""
    deployment = read_deployment(file)
    directory = data or RUNS / file.stem
    mesh = LocalMesh(directory, deployment, file.read_text())
    try:
        mesh.prepare()
        out.print(f"starting {number(len(mesh.nodes), 'node')} in {directory}")
        begin(mesh)
        took_s = wait_until_ready(mesh)
        out.print(
            f"ready after {took_s:.1f} s. From another terminal: comesh status, comesh fire, comesh trace, "
            "comesh watch. Ctrl-C ends it."
        )
        _tell(mesh, quiet=quiet)
    except LocalMeshError as wrong:
        fail(str(wrong))
    except KeyboardInterrupt:
        err.print("ending all nodes in good order")
    finally:
        mesh.close()
    raise typer.Exit(int(Exit.OK))


def begin(mesh: LocalMesh) -> None:
    """Start the devices and all nodes."""
    mesh.start_devices()
    for node in mesh.nodes:
        mesh.start(node)


def wait_until_ready(mesh: LocalMesh) -> float:
    """Until every node takes part; how long it took."""
    began = time.monotonic()
    waiting = list(mesh.nodes)
    while waiting:
        for node in list(waiting):
            if is_ready(mesh, node):
                waiting.remove(node)
        ended = [name for name in (*mesh.nodes, DEVICES) if not mesh.runs(name)]
        if ended:
            raise LocalMeshError(f"{ended[0]} ended by itself: {mesh.last_words(ended[0])}")
        if time.monotonic() - began > READY_S:
            raise LocalMeshError(
                f"{', '.join(waiting)} not ready after {READY_S:.0f} s; see {mesh.directory / 'logs'}"
            )
        time.sleep(LOOK_S)
    return time.monotonic() - began


def is_ready(mesh: LocalMesh, node: str) -> bool:
    try:
        with Client(mesh.data_of(node), within_s=2.0) as client:
            return client.ask(NodeStatus, "status").ready
    except NoAnswerError:
        return False


def _tell(mesh: LocalMesh, *, quiet: bool) -> None:
    """What happens, from whichever node still answers."""
    while True:
        for node in mesh.nodes:
            try:
                with Client(mesh.data_of(node)) as client:
                    for news in client.watch(News):
                        if not quiet:
                            out.print(plain(words(news)))
            except NoAnswerError:
                continue
        time.sleep(LOOK_S)

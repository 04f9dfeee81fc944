"""Lock and release between real nodes: k=3, encrypted, strict, on tmpfs."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from comesh.deployment.load import load_bytes
from comesh.deployment.program import program_of
from comesh.runtime.local_mesh import LocalMesh
from comesh.runtime.options import as_text
from peers.results import Result, result
from processes.documents import locks_document

CLIENT = Path(__file__).parent / "lock_client.py"


@contextmanager
def mesh_of(text: str) -> Iterator[LocalMesh]:
    """The processes of a document, on tmpfs where there is one."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as directory:
        outcome = load_bytes(text.encode())
        assert outcome.deployment is not None, outcome.errors
        mesh = LocalMesh(Path(directory), outcome.deployment, text)
        mesh.prepare()
        try:
            yield mesh
        finally:
            mesh.close()


def measure(count: int, at_once: int) -> Result:
    text = locks_document(max(at_once, 8))
    with mesh_of(text) as mesh:
        genesis = program_of(mesh.deployment).plan.genesis
        leader = genesis[next(group for group in genesis if group != "deployment")][0]
        client = next(node for node in mesh.nodes if node != leader)
        mesh.start_devices(["--still", "--quiet"])
        for node in mesh.nodes:
            if node != client:
                mesh.start(node)
        options = mesh.options(client, initialise=True, end_with_stdin=False)
        run = subprocess.run(
            [sys.executable, str(CLIENT), as_text(options), leader, str(count), str(at_once)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if run.returncode:
            raise RuntimeError(run.stderr[-2000:])
        told = json.loads(run.stdout)
    name = "CoMesh, lock + release" + (f", {at_once} at once" if at_once > 1 else "")
    return result(name, "ms", told["times_ms"], told["took_s"])


if __name__ == "__main__":
    for at_once in (1, 32):
        print(measure(2000, at_once))

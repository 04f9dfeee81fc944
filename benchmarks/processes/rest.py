"""Eleven nodes of the demo's office at rest: how soon ready, how much memory and processor each takes."""

import os
import time
from pathlib import Path
from typing import NamedTuple

from comesh.cli.up import begin, wait_until_ready
from comesh.runtime.local_mesh import LocalMesh
from processes.locks import mesh_of

OFFICE = Path(__file__).parent.parent.parent / "src" / "comesh" / "cli" / "office.yaml"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Rest(NamedTuple):
    ready_s: float
    max_memory_mib: float
    mean_cpu_percent: float
    max_cpu_percent: float


def usage(mesh: LocalMesh) -> dict[str, tuple[float, float]]:
    """Seconds of processor, and MiB that are resident."""
    usage: dict[str, tuple[float, float]] = {}
    for node in mesh.nodes:
        process = Path(f"/proc/{mesh.pid(node)}")
        fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
        cpu_s = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
        usage[node] = (cpu_s, int((process / "statm").read_text().split()[1]) * _PAGE_BYTES / 2**20)
    return usage


def measure(seconds: float) -> Rest:
    with mesh_of(OFFICE.read_text()) as mesh:
        began = time.monotonic()
        begin(mesh)
        wait_until_ready(mesh)
        ready_s = time.monotonic() - began
        time.sleep(5.0)
        before, at = usage(mesh), time.monotonic()
        time.sleep(seconds)
        after, took_s = usage(mesh), time.monotonic() - at
        percents = [100 * (after[node][0] - before[node][0]) / took_s for node in mesh.nodes]
        memory_mib = max(mib for _, mib in after.values())
        return Rest(ready_s, memory_mib, sum(percents) / len(percents), max(percents))


if __name__ == "__main__":
    print(measure(60.0))

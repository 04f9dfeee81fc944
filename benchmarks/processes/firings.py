"""A firing of five devices: from the press of a button to the last of five commands, between real nodes.

The devices run in this process, which so knows when a button was pressed and when each lamp acted. A press
comes when the last run of its routine is over: one button for the time of a firing, twenty for as many as go
through.
"""

import asyncio
import time

from comesh.core.ids import DeviceId
from comesh.drivers.virtual.devices import Acted, Pressed
from comesh.runtime.local_mesh import LocalMesh
from peers.results import Result, result
from processes.documents import firing_document
from processes.locks import mesh_of
from processes.ready import devices_of, until_ready

REST_S = 0.003
"""From the last act to the next press: the run ends and gives its locks back meanwhile."""


class Pressing:
    """Presses buttons and notes how long the lamps took."""

    def __init__(self, mesh: LocalMesh, buttons: int) -> None:
        assert mesh.devices_at is not None
        self.times_ms: list[float] = []
        self.counting = False
        self._buttons = buttons
        self._pressed_ms: dict[int, float] = {}
        self._left: dict[int, int] = {}
        """Lamps that have not acted yet."""
        self._over = False
        self._server = devices_of(mesh, self._on_entry)

    async def open(self, host: str, port: int) -> None:
        await self._server.open(host, port)

    def close(self) -> None:
        self._over = True
        self._server.close()

    def begin(self) -> None:
        for button in range(self._buttons):
            self._press(button)

    def _press(self, button: int) -> None:
        if not self._over:
            self._left[button] = 5
            self._pressed_ms[button] = 1000 * time.perf_counter()
            self._server.device(DeviceId(f"b{button}")).press({"press": "single"})

    def _on_entry(self, entry: Acted | Pressed) -> None:
        if not isinstance(entry, Acted):
            return
        button = int(entry.device[1:].split("_")[0])
        self._left[button] -= 1
        if self._left[button]:
            return
        began_ms = self._pressed_ms.pop(button, None)
        if began_ms is not None and self.counting:
            self.times_ms.append(1000 * time.perf_counter() - began_ms)
        asyncio.get_running_loop().call_later(REST_S, self._press, button)


async def press(mesh: LocalMesh, buttons: int, seconds: float) -> Pressing:
    pressing = Pressing(mesh, buttons)
    assert mesh.devices_at is not None
    await pressing.open(*mesh.devices_at)
    await until_ready(mesh)
    pressing.begin()
    await asyncio.sleep(3.0)
    pressing.counting = True
    await asyncio.sleep(seconds)
    pressing.close()
    return pressing


def measure(buttons: int, seconds: float = 10.0, *, clusters: int = 1, together: bool = False) -> Result:
    text = firing_document(buttons, clusters=clusters, together=together)
    with mesh_of(text) as mesh:
        pressing = asyncio.run(press(mesh, buttons, seconds))
    at_once = f", {buttons} at once" if buttons > 1 else ""
    where = "one cluster" if clusters == 1 else f"{clusters} clusters"
    how = "in parallel" if together else "one after the other"
    return result(
        f"CoMesh, firing of five devices in {where}, {how}{at_once}",
        "ms",
        pressing.times_ms,
        seconds,
    )


if __name__ == "__main__":
    for together in (True, False):
        print(measure(1, together=together))
        print(measure(20, together=together))
    print(measure(1, clusters=5))

"""docs/drivers.md: its examples run, and its tables are whole."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from device_texts import house, now_ms

from comesh.cli.virtual_process import be_devices
from comesh.core.actions import Action
from comesh.drivers.interface import DeviceCommand, DeviceFailedError, Driver
from comesh.drivers.virtual.options import _OPTIONS
from comesh.drivers.virtual.server import DevicesServer, outside_devices

TEXT = (Path(__file__).parents[2] / "docs" / "drivers.md").read_text()


def example(containing: str) -> dict[str, Any]:
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if containing in block]
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def test_the_file_driver_works(tmp_path: Path) -> None:
    file = tmp_path / "lamp.json"

    async def scene() -> None:
        driver: Driver = example("class FileDriver")["FileDriver"](file)
        await driver.open()
        with pytest.raises(DeviceFailedError, match="is it there"):
            await driver.read()
        file.write_text('{"on": false}')
        assert await driver.read() == {"on": False}
        assert await driver.command(DeviceCommand(Action("set", True))) == {"on": True}
        assert await driver.read() == {"on": True}
        with pytest.raises(DeviceFailedError, match="use set"):
            await driver.command(DeviceCommand(Action("dance")))
        await driver.close()

    asyncio.run(scene())


def test_the_example_of_misbehaving_works() -> None:
    async def scene() -> None:
        deployment = house()
        chosen = outside_devices(deployment, stand_in=False)
        server = DevicesServer(deployment, chosen, seed=1, now_ms=now_ms, still=True)
        host, port = await server.open("127.0.0.1", 0)
        await example("async def trouble")["trouble"](f"{host}:{port}")
        assert server.device(chosen[1]).readings() == {"open": True}
        server.close()

    asyncio.run(scene())


def test_every_option_is_documented() -> None:
    for option in _OPTIONS:
        assert f"| `{option}` |" in TEXT
    for parameter in be_devices.__kwdefaults__ or {}:
        assert f"--{parameter.replace('_', '-')}" in TEXT

"""Small documents and helpers that tests of drivers share."""

import asyncio
import time
from collections.abc import Callable

from comesh.core.ids import DeviceId
from comesh.deployment.load import load_bytes
from comesh.deployment.model import Deployment

HOUSE = """
name: House
nodes:
  n1: {place: [0m, 0m, 0m]}
  n2: {place: [10m, 0m, 0m]}
  n3: {place: [20m, 0m, 0m]}
devices:
  lamp:
    place: [1m, 0m, 0m]
    readings: {on: bool}
    commands:
      set: {argument: bool, sets: on}
      flip: {toggles: on}
      slowly: {argument: bool, sets: on, takes: 50ms}
  door:
    place: [9m, 0m, 0m]
    readings: {open: bool}
  button:
    place: [19m, 0m, 0m]
    event: true
    readings: {press: [single, double]}
  heater:
    on: n2
    readings: {celsius: {type: float, range: [0, 40]}}
    commands: {heat: {argument: {type: float, range: [0, 40]}, sets: celsius}}
  bell:
    on: n3
    event: true
    readings: {rung: bool}
routines:
  press:
    on_event: button.press
    do: [{device: lamp, command: set, argument: true}]
  ring:
    on_event: bell.rung
    do: [{device: heater, command: heat, argument: 20.0}]
"""

LAMP, DOOR, BUTTON = DeviceId("lamp"), DeviceId("door"), DeviceId("button")
HEATER, BELL = DeviceId("heater"), DeviceId("bell")


def house(text: str = HOUSE) -> Deployment:
    outcome = load_bytes(text.encode())
    assert outcome.deployment is not None, outcome.problems
    return outcome.deployment


def now_ms() -> float:
    return time.monotonic_ns() / 1_000_000


async def until(condition: Callable[[], object], within_s: float = 20.0) -> None:
    """Wait for a condition, with a timeout so that a failing test ends."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        await asyncio.sleep(0.005)

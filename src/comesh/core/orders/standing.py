"""Orders that stand: what devices and routines look up before they act."""

from typing import Final

from comesh.core.group.serving import Serving
from comesh.core.ids import DeviceId, RoutineId
from comesh.core.program import Program
from comesh.core.records import Kind, Standing, standing_key
from comesh.core.stamps import RunId

ALL: Final = ""
BY_HAND: Final = "set."
"""Prefix of the routines of commands by hand, followed by the device. No document can have a routine of that
name."""


def standing(serving: Serving, kind: Kind, of: str) -> Standing | None:
    return serving.get(standing_key(kind, of), Standing)


def paused(serving: Serving, routine: RoutineId) -> Standing | None:
    """Why a routine does not fire, if it is paused or all of its group are."""
    return standing(serving, Kind.PAUSED, ALL) or standing(serving, Kind.PAUSED, routine)


def maintained(serving: Serving, device: DeviceId) -> Standing | None:
    return standing(serving, Kind.MAINTAINED, device)


def by_hand(device: DeviceId) -> RoutineId:
    return RoutineId(BY_HAND + device)


def longest_command_ms(program: Program, device: DeviceId) -> float:
    """Returns the maximum time that a command to a device takes, by a routine or by hand."""
    known = program.devices.get(device)
    return max(program.longest_ms.get(device, 0.0), 0.0 if known is None else known.by_hand_ms)


def is_by_hand(run: RunId) -> bool:
    return run.routine.startswith(BY_HAND)

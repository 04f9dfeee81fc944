"""`comesh virtual FILE`: runs virtual devices as a process; `comesh virtual set` and `press` act as a person
in the room would."""

from typing import Any

from comesh.cli.help import CommandGroup, group
from comesh.cli.virtual_hands import press, set_readings
from comesh.cli.virtual_process import be_devices

BE = "run"
"""Command that is meant where none is named: `comesh virtual FILE`."""


class _FirstIsCommandOrFile(CommandGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = not args or args[0] == "--help" or args[0] in self.commands
        return super().parse_args(ctx, args if named else [BE, *args])


virtual = group(
    "virtual",
    "Run virtual devices, or change what they read.\n\n"
    "`comesh virtual FILE` is short for `comesh virtual run FILE`.",
    {BE: be_devices, "set": set_readings, "press": press},
    cls=_FirstIsCommandOrFile,
)

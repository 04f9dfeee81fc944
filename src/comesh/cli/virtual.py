"""`comesh virtual FILE`: virtual devices as a process; `comesh virtual set` and `press`: what a person in the
room could do to them."""

from typing import Any

import typer
from typer.core import TyperGroup

from comesh.cli.virtual_hands import press, set_readings
from comesh.cli.virtual_process import be_devices

BE = "run"
"""The command that is meant where none is named: `comesh virtual FILE`."""


class _FirstIsCommandOrFile(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = not args or args[0] == "--help" or args[0] in self.commands
        return super().parse_args(ctx, args if named else [BE, *args])


virtual = typer.Typer(
    name="virtual",
    cls=_FirstIsCommandOrFile,
    help="Be the virtual devices of a document (comesh virtual FILE), or have one read something.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
virtual.command(BE)(be_devices)
virtual.command("set")(set_readings)
virtual.command("press")(press)

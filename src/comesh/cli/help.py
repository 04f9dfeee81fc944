"""Prints help: names that read well, options in sections, one line per command that is never cut.

A command's docstring is its help. The first line is its summary, one short sentence; the rest explains.
Options with a `rich_help_panel` get a section of that name.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

MAX_SUMMARY: Final = 62
"""Maximum characters of a command's summary: what fits beside the longest name in 80 columns."""

_TYPE_NAMES: Final = {
    "int": "N",
    "int range": "N",
    "float": "NUMBER",
    "float range": "NUMBER",
    "str": "TEXT",
    "path": "PATH",
    "file": "FILE",
    "directory": "DIR",
}
_TYPE: Final = re.compile(r"<(?:list\[)?([^<>\[\]]+)\]?>")
_BOTH_BOUNDS: Final = re.compile(r"([\d.]+)<=x<=([\d.]+)")
_LOWER_BOUND: Final = re.compile(r"x>=([\d.]+)")


class HelpfulCommand(TyperCommand):
    """A command whose usage and help name things as a manual does: `FILE`, `[NODE]`, `GROUP...`."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", *_arguments(self, ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_sections(self, ctx, formatter)

    def get_short_help_str(self, limit: int = MAX_SUMMARY) -> str:
        return summary(self.help)


class CommandGroup(TyperGroup):
    """A command that has commands of its own."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["COMMAND"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        _write_sections(self, ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        self.write_commands("Commands", self.list_commands(ctx), ctx, formatter)

    def write_commands(self, title: str, names: Iterable[str], ctx: Any, formatter: Any) -> None:
        """Writes one section of commands; all sections have the same columns."""
        width = max(map(len, self.list_commands(ctx)))
        commands: list[tuple[str, Any]] = [(name, self.get_command(ctx, name)) for name in names]
        with formatter.section(title):
            formatter.write_dl([(name.ljust(width), summary(command.help)) for name, command in commands])

    def get_short_help_str(self, limit: int = MAX_SUMMARY) -> str:
        return summary(self.help)


def summary(text: str | None) -> str:
    """Returns the first line of a help text."""
    return (text or "").strip().partition("\n")[0]


def group(
    name: str,
    text: str,
    commands: Mapping[str, Callable[..., None]],
    *,
    cls: type[CommandGroup] = CommandGroup,
) -> typer.Typer:
    """Makes a command of this name that has these commands."""
    made = typer.Typer(
        name=name,
        cls=cls,
        help=text,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for each, function in commands.items():
        made.command(each, cls=HelpfulCommand)(function)
    return made


def _arguments(command: Any, ctx: Any) -> list[str]:
    return [_usage(param) for param in command.get_params(ctx) if param.param_type_name == "argument"]


def _usage(argument: Any) -> str:
    name = _name(argument)
    return name if argument.required else f"[{name}]"


def _name(argument: Any) -> str:
    name: str = argument.metavar or argument.name.upper()
    return name if argument.nargs == 1 else f"{name}..."


def _write_sections(command: Any, ctx: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is not None:
            sections.setdefault(_section(param), []).append(_readable(param, *record))
    for title, rows in sections.items():
        with formatter.section(title):
            formatter.write_dl(rows)


def _section(param: Any) -> str:
    plain = "Arguments" if param.param_type_name == "argument" else "Options"
    return getattr(param, "rich_help_panel", None) or plain


def _readable(param: Any, name: str, text: str) -> tuple[str, str]:
    if param.param_type_name == "argument":
        return _usage(param), text.removesuffix("[required]").rstrip()
    text = _BOTH_BOUNDS.sub(r"\1 to \2", text)
    text = _LOWER_BOUND.sub(r"\1 or more", text)
    return _TYPE.sub(lambda found: _TYPE_NAMES.get(found[1], found[1]), name), text

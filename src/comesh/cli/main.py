"""The entry point: `comesh COMMAND`.

A command is the function of the same name in the module of the same name, imported when it is called:
a small computer should not load the simulator to check a document.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

import typer
from typer.main import get_command

from comesh import __version__
from comesh.cli.help import CommandGroup, HelpfulCommand
from comesh.cli.terminal import Exit, drop_output, err, fail, out
from comesh.deployment.problems import did_you_mean

PANELS: Final = {
    "Write a document": ("new", "validate", "plan", "schema"),
    "Run a mesh": ("demo", "up", "node", "virtual"),
    "Look at it": (
        "status",
        "nodes",
        "groups",
        "devices",
        "routines",
        "runs",
        "trace",
        "watch",
        "audit",
        "doctor",
    ),
    "Operate it": ("fire", "set", "pause", "resume", "maintain", "unlock"),
    "Change it": ("apply", "versions", "leave", "recover"),
    "Machines and keys": ("keys", "join", "service"),
    "Research": ("sim", "fuzz", "lab", "availability", "reproduce"),
}
"""The commands of each section of `comesh --help`."""
COMMANDS: Final = tuple(name for names in PANELS.values() for name in names)

FIRST_STEPS: Final = """\
CoMesh: a control plane for edge meshes with no hub and no cloud.

  comesh demo                 Watch an office of 11 nodes go on while it breaks.
  comesh new floor.yaml       Write a first document to build on.
  comesh validate floor.yaml  Check it: every mistake with its line and a fix.
  comesh up floor.yaml        Run all its nodes here, with virtual devices.
  comesh status               In another terminal: see how the mesh is.

All commands: comesh --help. One of them: comesh COMMAND --help.
"""

OTHERWISE_CALLED = {"set": "set_device"}
"""Commands whose names Python uses for something else."""


@contextmanager
def _ending_well_if_cut_short() -> Iterator[None]:
    """Ends with 0 when a closed pipe cuts the output (`comesh plan FILE | head -1`): click would end with
    1."""
    try:
        yield
    except BrokenPipeError:
        drop_output()
        raise typer.Exit(int(Exit.OK)) from None
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            drop_output()


@contextmanager
def _in_plain_words() -> Iterator[None]:
    """Rewrites an error about an option without the words of the library that found it."""
    try:
        yield
    except typer.BadParameter as wrong:
        wrong.message = wrong.message.removeprefix("Value error, ")
        raise


class Commands(CommandGroup):
    """Finds commands by their names. (Contexts and commands are of types that typer keeps to itself.)"""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        name = OTHERWISE_CALLED.get(cmd_name, cmd_name)
        try:
            found = getattr(import_module(f"comesh.cli.{name}"), name)
        except ModuleNotFoundError as missing:
            if missing.name != "numpy":
                raise
            return _without_simulator(cmd_name)
        if isinstance(found, typer.Typer):  # a command with sub-commands
            return get_command(found)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        alone.command(cmd_name, cls=HelpfulCommand)(found)
        return get_command(alone)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, names in PANELS.items():
            self.write_commands(title, names, ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not (ctx.resilient_parsing or args[0] in COMMANDS):
            ctx.fail(f"No such command {args[0]!r}; {did_you_mean(args[0], COMMANDS)}".rstrip("; "))
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _ending_well_if_cut_short(), _in_plain_words():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _ending_well_if_cut_short(), _in_plain_words():
            return super().invoke(ctx)


def _without_simulator(name: str) -> Any:
    """What stands for a command whose libraries are not installed, whatever its options."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}

    @alone.command(name, context_settings=anything, help="Needs: pip install 'comesh[sim]'.")
    def missing() -> None:
        fail(f"comesh {name} simulates or judges meshes, which needs numpy: pip install 'comesh[sim]'")

    return get_command(alone)


app = typer.Typer(
    name="comesh",
    cls=Commands,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"comesh {__version__}")
        raise typer.Exit(int(Exit.OK))


@app.callback()
def _root(
    ctx: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """A control plane for edge meshes with no hub and no cloud."""
    if ctx.invoked_subcommand is None:
        out.print(FIRST_STEPS, end="")


def main() -> None:
    try:
        app()
    except KeyboardInterrupt:
        err.print("stopped")
        raise SystemExit(int(Exit.INTERRUPTED)) from None

"""The entry point: `comesh COMMAND`."""

import typer

from comesh import __version__
from comesh.cli.demo import demo
from comesh.cli.fuzz import fuzz
from comesh.cli.new import new
from comesh.cli.plan import plan
from comesh.cli.schema import schema
from comesh.cli.sim import sim
from comesh.cli.terminal import Exit, err, out
from comesh.cli.validate import validate

app = typer.Typer(
    name="comesh",
    help="A control plane for edge meshes with no hub and no cloud.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"comesh {__version__}")
        raise typer.Exit(int(Exit.OK))


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """A control plane for edge meshes with no hub and no cloud."""


app.command("demo")(demo)
app.command("new")(new)
app.command("validate")(validate)
app.command("schema")(schema)
app.command("plan")(plan)
app.command("fuzz")(fuzz)
app.command("sim")(sim)


def main() -> None:
    try:
        app()
    except KeyboardInterrupt:
        err.print("stopped")
        raise SystemExit(int(Exit.INTERRUPTED)) from None
    except BrokenPipeError:
        raise SystemExit(int(Exit.OK)) from None

"""`comesh new FILE`: writes a first deployment document, with comments."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from comesh.cli.terminal import fail, out


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.", show_default=False)],
) -> None:
    """Write a first deployment document to build on."""
    text = files("comesh.deployment").joinpath("starter.yaml").read_text(encoding="utf-8")
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        fail(f"{file} exists already and is left as it is; choose another name")
    except (OSError, ValueError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) and wrong.strerror else "not a file name"
        fail(f"{file} cannot be written ({reason}); choose another place")
    out.print(f"wrote {file}", markup=False)
    out.print("next: put in your own nodes, devices and routines, then check them with", markup=False)
    out.print(f"  comesh validate {file}", markup=False)

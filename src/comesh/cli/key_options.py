"""Options that the commands of `comesh keys` share."""

from pathlib import Path
from typing import Annotated, Final

import typer

DEFAULT_DIRECTORY: Final = Path("keys")
Keys = Annotated[Path, typer.Option("--keys", metavar="DIR", help="Directory with the keys.")]
Days = Annotated[int, typer.Option("--days", help="Days of validity.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


def keys_option(directory: Path) -> str:
    return "" if directory == DEFAULT_DIRECTORY else f" --keys {directory}"

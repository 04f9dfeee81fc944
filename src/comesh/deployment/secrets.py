"""What secrets are: looked up by name at the moment a driver connects, never kept, never shown.

A secret is the environment variable of its name; or else an entry of the secrets file, which is
`secrets.yaml` next to the document, or the file that COMESH_SECRETS names.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comesh.deployment.tree import SecretName, UnreadableError, grow

SECRETS_FILE = "secrets.yaml"
SECRETS_VARIABLE = "COMESH_SECRETS"


class SecretError(ValueError):
    """A secret that cannot be had; says which one and where it was looked for, never what it is."""


class Secrets:
    """The secrets that this machine has for a document."""

    def __init__(self, document: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment
        named = environment.get(SECRETS_VARIABLE)
        self._file = Path(named) if named else document.parent / SECRETS_FILE
        self._must_exist = named is not None

    def resolve(self, options: Any) -> Any:
        """Driver options with every `!secret NAME` replaced by what it stands for. Raises SecretError."""
        match options:
            case dict():
                return {key: self.resolve(inner) for key, inner in options.items()}
            case list():
                return [self.resolve(inner) for inner in options]
            case SecretName():
                return self._find(options.name)
            case _:
                return options

    def _find(self, name: str) -> str:
        if name in self._environment:
            return self._environment[name]
        found = self._read().get(name)
        if found is None:
            raise SecretError(
                f"the secret {name} is neither in the environment nor in {self._file}; set it in one"
            )
        return found

    def _read(self) -> dict[str, str]:
        try:
            data = self._file.read_bytes()
        except FileNotFoundError:
            if self._must_exist:
                raise SecretError(f"{SECRETS_VARIABLE} names {self._file}, which does not exist") from None
            return {}
        except OSError as wrong:
            raise SecretError(f"{self._file} cannot be read ({wrong.strerror})") from None
        try:
            root = grow(data, len(data)).root
        except UnreadableError as wrong:
            line = f" line {wrong.position.line}" if wrong.position else ""
            raise SecretError(f"{self._file}{line} is not YAML; write one NAME: value per line") from None
        entries = root.value if root is not None else {}
        if not isinstance(entries, dict):
            raise SecretError(f"{self._file} is not a mapping; write one NAME: value per line")
        return {name: _text(name, node.value, self._file) for name, node in entries.items()}


def _text(name: str, value: object, file: Path) -> str:
    if not isinstance(value, str):
        raise SecretError(f"{file}: {name} is not a text; put it in quotes")
    return value

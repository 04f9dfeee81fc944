"""Secrets never stand in the document: it names them, and only a driver ever sees what they are."""

import re
from collections.abc import Iterator

from comesh.deployment.problems import Path, WrongError, quote
from comesh.deployment.tree import SecretName

_SECRET_WORDS = frozenset(
    {"password", "passwd", "passphrase", "token", "secret", "key", "apikey", "pin", "psk"}
)
_URL_WITH_PASSWORD = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/@\s]*:[^/@\s]+@")


def literal_secrets(options: object, path: Path = ()) -> Iterator[tuple[Path, WrongError]]:
    """Where driver options hold what looks like a secret in the open."""
    match options:
        case dict():
            for name, inner in options.items():
                yield from literal_secrets(inner, (*path, str(name)))
        case list():
            for index, inner in enumerate(options):
                yield from literal_secrets(inner, (*path, index))
        case str() if _URL_WITH_PASSWORD.match(options):
            advice = "give user and password as options of their own, the password as !secret NAME"
            yield path, WrongError("a password does not belong in an address", advice)
        case str() | int() | float() if not isinstance(options, bool):
            key = next((step for step in reversed(path) if isinstance(step, str)), "")
            if re.split(r"[_\-. ]", key.lower())[-1] in _SECRET_WORDS:
                advice = f"write {key}: !secret NAME, and set NAME in the environment or in secrets.yaml"
                yield path, WrongError(f"{quote(key)} looks like a secret in the open", advice)
        case _:
            return


def secret_names(options: object) -> frozenset[str]:
    """The names of all secrets that driver options use."""
    match options:
        case dict():
            return frozenset().union(*(secret_names(inner) for inner in options.values()))
        case list():
            return frozenset().union(*(secret_names(inner) for inner in options))
        case SecretName():
            return frozenset({options.name})
        case _:
            return frozenset()

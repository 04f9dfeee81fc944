"""Secrets never stand in the document: it names them, and only a driver ever sees what they are."""

import re

from comesh.deployment.problems import WrongError, quote
from comesh.deployment.tree import SecretName

_SECRET_WORDS = frozenset(
    {"password", "passwd", "passphrase", "token", "secret", "key", "apikey", "pin", "psk"}
)
_URL_WITH_PASSWORD = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*://[^/@\s]*:[^/@\s]+@")


def refuse_literal_secrets(options: object, key: str = "") -> None:
    """Raise WrongError where driver options hold what looks like a secret in the open."""
    match options:
        case dict():
            for name, inner in options.items():
                refuse_literal_secrets(inner, str(name))
        case list():
            for inner in options:
                refuse_literal_secrets(inner, key)
        case str() | int() | float() if not isinstance(options, bool):
            if isinstance(options, str) and _URL_WITH_PASSWORD.match(options):
                raise WrongError(
                    "a password does not belong in an address", "use separate options and !secret NAME"
                )
            words = re.split(r"[_\-. ]", key.lower())
            if words[-1] in _SECRET_WORDS:
                advice = f"write {key}: !secret NAME and set NAME in the environment or in secrets.yaml"
                raise WrongError(f"{quote(key)} looks like a secret in the open", advice)
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

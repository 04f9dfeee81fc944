"""The document that a node began with, kept in its data directory: later ones come from the mesh.

What a file says after that is not what the mesh runs by: a changed file is told, and does nothing.
"""

from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

from comesh.core.ids import NodeId
from comesh.deployment.load import load_bytes
from comesh.deployment.model import Deployment
from comesh.deployment.problems import did_you_mean
from comesh.runtime.log import Log

FIRST_DOCUMENT: Final = "deployment-1.yaml"
OWNER: Final = "node"
"""The file that says whose a data directory is."""


class DocumentError(Exception):
    """There is no document that this node could run by; str() says what is wrong, line by line."""


def make_data_directory(data: Path) -> None:
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as wrong:
        raise DocumentError(
            f"{data} cannot be the data directory ({wrong.strerror or wrong}): "
            "choose one that this user can write to with --data"
        ) from wrong


def claim_data_directory(data: Path, name: NodeId) -> None:
    """A journal holds what one node promised; another node must not go on with it."""
    whose = data / OWNER
    try:
        if whose.is_file():
            owner = whose.read_text().strip()
            if owner != name:
                raise DocumentError(
                    f"{data} is the data directory of {owner}, not of {name}: give {name} one of its own "
                    "with --data"
                )
        else:
            whose.write_text(f"{name}\n")
    except OSError as wrong:
        raise DocumentError(f"{whose} cannot be used ({wrong.strerror or wrong})") from wrong


def digest(deployment: Deployment) -> str:
    """The same for documents that mean the same, whatever their comments."""
    meaning = msgspec.json.encode(deployment.model_dump(), enc_hook=str, order="sorted")
    return blake2b(meaning, digest_size=8).hexdigest()


def first_document(file: Path, data: Path, name: NodeId, log: Log) -> tuple[str, Deployment]:
    """The text and the meaning of deployment version 1."""
    kept = data / FIRST_DOCUMENT
    given = _read(file) if file.is_file() or not kept.is_file() else None
    if kept.is_file():
        text = _read(kept)
        if given is not None and given != text:
            log.warn(
                f"{file} is not what this node began with, which is {kept}: the file is not used. A mesh "
                "that runs goes on with the document that it has"
            )
    else:
        text = given or ""
    deployment = parsed(text, str(kept if kept.is_file() else file))
    if name not in deployment.nodes:
        hint = did_you_mean(name, deployment.nodes)
        raise DocumentError(f"{file}: there is no node {name!r}" + (f"; {hint}" if hint else ""))
    if not kept.is_file():
        try:
            kept.write_text(text)
        except OSError as wrong:
            raise DocumentError(
                f"{kept} cannot be written ({wrong.strerror or wrong}): make room, let this user write to "
                f"{data}, or choose another place with --data"
            ) from wrong
    return text, deployment


def parsed(text: str, file: str) -> Deployment:
    outcome = load_bytes(text.encode("utf-8", "surrogatepass"), file)
    if outcome.deployment is None:
        raise DocumentError("\n".join(map(str, outcome.errors)))
    return outcome.deployment


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as wrong:
        raise DocumentError(f"{file} cannot be read ({wrong.strerror or wrong})") from wrong
    except UnicodeDecodeError as wrong:
        raise DocumentError(f"{file} cannot be read: it is not UTF-8 text") from wrong

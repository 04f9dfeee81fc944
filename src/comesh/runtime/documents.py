"""The documents that a node begins with, kept in its data directory: later ones come from the mesh.

Planning is sticky, so version N is planned upon version N-1: a node needs all of them, in order, its *chain*.
A mesh that never changed has a chain of one. What a file says after the first start is not what the mesh runs
by: a changed file is told, and does nothing; but a longer chain is taken.

    deployment-1.yaml ... deployment-N.yaml    in a data directory; what came after N is in the journal
    chain                                      one file with all of them: `comesh versions --export FILE`
"""

import base64
import lzma
import os
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from itertools import count, takewhile
from pathlib import Path
from typing import Final

import msgspec

from comesh.core.ids import NodeId
from comesh.core.program import Program
from comesh.deployment.load import load_bytes
from comesh.deployment.model import Deployment
from comesh.deployment.problems import did_you_mean
from comesh.deployment.program import program_of
from comesh.runtime.log import Log
from comesh.runtime.options import OWNER

FIRST_LINE: Final = "comesh chain 1"
"""How the file of a chain begins; the number is that of its format."""
CHAIN: Final = "comesh chain "
LINE: Final = 100
PRESET: Final = 1
"""How hard a chain is pressed: more takes eight times as long, in the loop of a node, and gains little."""
MAX_CHAIN_BYTES: Final = 256 * 1024 * 1024
"""Bytes of all texts of a chain together."""
KEPT_READ: Final = 4
"""Documents that are kept as they were read: the running one, and what is about to follow it."""
LATE: Final = (
    ". A node that comes later is added with `comesh apply`, and begins from the chain of all versions: "
    "`comesh versions --export FILE` on another node"
)


class DocumentError(Exception):
    """There is no document that this node could run by; str() says what is wrong, line by line."""


class Chain:
    """The texts of versions 1 to N."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        """DocumentError: a version is missing."""
        missing = next((number for number in range(1, max(texts, default=1) + 1) if number not in texts), 0)
        if missing:
            raise DocumentError(f"the chain of documents lacks version {missing}: export it anew from a node")
        self.texts = dict(sorted(texts.items()))

    @property
    def newest(self) -> int:
        return max(self.texts)

    @property
    def text(self) -> str:
        """The text of the newest version."""
        return self.texts[self.newest]

    def programs(self, compiler: "Compiler | None" = None) -> list[Program]:
        """Compiles all versions, each upon the one before."""
        compiler = compiler or Compiler()
        made: list[Program] = []
        for version, text in self.texts.items():
            try:
                made.append(compiler(text, version, made[-1] if made else None))
            except ValueError as wrong:
                raise DocumentError(f"version {version} of the deployment: {wrong}") from wrong
        return made

    def extends(self, other: "Chain") -> bool:
        """It begins with all of the other one."""
        return all(self.texts.get(version) == text for version, text in other.texts.items())

    # -- one file ----------------------------------------------------------------------------------------

    def dump(self) -> str:
        """All of it as one text, which `comesh node` takes in the place of a document."""
        packed = lzma.compress(msgspec.msgpack.encode(list(self.texts.values())), preset=PRESET)
        data = base64.b64encode(packed).decode()
        lines = (data[at : at + LINE] for at in range(0, len(data), LINE))
        return "\n".join([FIRST_LINE, *lines, ""])

    @staticmethod
    def load(text: str, file: str) -> "Chain":
        """Reads a chain; any other text is a document, and a chain of one."""
        if not text.startswith(CHAIN):
            return Chain({1: text})
        first, _, body = text.partition("\n")
        if first.strip() != FIRST_LINE:
            raise DocumentError(f"{file}: a chain of another version of comesh: export it with this one")
        try:
            unpacking = lzma.LZMADecompressor()
            packed = base64.b64decode("".join(body.split()), validate=True)
            data = unpacking.decompress(packed, MAX_CHAIN_BYTES)
            if not unpacking.eof:
                raise EOFError
            texts = msgspec.msgpack.decode(data, type=list[str])
        except (ValueError, lzma.LZMAError, EOFError):
            raise DocumentError(f"{file}: the chain is damaged or not complete: export it anew") from None
        if not texts:
            raise DocumentError(f"{file}: the chain has no version: export it anew")
        return Chain(dict(enumerate(texts, 1)))

    # -- a data directory --------------------------------------------------------------------------------

    def write(self, data: Path) -> None:
        """What is not there yet, each file whole or not at all; the newest last, and what another chain left
        beyond it goes first, so that what is there is always a chain."""
        later = [kept_document(data, version) for version in self._kept_after(data)]
        try:
            for path in reversed(later):
                path.unlink()
            for version, text in self.texts.items():
                path = kept_document(data, version)
                if not path.is_file() or _read(path) != text:
                    _write(path, text)
        except OSError as wrong:
            raise DocumentError(
                f"{wrong.filename or data} cannot be written ({wrong.strerror or wrong}): make room, let "
                f"this user write to {data}, or choose another place with --data"
            ) from wrong

    def _kept_after(self, data: Path) -> Iterator[int]:
        return takewhile(lambda version: kept_document(data, version).is_file(), count(self.newest + 1))

    @staticmethod
    def read(data: Path) -> "Chain | None":
        """None: no node began from here."""
        texts: dict[int, str] = {}
        for version in count(1):
            kept = kept_document(data, version)
            if not kept.is_file():
                break
            texts[version] = _read(kept)
        return Chain(texts) if texts else None


class Compiler:
    """Makes programs of documents, and reads each text once, however often it is asked for: reading takes
    longer than all else, and a node does nothing else meanwhile."""

    def __init__(self) -> None:
        self._read: dict[str, Deployment] = {}

    def deployment(self, text: str, file: str = "<document>") -> Deployment:
        """DocumentError: it is none."""
        known = self._read.get(text)
        if known is None:
            if text.startswith(CHAIN):
                raise DocumentError(
                    f"{file}: this is a chain, which only `comesh node` takes: give a document"
                )
            known = parsed(text, file)
            self._read = dict([*self._read.items(), (text, known)][-KEPT_READ:])
        return known

    def __call__(self, text: str, version: int, previous: Program | None) -> Program:
        """ValueError in plain words if it cannot be used."""
        try:
            deployment = self.deployment(text)
        except DocumentError as wrong:
            raise ValueError(str(wrong)) from wrong
        return program_of(deployment, version, previous, text=text)


class Documents:
    """The documents that a running node goes by: the newest one, and the chain of all."""

    def __init__(self, chain: Chain, compiler: Compiler) -> None:
        self.compiler = compiler
        self.later: Callable[[], Mapping[int, str]] = dict
        """Versions that came since the start, as the journal has them."""
        self._first = chain
        self.deployment = compiler.deployment(chain.text)
        self.digest = digest(self.deployment)
        self.first_digest = digest(compiler.deployment(chain.texts[1]))

    @property
    def first_newest(self) -> int:
        """The newest version that this node began with."""
        return self._first.newest

    def chain(self) -> Chain:
        """All documents that this node has, from the first one on."""
        return Chain({**self._first.texts, **self.later()})

    def adopt(self, version: int, text: str) -> None:
        """DocumentError: it cannot be read."""
        self.deployment = self.compiler.deployment(text, f"version {version}")
        self.digest = digest(self.deployment)


def kept_document(data: Path, version: int) -> Path:
    return data / f"deployment-{version}.yaml"


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


def first_chain(file: Path, data: Path, name: NodeId, compiler: Compiler) -> tuple[Chain, str]:
    """What this node begins with, and what is in the file if that is something else."""
    kept = Chain.read(data)
    given = None if kept is not None and not file.is_file() else _read(file)
    chain = kept
    if given is not None:
        offered = Chain.load(given, str(file))
        if kept is None or (offered.newest > kept.newest and offered.extends(kept)):
            chain = offered
    assert chain is not None
    deployment = compiler.deployment(
        chain.text, str(file if kept is None else kept_document(data, chain.newest))
    )
    if name not in deployment.nodes:
        hint = did_you_mean(name, deployment.nodes)
        late = "" if chain.newest > 1 else LATE
        raise DocumentError(f"{file}: there is no node {name!r}" + (f"; {hint}" if hint else "") + late)
    chain.write(data)
    other = given is not None and given not in chain.texts.values() and given != chain.dump()
    return chain, (given or "") if other else ""


def tell_other_document(file: Path, text: str, known: Mapping[int, str], log: Log) -> None:
    """The file of a node that began long ago says something that the mesh never ran by."""
    if text and text not in known.values() and not text.startswith(CHAIN):
        log.warn(
            f"{file} is not what this mesh runs by: the file is not used. Have the mesh run by it with: "
            f"comesh apply {file}"
        )


def parsed(text: str, file: str) -> Deployment:
    """Reads a document, or the newest one of a chain."""
    text = Chain.load(text, file).text
    outcome = load_bytes(text.encode("utf-8", "surrogatepass"), file)
    if outcome.deployment is None:
        raise DocumentError("\n".join(map(str, outcome.errors)))
    return outcome.deployment


def _write(path: Path, text: str) -> None:
    """The whole file or nothing."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with scratch.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError:
        scratch.unlink(missing_ok=True)
        raise


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as wrong:
        raise DocumentError(f"{file} cannot be read ({wrong.strerror or wrong})") from wrong
    except UnicodeDecodeError as wrong:
        raise DocumentError(f"{file} cannot be read: it is not UTF-8 text") from wrong

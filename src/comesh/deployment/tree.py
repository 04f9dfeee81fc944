"""Parses bytes into a tree whose every node knows its line: YAML 1.2, the safe part of it.

Reads the event stream of ruamel.yaml's pure parser and builds the tree itself, because that is where every
bound can be kept before the damage: depth, number of nodes after aliases are expanded, file size. Plain words
are resolved by the core schema of YAML 1.2: `true` and `false` are booleans, but `yes`, `no`, `on` and `off`
are texts, and so is `07:30`. The one tag is `!secret NAME`.
"""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from comesh.deployment.problems import Complaint, Path, Position, complain, quote, shorten
from comesh.deployment.syntax import explain, in_quotes, position_of, sign_first

MAX_BYTES = 1_000_000
"""Maximum bytes of a document: some three thousand devices, and less than ten seconds of parsing."""
MAX_DEPTH = 40
MAX_NODES = 400_000
"""Counted after aliases and merge keys are expanded."""
MAX_DIGITS = 40

_INT = re.compile(r"[-+]?[0-9]+", re.ASCII)
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_CLAUSES = ("when", "on_event")
_SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class SecretName(msgspec.Struct, frozen=True):
    """`!secret NAME`: stands for a secret, and stays a name until a driver asks for it."""

    name: str


Scalar = str | int | float | bool | None | SecretName


class TreeNode(msgspec.Struct, kw_only=True):
    """A value, and the place where it begins. Mappings also know where their keys are."""

    value: "Scalar | list[TreeNode] | dict[str, TreeNode]"
    position: Position
    keys: dict[str, Position] = {}
    style: str = ""
    """The way a text was written: '' plain, or the quote or block sign."""
    lines: int = 1
    height: int = 0


class UnreadableError(Exception):
    """The document cannot be read any further; carries the one problem that says why."""

    def __init__(
        self, complaint: Complaint, position: Position | None = None, *, not_text: bool = False
    ) -> None:
        super().__init__(complaint.what)
        self.complaint = complaint
        self.position = position
        self.not_text = not_text
        """The file is not a text, or too large for one: it was not even looked into."""


class Grown(msgspec.Struct, kw_only=True):
    """A tree, and the mistakes found on the way that did not stop it."""

    root: TreeNode | None
    mistakes: list[tuple[Complaint, Position]]
    replaced: set[Path]
    """Paths at which a value could not be read and something else stands in its place."""


def grow(data: bytes, size: int) -> Grown:
    """Parse a document of size bytes; data is what was read of it. Raises UnreadableError only."""
    if size > MAX_BYTES:
        what = f"the file has {size:,} bytes; more than {MAX_BYTES:,} are not read"
        raise UnreadableError(complain(what=what, fix="is this the right file?"), not_text=True)
    text = _decode(data)
    grower = _Grower(text)
    return Grown(root=grower.document(), mistakes=grower.mistakes, replaced=grower.replaced)


def _decode(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableError(complain(what="the file is UTF-16", fix="save it as UTF-8"), not_text=True)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        before = data[: wrong.start]
        position = Position(before.count(b"\n") + 1, wrong.start - before.rfind(b"\n"))
        what = f"the file is not UTF-8 text (byte 0x{data[wrong.start]:02x})"
        raise UnreadableError(complain(what=what, fix="save it as UTF-8"), position, not_text=True) from None
    if "\0" in text:
        before_text = text[: text.index("\0")]
        position = Position(before_text.count("\n") + 1, len(before_text) - before_text.rfind("\n"))
        raise UnreadableError(
            complain(what="the file is binary, not text", fix="is this the right file?"),
            position,
            not_text=True,
        )
    return text


class _Grower:
    """Builds the tree from parser events; one document per file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._events = self._read_events()
        self._anchors: dict[str, TreeNode] = {}
        self._sizes: dict[int, int] = {}
        self._open_anchors: set[str] = set()
        self._count = 0
        self.mistakes: list[tuple[Complaint, Position]] = []
        self.replaced: set[Path] = set()

    def _read_events(self) -> Iterator[Any]:
        try:
            yield from YAML(typ="safe", pure=True).parse(self._text)
        except MarkedYAMLError as wrong:
            what, fix, position = explain(wrong, self._text)
            raise UnreadableError(complain(what=what, fix=fix), position) from None
        except YAMLError as wrong:
            raise UnreadableError(complain(what=f"not YAML: {shorten(str(wrong))}"), None) from None
        except Exception as wrong:
            # The parser is not ours and the text is anyone's: whatever it trips over is wrong with the text.
            raise UnreadableError(complain(what=f"not YAML: {shorten(str(wrong))}"), None) from wrong

    def document(self) -> TreeNode | None:
        root: TreeNode | None = None
        for event in self._events:
            match event:
                case DocumentStartEvent():
                    if root is not None:
                        what = "a second document begins here"
                        raise UnreadableError(
                            complain(what=what, fix="keep one document per file"),
                            position_of(event.start_mark),
                        )
                    if event.version is not None and tuple(event.version) != (1, 2):
                        what = "only YAML 1.2 is read"
                        raise UnreadableError(
                            complain(what=what, fix="remove the %YAML line"), position_of(event.start_mark)
                        )
                case ScalarEvent() | MappingStartEvent() | SequenceStartEvent() | AliasEvent():
                    root = self._node(event, ())
                case _:
                    pass
        return root

    def _node(self, event: Any, path: Path) -> TreeNode:
        position = position_of(event.start_mark)
        self._bound_depth(len(path), position)
        self._count += 1
        if self._count > MAX_NODES:
            self._too_large(position)
        if isinstance(event, AliasEvent):
            node = self._alias(event.anchor, position)
            self._bound_depth(len(path) + node.height, position)
            return node
        if event.anchor is not None:
            self._open_anchors.add(event.anchor)
        before = self._count
        match event:
            case ScalarEvent():
                node = self._scalar(event, path, position)
            case SequenceStartEvent():
                node = self._sequence(event, path, position)
            case _:
                node = self._mapping(event, path, position)
        if event.anchor is not None:
            self._open_anchors.discard(event.anchor)
            self._anchors[event.anchor] = node
            self._sizes[id(node)] = self._count - before + 1
        return node

    def _bound_depth(self, depth: int, position: Position) -> None:
        if depth > MAX_DEPTH:
            raise UnreadableError(complain(what=f"nested more than {MAX_DEPTH} levels deep"), position)

    def _too_large(self, position: Position) -> None:
        what = f"the document grows beyond {MAX_NODES:,} values when its aliases are expanded"
        raise UnreadableError(complain(what=what), position)

    def _alias(self, anchor: str, position: Position) -> TreeNode:
        if anchor in self._open_anchors:
            raise UnreadableError(complain(what=f"'*{shorten(anchor)}' is used inside of itself"), position)
        node = self._anchors.get(anchor)
        if node is None:
            signed = sign_first(self._text, position.line)
            if signed is not None and re.search(r"[\s/]", signed[2].rstrip()):
                what = "a value that begins with '*' needs quotes"
                raise UnreadableError(complain(what=what, fix=f"write {in_quotes(signed[2])}"), position)
            what = f"'*{shorten(anchor)}' refers to nothing"
            raise UnreadableError(
                complain(what=what, fix=f"mark the value with '&{shorten(anchor)}' further up"), position
            )
        self._count += self._sizes[id(node)]
        if self._count > MAX_NODES:
            self._too_large(position)
        return node

    def _sequence(self, event: Any, path: Path, position: Position) -> TreeNode:
        self._refuse_tag(event, path, position)
        items: list[TreeNode] = []
        for inner in self._events:
            if isinstance(inner, SequenceEndEvent):
                break
            items.append(self._node(inner, (*path, len(items))))
        return TreeNode(value=items, position=position, height=_height(items))

    def _mapping(self, event: Any, path: Path, position: Position) -> TreeNode:
        self._refuse_tag(event, path, position)
        values: dict[str, TreeNode] = {}
        keys: dict[str, Position] = {}
        merges: list[tuple[TreeNode, Position]] = []
        for inner in self._events:
            if isinstance(inner, MappingEndEvent):
                break
            at = position_of(inner.start_mark)
            key_node = self._node(inner, (*path, "?"))
            merge = isinstance(inner, ScalarEvent) and inner.value == "<<" and not inner.style
            key = self._key(key_node, path, at)
            value = self._node(next(self._events), (*path, key))
            if merge:
                merges.append((value, at))
            elif key in values:
                what = f"the key {quote(key)} is here twice; the first is on line {keys[key].line}"
                self.mistakes.append((complain(*path, key, what=what, fix="remove or rename one"), at))
            else:
                values[key] = value
                keys[key] = at
        for value, at in merges:
            self._merge(value, at, path, values, keys)
        return TreeNode(value=values, position=position, keys=keys, height=_height(values.values()))

    def _key(self, node: TreeNode, path: Path, at: Position) -> str:
        if isinstance(node.value, str):
            return node.value
        shown = quote(node.value)
        what = f"a key must be text, not {shown}"
        fix = f'write "{shown}": in quotes' if isinstance(node.value, int | float) else ""
        self.mistakes.append((complain(*path, what=what, fix=fix), at))
        return f"? line {at.line} column {at.column}"

    def _merge(
        self,
        value: TreeNode,
        at: Position,
        path: Path,
        values: dict[str, TreeNode],
        keys: dict[str, Position],
    ) -> None:
        sources = value.value if isinstance(value.value, list) else [value]
        for source in sources:
            if not isinstance(source.value, dict):
                what = "'<<' merges mappings only"
                self.mistakes.append((complain(*path, what=what, fix="write <<: *name_of_a_mapping"), at))
                continue
            self._count += len(source.value)
            if self._count > MAX_NODES:
                self._too_large(at)
            for key, inner in source.value.items():
                values.setdefault(key, inner)
                keys.setdefault(key, source.keys.get(key, at))

    def _refuse_tag(self, event: Any, path: Path, position: Position) -> None:
        if event.tag is not None:
            self.replaced.add(path)
            if path and path[-1] in _CLAUSES and str(event.tag).startswith("!"):
                what, fix = "a clause that begins with '!' needs quotes", "put it in quotes"
                signed = sign_first(self._text, position.line)
                if signed is not None:
                    fix = f"write {path[-1]}: {in_quotes(signed[2])}"
                self.mistakes.append((complain(*path, what=what, fix=fix), position))
                return
            what = f"the tag {quote(str(event.tag))} is not known here"
            self.mistakes.append((complain(*path, what=what, fix="only '!secret NAME' is"), position))

    def _scalar(self, event: Any, path: Path, position: Position) -> TreeNode:
        text: str = event.value
        style: str = event.style or ""
        value: Scalar
        if any("\ud800" <= character <= "\udfff" for character in text):
            value = self._replace("?", path, position, "half of a surrogate pair is not a character")
        elif event.tag is not None and str(event.tag) == "!secret":
            value = SecretName(text)
            if not text:
                what = "!secret says no name; write !secret NAME, such as !secret MQTT_PASSWORD"
                value = self._replace(SecretName("?"), path, position, what)
            elif _SECRET_NAME.fullmatch(text) is None:
                what = f"{quote(text)} is not the name of a secret, such as MQTT_PASSWORD"
                value = self._replace(SecretName("?"), path, position, what)
        else:
            self._refuse_tag(event, path, position)
            value = text if style else self._resolve(text, path, position)
        lines = event.end_mark.line - event.start_mark.line + 1
        return TreeNode(value=value, position=position, style=style, lines=lines)

    def _replace(self, stand_in: Scalar, path: Path, position: Position, what: str) -> Scalar:
        self.mistakes.append((complain(*path, what=what), position))
        self.replaced.add(path)
        return stand_in

    def _resolve(self, text: str, path: Path, position: Position) -> Scalar:
        """The core schema of YAML 1.2, for a plain word."""
        if text in ("", "~", "null", "Null", "NULL"):
            return None
        if text in ("true", "True", "TRUE"):
            return True
        if text in ("false", "False", "FALSE"):
            return False
        if _NOT_FINITE.fullmatch(text):
            return self._replace(0, path, position, f"'{text}' is not a number that can be used")
        based = _BASED.fullmatch(text)
        whole = based or _INT.fullmatch(text)
        if not whole and not _FLOAT.fullmatch(text):
            return text
        if len(text) > MAX_DIGITS:
            return self._replace(0, path, position, f"a number has at most {MAX_DIGITS} digits here")
        if whole:
            return int(text, 0) if based else int(text)
        number = float(text)
        if math.isinf(number):
            return self._replace(0, path, position, f"the number {quote(text)} is too large")
        return number


def _height(children: Iterable[TreeNode]) -> int:
    return 1 + max((child.height for child in children), default=0)

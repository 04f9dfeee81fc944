"""Explains what is not YAML as a person would: where it began to go wrong, and what to write instead.

The parser tells where it could not go on, which is often lines below the slip. So the text around it is
looked at again, for the slips that people make: a quote that is not closed, `cooldown:30s` without its space,
a cron line or a clause that begins with a sign of YAML.
"""

import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml.error import MarkedYAMLError

from comesh.deployment.problems import Position, shorten

_NEVER_CLOSED = ("found unexpected end of stream", "expected ',' or")
"""Errors of the parser at the end of something that was opened further up, which is where to look."""

GLUED = re.compile(r"\s*(?:- +)?([A-Za-z_][A-Za-z0-9_-]*):(?!//)([^\s:].*)")
"""`cooldown:30s`: a key with its value, but without the space that makes it one."""
_SIGN_FIRST = re.compile(r"(\s*(?:- +)?[A-Za-z_][A-Za-z0-9_-]*: +)([*&!%@`].*)")
"""A value that begins with a sign that means something else to YAML."""
_OPENED = re.compile(r"""(?:^|[\[{,:\-])[ \t]*(['"])""", re.MULTILINE)
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#.*$", re.MULTILINE)
_CLOSED = {"'": re.compile(r"(?:[^']|'')*'(?!')"), '"': re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)}
_AFTER = re.compile(r"[ \t]*(?:[,\]}:\n\r]|[ \t]#|$)")


def position_of(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def explain(wrong: MarkedYAMLError, text: str) -> tuple[str, str, Position | None]:
    """Returns what is wrong, the likely fix, and where."""
    opened = any(sign in str(wrong.problem) for sign in _NEVER_CLOSED)
    mark = (wrong.context_mark if opened else None) or wrong.problem_mark or wrong.context_mark
    position = position_of(mark) if mark is not None else None
    if position is None:
        return (*_in_words(wrong, ""), None)
    lines = text.splitlines()
    for line in _suspects(wrong, position, lines):
        glued = GLUED.fullmatch(lines[line - 1])
        if glued is not None:
            at = Position(line, glued.start(2) + 1)
            return "a space is missing after the ':'", f"write {glued[1]}: {shorten(glued[2])}", at
    quote = _unclosed_quote(text, position.line)
    if quote is not None:
        return "a quote is opened here and not closed", "close it", quote
    line_text = lines[position.line - 1] if position.line <= len(lines) else ""
    signed = sign_first(text, position.line)
    if signed is not None:
        what = f"a value that begins with '{signed[2][0]}' needs quotes"
        return what, f"write {in_quotes(signed[2])}", Position(position.line, signed.start(2) + 1)
    return (*_in_words(wrong, line_text), position)


def sign_first(text: str, line: int) -> re.Match[str] | None:
    """The line as key and value, if the value begins with a sign that means something else to YAML."""
    lines = text.splitlines()
    return _SIGN_FIRST.fullmatch(lines[line - 1]) if line <= len(lines) else None


def in_quotes(value: str) -> str:
    """A value as YAML with quotes around it."""
    bare = re.sub(r"\s+#.*", "", value).rstrip()
    return f'"{shorten(bare)}"' if '"' not in bare and "\\" not in bare else "'" + shorten(bare) + "'"


def _suspects(wrong: MarkedYAMLError, position: Position, lines: list[str]) -> Iterator[int]:
    """The lines on which a key without its space would lead to what the parser says."""
    problem = str(wrong.problem)
    if "could not find expected ':'" in problem and wrong.context_mark is not None:
        yield wrong.context_mark.line + 1
    elif "mapping values are not allowed" in problem:
        above = [
            number for number in range(1, min(position.line, len(lines) + 1)) if lines[number - 1].strip()
        ]
        yield from above[-1:]


def _unclosed_quote(text: str, until_line: int) -> Position | None:
    """The first quote that runs over the end of its line into a quote that was meant to open another."""
    at = 0
    while (found := _OPENED.search(text, at)) is not None:
        start = found.start(1)
        line = text.count("\n", 0, start) + 1
        if line >= until_line:
            return None
        comment = _COMMENT.search(text, text.rfind("\n", 0, start) + 1, start)
        if comment is not None and comment.start() >= at:
            at = found.end()
            continue
        closed = _CLOSED[found[1]].match(text, found.end())
        if closed is None:
            return None
        if "\n" in closed.group() and _AFTER.match(text, closed.end()) is None:
            return Position(line, start - text.rfind("\n", 0, start))
        at = closed.end()
    return None


def _in_words(wrong: MarkedYAMLError, line: str) -> tuple[str, str]:
    problem = str(wrong.problem or "")
    if "'\\t'" in problem or line.lstrip(" ").startswith("\t"):
        return "a tab is used for indentation", "YAML allows spaces only"
    if "mapping values are not allowed" in problem:
        return "a ':' where none can be", "check the indentation of this line, or put the text in quotes"
    if "could not find expected ':'" in problem:
        return "a ':' is missing after a key", "check this line and the one above"
    if "expected <block end>" in problem:
        return "the indentation does not fit the lines above", "align this line with its neighbours"
    if _NEVER_CLOSED[0] in problem:
        return "a quote is opened but never closed", "close it"
    if _NEVER_CLOSED[1] in problem:
        return "the bracket that opens here is not closed, or a comma is missing", "check the brackets"
    if "cannot start any token" in problem:
        return "a text cannot begin with this character", "put the text in quotes"
    if "scanning a tag" in str(wrong.context):
        if "!secret" in line:
            return "!secret says no name", "write !secret NAME, such as !secret MQTT_PASSWORD"
        return "a text that begins with '!' needs quotes", "put the text in quotes"
    if "expected alphabetic or numeric" in problem:
        return "a text that begins with '*', '&' or '!' needs quotes", "put the text in quotes"
    return f"not YAML: {shorten(problem or str(wrong.context or wrong))}", ""

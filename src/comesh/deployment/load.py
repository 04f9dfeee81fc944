"""Reading a deployment document: every mistake at once, each with its line; never an exception.

outcome = load("office.yaml")
if outcome.deployment is None:
    for problem in outcome.problems:
        print(problem)
"""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path as FilePath
from typing import Any

import msgspec

from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.deployment.checks import CHECKS
from comesh.deployment.checks.plan import outages
from comesh.deployment.draft import Draft, draft_of
from comesh.deployment.model import Deployment
from comesh.deployment.problems import Complaint, Position, Problem, Severity, printable, show_path
from comesh.deployment.tree import MAX_BYTES, TreeNode, UnreadableError, grow

MAX_FOUND_BY_CHECK = 200
"""Maximum problems of each severity per check. Further ones have few causes, and each suggestion costs time;
but a check is only left early for its errors, so that no number of warnings hides a mistake."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A deployment, or the reasons why there is none; warnings can come with both."""

    file: str
    deployment: Deployment | None
    problems: tuple[Problem, ...]
    could_not_read: bool = False
    """The file itself could not be opened, or is not a text: the caller named it wrongly."""
    stopped_early: bool = False
    """A mistake that hides the rest: there may be more below it."""
    more: bool = False
    """There may be more problems like some of these: they are too many to look for all."""
    notes: tuple[str, ...] = ()
    """Remarks that are good to know, with nothing to mend."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity is Severity.WARNING)


def load(path: str | os.PathLike[str]) -> Outcome:
    """Read and check the document in a file."""
    file = os.fspath(path)
    try:
        with FilePath(file).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
            size = len(data) if len(data) <= MAX_BYTES else max(os.fstat(stream.fileno()).st_size, len(data))
    except (OSError, ValueError) as wrong:
        return _not_opened(file, wrong)
    return _load(data, file, size)


def load_bytes(data: bytes, file: str = "<document>") -> Outcome:
    """Check a document that is already in memory; file is what problems call it."""
    return _load(data, file, len(data))


def _not_opened(file: str, wrong: OSError | ValueError) -> Outcome:
    match wrong:
        case _ if not file or file == os.curdir:
            what, fix = "the name of a file is needed", "such as: comesh validate home.yaml"
        case FileNotFoundError():
            what, fix = "there is no such file", "check the name, or write a first one with: comesh new FILE"
        case IsADirectoryError():
            what, fix = "this is a directory", "name the document inside of it"
        case PermissionError():
            what, fix = "the file may not be read by you", "check its permissions"
        case OSError():
            what, fix = f"the file cannot be read ({wrong.strerror})", ""
        case _:
            what, fix = "this is not the name of a file", ""
    problem = Problem(file=file or '""', line=0, column=0, path="", what=what, fix=fix)
    return Outcome(file=file, deployment=None, problems=(problem,), could_not_read=True)


def _load(data: bytes, file: str, size: int) -> Outcome:
    try:
        grown = grow(data, size)
    except UnreadableError as wrong:
        problem = _problem(file, wrong.complaint, wrong.position)
        return Outcome(
            file=file,
            deployment=None,
            problems=(problem,),
            could_not_read=wrong.not_text,
            stopped_early=not wrong.not_text,
        )
    root = grown.root
    if root is None or root.value is None:
        return _refused(file, "the document is empty", "comesh new FILE writes a first one")
    if not isinstance(root.value, dict):
        return _refused(
            file, "the document is not a mapping", "it begins with settings:, nodes:, devices: or routines:"
        )
    problems = [_problem(file, complaint, position) for complaint, position in grown.mistakes]
    draft, found = draft_of(_plain(root), grown.replaced)
    more = False
    for check in CHECKS:
        more |= _gather(check(draft), found)
    deployment = None
    if not problems and all(complaint.severity is not Severity.ERROR for complaint in found):
        deployment = _finish(draft)
        more |= _gather(outages(deployment), found)
        if any(complaint.severity is Severity.ERROR for complaint in found):
            deployment = None
    problems.extend(_problem(file, complaint, _locate(root, complaint)) for complaint in found)
    problems.sort(key=lambda problem: (problem.line, problem.column, problem.path, problem.what))
    problems = _once(problems)
    return Outcome(file=file, deployment=deployment, problems=tuple(problems), more=more, notes=_notes(draft))


def _gather(complaints: Iterable[Complaint], found: list[Complaint]) -> bool:
    """Add what one check tells, up to the bound; are there more?"""
    count = Counter[Severity]()
    for complaint in complaints:
        count[complaint.severity] += 1
        if count[complaint.severity] <= MAX_FOUND_BY_CHECK:
            found.append(complaint)
        elif complaint.severity is Severity.ERROR:
            break
    return any(number > MAX_FOUND_BY_CHECK for number in count.values())


def _once(problems: list[Problem]) -> list[Problem]:
    """Yields one mistake per anchor, wherever the anchor is used, at the first place."""
    alike: dict[tuple[object, ...], list[Problem]] = {}
    for problem in problems:
        place = (problem.line, problem.column) if problem.line else (problem.path,)
        alike.setdefault((*place, problem.severity, problem.what, problem.fix), []).append(problem)
    return [
        same[0]
        if len(paths := {problem.path for problem in same}) == 1
        else msgspec.structs.replace(same[0], what=same[0].what + _more_places(len(paths) - 1))
        for same in alike.values()
    ]


def _more_places(count: int) -> str:
    return f" (and in {count} more {'place' if count == 1 else 'places'} that use it)"


def _notes(draft: Draft) -> tuple[str, ...]:
    drivers = sorted({device.driver.type for device in draft.devices.values()} - {"virtual"})
    if not drivers:
        return ()
    return (
        f"no driver runs in this version: the options of {', '.join(drivers)} are kept as they are, and only "
        "looked through for secrets in the open",
    )


def _refused(file: str, what: str, fix: str) -> Outcome:
    problem = Problem(file=file, line=1, column=1, path="", what=what, fix=fix)
    return Outcome(file=file, deployment=None, problems=(problem,))


def _problem(file: str, complaint: Complaint, position: Position | None) -> Problem:
    return Problem(
        file=file,
        line=position.line if position else 0,
        column=position.column if position else 0,
        path=show_path(complaint.path),
        what=printable(complaint.what),
        fix=printable(complaint.fix),
        severity=complaint.severity,
    )


def _plain(node: TreeNode) -> Any:
    """The tree as plain values."""
    match node.value:
        case dict():
            return {key: _plain(inner) for key, inner in node.value.items()}
        case list():
            return [_plain(inner) for inner in node.value]
        case _:
            return node.value


def _locate(root: TreeNode, complaint: Complaint) -> Position:
    """Finds the place in the text that a complaint means: the value, its key, or the nearest thing above it.

    The key is meant where the key is wrong, and where the value is nothing or begins on another line.
    """
    node = root
    key: Position | None = None
    for step in complaint.path:
        inner = _child(node, step)
        if inner is None:
            return key or node.position
        key = node.keys.get(step) if isinstance(step, str) else None
        node = inner
    if complaint.offset is not None:
        return _inside(node, complaint.offset)
    below = isinstance(node.value, dict | list) and key is not None and node.position.line != key.line
    if key is not None and (complaint.at_key or below or node.value is None):
        return key
    return node.position


def _child(node: TreeNode, step: str | int) -> TreeNode | None:
    match node.value, step:
        case dict(), str():
            return node.value.get(step)
        case list(), int() if step < len(node.value):
            return node.value[step]
        case _:
            return None


def _inside(node: TreeNode, offset: int) -> Position:
    """The place of a character of a text; exact where the text stands in the file as it is."""
    text = node.value
    if not isinstance(text, str):
        return node.position
    start = node.position
    before = text[:offset]
    if node.style == "|":
        return Position(start.line + 1 + before.count("\n"), start.column)
    if node.lines == 1 and node.style in ("", "'", '"') and "\\" not in before:
        opening = 1 if node.style else 0
        return Position(start.line, start.column + opening + offset)
    return start


def _finish(draft: Draft) -> Deployment:
    return Deployment(
        name=draft.name,
        settings=draft.settings,
        nodes={NodeId(name): node for name, node in sorted(draft.nodes.items())},
        devices={DeviceId(name): device for name, device in sorted(draft.devices.items())},
        routines={RoutineId(name): routine for name, routine in sorted(draft.routines.items())},
    )

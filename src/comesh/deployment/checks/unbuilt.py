"""Warns about what a document may say and nothing carries out yet, before a run fails."""

from collections.abc import Iterator

from comesh.deployment.model import Deployment
from comesh.deployment.tree import TreeNode, grow

UNDO = "undo is not carried out yet: a failed run leaves devices as they are"


def undo_notes(deployment: Deployment, data: bytes, file: str) -> Iterator[str]:
    """Returns one note for each routine with undo, with its line; data is the document that the deployment
    was read from.

    Notes, not warnings: the document is right, and nothing in it needs to be mended.
    """
    relying = [name for name, routine in deployment.routines.items() if routine.undo]
    if not relying:
        return
    root = grow(data, len(data)).root
    for name in relying:
        line = _line_of(root, ("routines", name, "undo"))
        yield f"{file}:{line}: routines.{name}.undo: {UNDO}"


def _line_of(root: TreeNode | None, path: tuple[str, ...]) -> int:
    """Returns the line of the last key of the path that is there."""
    line, node = 1, root
    for key in path:
        if node is None or not isinstance(node.value, dict) or key not in node.value:
            break
        line = node.keys[key].line if key in node.keys else node.value[key].position.line
        node = node.value[key]
    return line

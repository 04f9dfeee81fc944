"""Changes to the text of a document that leave everything else in it as a person wrote it, comments too."""

from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError


class EditError(Exception):
    """The text cannot be changed so; str() says why, and what to do."""


def without_node(text: str, node: str) -> str:
    """The document without this node."""
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    try:
        document: Any = yaml.load(text)
    except YAMLError as wrong:
        raise EditError(f"the document cannot be changed by a program ({wrong})") from wrong
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, dict) or node not in nodes:
        raise EditError(f"the document has no node {node!r} that could be taken out of it")
    hosted = [name for name, one in (document.get("devices") or {}).items() if one.get("on") == node]
    if hosted:
        raise EditError(
            f"{', '.join(hosted)}: part of {node}, and gone with it. Take these devices out of the document, "
            f"or give them another node with on:, take {node} out, and run: comesh apply FILE --now"
        )
    del nodes[node]
    made = StringIO()
    yaml.dump(document, made)
    return made.getvalue()

"""docs/deployment.md names every key of the document, and its examples are fine."""

import re
from pathlib import Path

from deployment_texts import told

from comesh.deployment.model import Command, Device, Node, Routine, Step
from comesh.deployment.settings import LocksSettings, LshSettings, SelectionPolicy, Settings
from comesh.deployment.values import DocumentModel, ValueType

DOC = (Path(__file__).parents[2] / "docs" / "deployment.md").read_text()


def test_every_key_is_in_the_reference() -> None:
    models: list[type[DocumentModel]] = [Settings, LocksSettings, SelectionPolicy, LshSettings]
    models += [Node, Device, Command, Routine, Step, ValueType]
    for model in models:
        for name, field in model.model_fields.items():
            key = field.alias or name
            assert re.search(rf"[`.{{ ]{key}\b", DOC), f"{model.__name__}.{key} is not in docs/deployment.md"


def test_the_examples_of_the_reference_are_one_fine_document() -> None:
    blocks = re.findall(r"\n\n((?:    .*\n)+)", DOC)
    parts = ["\n".join(line[4:] for line in block.splitlines()) for block in blocks]
    parts = [part for part in parts if part.startswith(("nodes:", "devices:", "routines:"))]
    assert len(parts) == 3
    text = "\n".join(parts)
    text = text.replace("nodes:\n", "nodes:\n  b: {place: [0m, 0m]}\n  c: {place: [1m, 0m]}\n")
    text = text.replace(
        "devices:\n",
        "devices:\n  motion: {on: b, readings: {active: bool}}\n  door: {on: b, commands: {lock: }}\n",
    )
    assert told(text) == []

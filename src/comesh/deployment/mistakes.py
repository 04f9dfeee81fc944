"""Translates what pydantic says about a value into what a person can use.

Pydantic finds the mistakes of form; this file gives each its path in the document, plain words, and for a
misspelled key or word the likely one.
"""

from enum import EnumType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from comesh.deployment.problems import Complaint, Path, WrongError, did_you_mean, quote, shorten
from comesh.deployment.syntax import GLUED
from comesh.deployment.tree import SecretName

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a text",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
}
_YAML_1_1_WORDS = frozenset({"yes", "no", "on", "off", "y", "n"})


def complaints(model: type[BaseModel], data: object, wrong: ValidationError, at: Path) -> list[Complaint]:
    """Yields one complaint per place; at is the place of data in the document."""
    found: dict[Path, Complaint] = {}
    for error in wrong.errors(include_url=False):
        path = _existing(data, error["loc"])
        if error["type"] == "missing":
            path = (*path, str(error["loc"][-1]))
        if path not in found:
            what, fix = _words(model, path, error)
            found[path] = Complaint(
                path=(*at, *path), what=what, fix=fix, at_key=error["type"] == "extra_forbidden"
            )
    return list(found.values())


def _existing(data: object, loc: tuple[int | str, ...]) -> Path:
    """The part of an error's location that is in the document: unions add names of their branches."""
    path: Path = ()
    for step in loc:
        match data:
            case dict() if step in data:
                data = data[step]
            case list() if isinstance(step, int) and step < len(data):
                data = data[step]
            case _:
                return path
        path = (*path, step)
    return path


def _words(model: type[BaseModel], path: Path, error: ErrorDetails) -> tuple[str, str]:
    value = error["input"]
    context = error.get("ctx", {})
    match error["type"]:
        case "value_error" if isinstance(context.get("error"), WrongError):
            return context["error"].what, context["error"].fix
        case "missing":
            return f"{quote(path[-1])} is missing", ""
        case "extra_forbidden" if (glued := GLUED.fullmatch(str(path[-1]))) and glued[1] in keys_of(
            model, path[:-1]
        ):
            return "a space is missing after the ':'", f"write {glued[1]}: {shorten(glued[2])}"
        case "extra_forbidden":
            return f"unknown key {quote(path[-1])}", did_you_mean(str(path[-1]), keys_of(model, path[:-1]))
        case "enum" | "literal_error":
            words = context.get("expected", "").replace("'", "").replace(" or ", ", ").split(", ")
            return f"{quote(value)} is not possible here", did_you_mean(str(value), words)
        case "greater_than_equal":
            return f"{quote(value)} is too small", f"at least {context['ge']} is needed"
        case "less_than_equal":
            return f"{quote(value)} is too large", f"at most {context['le']} is possible"
        case "string_too_short":
            return "the text is empty", ""
        case "string_too_long":
            return f"the text is longer than {context['max_length']} characters", ""
        case "too_long":
            return f"more than {context['max_length']} entries", ""
        case "string_pattern_mismatch":
            return f"{quote(value)} is not an address", "write host:port, such as 10.0.0.7:7400"
        case _:
            return _wrong_type(value, error)


def _wrong_type(value: Any, error: ErrorDetails) -> tuple[str, str]:
    expected = _EXPECTED.get(error["type"])
    if isinstance(value, SecretName):
        return "a secret can only be used in the options of a driver", ""
    if expected is None:
        return f"{quote(value)} does not fit: {error['msg'].lower()}", ""
    fix = ""
    if expected == "true or false" and isinstance(value, str) and value.lower() in _YAML_1_1_WORDS:
        fix = "in YAML 1.2 yes, no, on and off are texts"
    if expected == "a text" and isinstance(value, bool | int | float):
        fix = "put it in quotes"
    if expected == "a list" and isinstance(value, dict):
        fix = "write '- ' before each entry, or [ and ] around it"
    if expected == "a mapping" and isinstance(value, str) and (glued := GLUED.fullmatch(value)):
        fix = f"a space is missing after the ':': write {glued[1]}: {shorten(glued[2])}"
    got = "it is empty" if value is None else f"got {quote(value)}"
    return f"expected {expected}, {got}", fix


def keys_of(model: type[BaseModel], path: Path) -> list[str]:
    """The keys that a mapping inside of a model can have."""
    found: type[BaseModel] | None = model
    annotation: Any = None
    for step in path:
        if found is not None:
            fields = {field.alias or name: field.annotation for name, field in found.model_fields.items()}
            annotation = fields.get(str(step))
            found = _model_in(annotation) if not _is_container(annotation) else None
        else:
            found = _model_in(annotation)
    if found is None:
        return []
    return [field.alias or name for name, field in found.model_fields.items()]


def _is_container(annotation: Any) -> bool:
    """A mapping or list of models: one more step of the path leads to a model."""
    origin = getattr(annotation, "__origin__", None)
    return origin in (dict, tuple, list)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if (
        isinstance(annotation, type)
        and not isinstance(annotation, EnumType)
        and issubclass(annotation, BaseModel)
    ):
        return annotation
    for inner in get_args(annotation):
        found = _model_in(inner)
        if found is not None:
            return found
    return None

"""The JSON Schema of the document, for editors: completion, hints, and mistakes of form while typing.

Made from the model; what the model reads in a short form (`open: bool`) is added here by hand.
"""

import copy
from typing import Any

from comesh.deployment.draft import FREE_PREFIX
from comesh.deployment.id_names import ID_PATTERN
from comesh.deployment.model import DAYS, DRIVERS, Deployment
from comesh.deployment.units import DURATION_PATTERN, show_duration

_KINDS = ["bool", "int", "float", "text"]


def document_schema() -> dict[str, Any]:
    """The schema, as plain values."""
    schema = copy.deepcopy(Deployment.model_json_schema(by_alias=True))
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "CoMesh deployment"
    schema["patternProperties"] = {f"^{FREE_PREFIX}": {"description": "Yours: a place for YAML anchors."}}
    for section in ("nodes", "devices", "routines"):
        _ids(schema["properties"][section])
    for section in ("settings", "nodes", "devices", "routines"):
        schema["properties"][section] = _or_nothing(schema["properties"][section])
    definitions = schema["$defs"]
    definitions["ValueType"] = _with_short_forms(definitions["ValueType"])
    definitions["Driver"] = _driver(definitions["Driver"])
    _ids(definitions["Device"]["properties"]["readings"])
    commands = definitions["Device"]["properties"]["commands"]
    _ids(commands)
    commands["additionalProperties"] = _or_nothing(commands["additionalProperties"])
    del definitions["Device"]["properties"]["driver"]["default"]
    routine = definitions["Routine"]["properties"]
    routine["at"] = _one_or_many(routine["at"], {"type": "string"})
    routine["days"] = _one_or_many(routine["days"], _day())
    definitions["Routine"]["required"] = ["do"]
    _show_defaults(schema)
    return schema


def _ids(mapping: dict[str, Any]) -> None:
    mapping["propertyNames"] = {"pattern": f"^{ID_PATTERN}$"}


def _or_nothing(schema: dict[str, Any]) -> dict[str, Any]:
    """A key with nothing after it is an empty mapping."""
    return {"anyOf": [schema, {"type": "null"}]}


def _one_or_many(schema: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    many = {"type": "array", "items": item, "minItems": 1}
    return {"anyOf": [item, many, {"type": "null"}], "description": schema["description"]}


def _day() -> dict[str, Any]:
    one = "|".join(DAYS)
    return {"anyOf": [{"enum": list(DAYS)}, {"type": "string", "pattern": f"^({one}) ?- ?({one})$"}]}


def _with_short_forms(long: dict[str, Any]) -> dict[str, Any]:
    words = {"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True}
    return {"description": long["description"], "anyOf": [{"enum": _KINDS}, words, long]}


def _driver(long: dict[str, Any]) -> dict[str, Any]:
    kind = {**long["properties"]["type"], "enum": list(DRIVERS)}
    free = {
        "type": "object",
        "properties": {"type": kind},
        "required": ["type"],
        "additionalProperties": True,
    }
    return {"description": long["description"], "anyOf": [{"enum": list(DRIVERS)}, free]}


def _show_defaults(schema: Any) -> None:
    """Defaults of durations as a person writes them, not in milliseconds."""
    match schema:
        case dict():
            if type(schema.get("default")) is int and DURATION_PATTERN in str(schema.get("anyOf")):
                schema["default"] = show_duration(schema["default"])
            for inner in schema.values():
                _show_defaults(inner)
        case list():
            for inner in schema:
                _show_defaults(inner)
        case _:
            return

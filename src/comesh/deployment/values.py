"""The values that devices report and take: what kind they are, their range, their unit.

One description serves readings and command arguments. Short forms: `bool`, or a list of the words that
are possible; the long form is a mapping with type or values, and range and unit.
"""

import math
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.types import Strict, StringConstraints

from comesh.core.plan import Place
from comesh.core.values import Value
from comesh.deployment.problems import WrongError, did_you_mean, quote
from comesh.deployment.units import (
    DURATION_PATTERN,
    LENGTH_PATTERN,
    parse_duration_ms,
    parse_length_mm,
)

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
MAX_TEXT = 1000
MAX_VALUES = 100

Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict(), Field(ge=INT_MIN, le=INT_MAX)]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Text = Annotated[str, Strict(), StringConstraints(min_length=1, max_length=MAX_TEXT)]

_DURATION_SCHEMA = {"anyOf": [{"type": "string", "pattern": DURATION_PATTERN}, {"const": 0}]}
_LENGTH_SCHEMA = {"anyOf": [{"type": "string", "pattern": LENGTH_PATTERN}, {"const": 0}]}
_AXES = ("x", "y", "z")
_PLACE_SCHEMA = {
    "anyOf": [
        {"type": "array", "items": _LENGTH_SCHEMA, "minItems": 2, "maxItems": 3},
        {
            "type": "object",
            "properties": dict.fromkeys(_AXES, _LENGTH_SCHEMA),
            "required": ["x", "y"],
            "additionalProperties": False,
        },
    ]
}

DurationMs = Annotated[int, BeforeValidator(parse_duration_ms), WithJsonSchema(_DURATION_SCHEMA)]


class DocumentModel(BaseModel):
    """Base of everything in the document: no unknown keys, nothing changes after loading."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


def parse_place(value: object) -> Place:
    """`[4.5m, 2m, 3m]`, `[4.5m, 2m]` or `{x: 4.5m, y: 2m, z: 3m}`."""
    match value:
        case Place():
            return value
        case list() if 2 <= len(value) <= 3:
            return Place(*(parse_length_mm(item) for item in value))
        case dict() if {"x", "y"} <= value.keys() <= {"x", "y", "z"}:
            return Place(*(parse_length_mm(value[axis]) for axis in _AXES if axis in value))
        case list():
            raise WrongError(*_wrong_count(value))
        case _:
            raise WrongError(
                f"{quote(value)} is not a place", "write [x, y, z] such as [4.5m, 2m, 3m]; z may be left out"
            )


def _wrong_count(items: list[object]) -> tuple[str, str]:
    what = f"a place has two or three lengths, and here {'is' if len(items) == 1 else 'are'} {len(items)}"
    for one, other in pairwise(items):
        if isinstance(one, int) and isinstance(other, str) and other[:1].isdigit():
            return what, f"write a decimal point in place of a comma: {one}.{other}"
    return what, "write [x, y, z] such as [4.5m, 2m, 3m]; z may be left out"


PlaceField = Annotated[Place, BeforeValidator(parse_place), WithJsonSchema(_PLACE_SCHEMA)]


def _two_numbers(value: object) -> object:
    if value is not None and not (isinstance(value, list | tuple) and len(value) == 2):
        raise WrongError(f"{quote(value)} is not a range", "write [lowest, highest], such as [0, 100]")
    return value


class Kind(StrEnum):
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    TEXT = "text"
    CHOICE = "choice"
    """One of a few words."""


class ValueType(DocumentModel):
    """The type of a reading, or of a command's argument."""

    type: Literal["bool", "int", "float", "text"] | None = Field(
        default=None, description="bool, int, float or text. Leave out where values lists the possible words."
    )
    values: tuple[Text, ...] | None = Field(
        default=None, description="The possible words, in place of type.", max_length=MAX_VALUES
    )
    range: Annotated[tuple[Number, Number] | None, BeforeValidator(_two_numbers)] = Field(
        default=None, description="The lowest and the highest number, both included."
    )
    unit: Annotated[Text, StringConstraints(max_length=20)] | None = Field(
        default=None, description="The unit for people, such as °C or %. Not computed with."
    )

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        match value:
            case str():
                kinds = ("bool", "int", "float", "text")
                if value not in kinds:
                    raise WrongError(f"unknown type {quote(value)}", did_you_mean(value, kinds))
                return {"type": value}
            case list():
                return {"values": value}
            case _:
                return value

    @model_validator(mode="after")
    def _fits(self) -> "ValueType":
        if (self.type is None) == (self.values is None):
            raise WrongError("either type or values is needed", "write type: bool, or values: [open, closed]")
        if self.values is not None:
            if len(self.values) < 2:
                raise WrongError("values needs at least two words")
            if len(set(self.values)) < len(self.values):
                raise WrongError("values has a word twice")
        if self.range is not None:
            if self.kind not in (Kind.INT, Kind.FLOAT):
                raise WrongError("only numbers have a range", "remove range, or set type: int or type: float")
            if self.range[0] >= self.range[1]:
                raise WrongError("the range is empty", "write the lowest number first")
            if self.kind is Kind.INT and math.ceil(self.range[0]) > math.floor(self.range[1]):
                raise WrongError("no whole number is in the range", "widen it, or set type: float")
        return self

    @property
    def kind(self) -> Kind:
        return Kind.CHOICE if self.type is None else Kind(self.type)

    def fit(self, value: object) -> Value | None:
        """The value as this type has it (a whole number becomes a float where floats are due), or None."""
        match self.kind:
            case Kind.BOOL:
                return value if isinstance(value, bool) else None
            case Kind.INT | Kind.FLOAT:
                return self._fit_number(value)
            case Kind.TEXT:
                return value if isinstance(value, str) and len(value) <= MAX_TEXT else None
            case Kind.CHOICE:
                return value if isinstance(value, str) and self.values and value in self.values else None

    def _fit_number(self, value: object) -> int | float | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if isinstance(value, float) and (self.kind is Kind.INT or not math.isfinite(value)):
            return None
        if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
            return None
        if self.range is not None and not self.range[0] <= value <= self.range[1]:
            return None
        return float(value) if self.kind is Kind.FLOAT else value

    def describe(self) -> str:
        """`a whole number from 0 to 100`"""
        within = f" from {self.range[0]:g} to {self.range[1]:g}" if self.range else ""
        match self.kind:
            case Kind.BOOL:
                return "true or false"
            case Kind.INT:
                return f"a whole number{within}"
            case Kind.FLOAT:
                return f"a number{within}"
            case Kind.TEXT:
                return "a text"
            case Kind.CHOICE:
                return "one of " + ", ".join(self.values or ())

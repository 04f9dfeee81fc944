"""Reads schedules of faults that people wrote: a YAML or JSON list, alone or under `faults:`.

    faults:
    - {fault: crash, at: 10s, node: n03}
    - {fault: partition, at_ms: 20000, from: [n01, n02], for: 500ms}

A field whose name ends in `_ms` takes a number of milliseconds; without the ending it takes a duration with
its unit. A mistake is told with the fault that it is in, counted from 1, and its line.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, SequenceNode

from comesh.deployment.problems import WrongError, did_you_mean, quote
from comesh.deployment.units import parse_duration_ms
from comesh.sim.fault_model import DRAWN, KINDS, Fault, ScheduleError
from comesh.sim.fault_schedules import Schedule, yaml_format


class FaultsFile(msgspec.Struct, frozen=True):
    """A parsed file: its faults in their own order, with the line of each."""

    faults: tuple[Fault, ...]
    lines: tuple[int, ...]

    @property
    def schedule(self) -> Schedule:
        return Schedule(self.faults)

    def place_of(self, fault: Fault | None) -> tuple[int, int] | None:
        """Returns the number of this fault in the file, from 1, and its line; None if it is not from the
        file."""
        for number, (one, line) in enumerate(zip(self.faults, self.lines, strict=True), start=1):
            if one is fault:
                return number, line
        return None


def parse_schedule(text: str) -> Schedule:
    """Parse a schedule from JSON or YAML."""
    return parse_faults(text).schedule


def parse_faults(text: str) -> FaultsFile:
    """Parse faults with their lines; ScheduleError says which fault, what is wrong, and the likely fix."""
    entries = _entries(_tree(text))
    lines = _lines(text, len(entries))
    faults = []
    for number, (entry, line) in enumerate(zip(entries, lines, strict=True), start=1):
        try:
            faults.append(_fault(entry))
        except WrongError as wrong:
            kind = entry.get("fault") if isinstance(entry, dict) else None
            known = isinstance(kind, str) and kind in KINDS
            told = f"fault {number} ({kind})" if known else f"fault {number}"
            raise ScheduleError(f"{told}: {wrong}", line=line) from wrong
    return FaultsFile(tuple(faults), lines)


def written_names(kind: type[Fault]) -> dict[str, msgspec.structs.FieldInfo]:
    """Returns the fields of a kind of fault by their names in files, the time first."""
    fields = sorted(msgspec.structs.fields(kind), key=lambda field: field.name != "at_ms")
    return {field.encode_name: field for field in fields}


def _tree(text: str) -> object:
    """Parse JSON first, then YAML: JSON is nearly YAML, but for a few odd characters."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        pass
    try:
        return yaml_format().load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(str(error.problem or error.context or "it cannot be read").split())
        raise ScheduleError(f"not YAML: {what}", line=0 if mark is None else mark.line + 1) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise ScheduleError("not YAML: it cannot be read") from error


def _entries(tree: object) -> list[Any]:
    if isinstance(tree, dict):
        unknown = [key for key in tree if key != "faults"]
        if unknown:
            raise ScheduleError(
                f"unknown key {quote(unknown[0])}; write a list of faults, or one under faults:"
            )
        tree = tree.get("faults")
    if tree is None:
        return []
    if not isinstance(tree, list):
        raise ScheduleError(f"expected a list of faults, not {quote(tree)}")
    return tree


def _lines(text: str, count: int) -> tuple[int, ...]:
    """Returns the line of each fault, from 1; 0 where it is unknown."""
    try:
        root = yaml_format().compose(text)
    except (YAMLError, ValueError, RecursionError):
        return (0,) * count
    if isinstance(root, MappingNode) and root.value:
        root = root.value[0][1]
    found = [node.start_mark.line + 1 for node in root.value] if isinstance(root, SequenceNode) else []
    return tuple(found) if len(found) == count else (0,) * count


def _fault(entry: object) -> Fault:
    if not isinstance(entry, dict):
        raise WrongError(
            f"expected a mapping such as {{fault: crash, at: 10s, node: n03}}, not {quote(entry)}"
        )
    name = entry.get("fault")
    if name is None:
        raise WrongError("it does not say which kind of fault", "write fault: crash, or another kind")
    if not isinstance(name, str) or name not in KINDS:
        near = did_you_mean(str(name), KINDS)
        raise WrongError(f"unknown kind of fault {quote(name)}", near or f"known: {', '.join(sorted(KINDS))}")
    kind = KINDS[name]
    fields = written_names(kind)
    values = _in_milliseconds({key: value for key, value in entry.items() if key != "fault"}, fields)
    for key, value in values.items():
        _check_value(key, value, fields[key])
    missing = [field for key, field in fields.items() if field.required and key not in values]
    if missing:
        needs = " and ".join(f"{_shown_name(field.encode_name)} ({_meta(field).title})" for field in missing)
        raise WrongError(f"it needs {needs}")
    return msgspec.convert({"fault": name, **values}, kind)


def _in_milliseconds(
    entry: Mapping[Any, Any], fields: Mapping[str, msgspec.structs.FieldInfo]
) -> dict[str, Any]:
    """Convert `at: 5s` to `at_ms: 5000`."""
    values: dict[str, Any] = {}
    for key, given in entry.items():
        name, value = key, given
        if key not in fields:
            name = f"{key}_ms"
            if name not in fields:
                known = [*map(_shown_name, fields), *(field for field in fields if field.endswith("_ms"))]
                near = did_you_mean(str(key), known)
                listed = f"it takes {', '.join(map(_shown_name, fields))}"
                raise WrongError(f"unknown field {quote(key)}", near if "mean" in near else listed)
            value = _duration_ms(key, given, signed=_signed(fields[name]))
        if name in values:
            raise WrongError(f"{_shown_name(name)} and {name} say the same thing", "keep one of them")
        values[name] = value
    return values


def _signed(field: msgspec.structs.FieldInfo) -> bool:
    """True if a duration may be negative."""
    try:
        msgspec.convert(-1.0, field.type)
    except msgspec.ValidationError:
        return False
    return True


def _duration_ms(key: str, value: object, *, signed: bool) -> float | None:
    if value is None:
        return None
    negative = signed and isinstance(value, str) and value.startswith("-")
    try:
        duration_ms = parse_duration_ms(value[1:] if negative and isinstance(value, str) else value)
    except WrongError as wrong:
        raise WrongError(f"{key}: {wrong.what}", wrong.fix) from wrong
    return float(-duration_ms if negative else duration_ms)


def _check_value(key: str, value: object, field: msgspec.structs.FieldInfo) -> None:
    try:
        msgspec.convert(value, field.type)
    except msgspec.ValidationError as wrong:
        if key.endswith("_ms") and isinstance(value, str):
            fix = f"{key} is a number of milliseconds; with a unit write {_shown_name(key)}: 5s"
        else:
            fix = f"expected: {'milliseconds' if key.endswith('_ms') else _meta(field).title}"
            if key.endswith("_ms") and not _signed(field):
                fix += " from 0 on"
        raise WrongError(f"{key}: {quote(value)} does not fit", fix) from wrong


def _shown_name(key: str) -> str:
    """Convert at_ms to at."""
    return key.removesuffix("_ms")


def _meta(field: msgspec.structs.FieldInfo) -> msgspec.Meta:
    """Returns what a field takes (title) and what it means (description), as its class says."""
    for meta in getattr(field.type, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta) and meta.title is not None:
            return meta
    raise TypeError(f"field {field.name} says neither what it takes nor what it means")


# -- tables of docs/simulator.md; a test holds them against the page ---------------------------------------


def kinds_table() -> str:
    """Returns the table of kinds of faults and their fields."""
    rows = ["| fault | what happens | fields besides `at` |", "| --- | --- | --- |"]
    for name, kind in KINDS.items():
        happens = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
        fields = [_field_words(field) for field in written_names(kind).values() if field.name != "at_ms"]
        rows.append(f"| `{name}` | {happens} | {', '.join(fields)} |")
    return "\n".join(rows) + "\n"


def fields_table() -> str:
    """Returns the table of fields, what they take and mean; fields that mean another thing elsewhere have two
    rows."""
    rows = {"| field | takes | meaning |": None, "| --- | --- | --- |": None}
    for kind in KINDS.values():
        for name, field in written_names(kind).items():
            meta = _meta(field)
            rows[f"| `{_shown_name(name)}` | {meta.title} | {meta.description} |"] = None
    return "\n".join(rows) + "\n"


def classes_table() -> str:
    """Returns the table of classes of random faults."""
    rows = ["| class | what is drawn |", "| --- | --- |"]
    rows += [f"| `{name}` | {drawn.meaning} |" for name, drawn in DRAWN.items()]
    return "\n".join(rows) + "\n"


def _field_words(field: msgspec.structs.FieldInfo) -> str:
    name = f"`{_shown_name(field.encode_name)}`"
    if field.required:
        return name
    if field.default is msgspec.NODEFAULT:
        return f"{name} (optional)"
    default = {True: "true", False: "false", None: "", (): ""}.get(field.default, str(field.default))
    return f"{name} ({default})" if default else f"{name} (optional)"

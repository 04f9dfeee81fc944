"""Compares two documents, and says in words what the difference means for a running mesh.

Places, durations and steps are told as a person writes them. One that went and one that came with all the
same is told as renamed, but for the mesh these are two: `consequences` says what follows.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, Final

import msgspec
from pydantic import BaseModel

from comesh.core.plan import Place
from comesh.core.program import Program
from comesh.deployment.change import Change, What
from comesh.deployment.model import Deployment, Step
from comesh.deployment.units import show_duration, show_length
from comesh.deployment.values import ValueType

NEXT_START: Final = ("membership_period",)
"""Settings that a node takes when it starts."""
MAX_NAMED: Final = 8
_ABSENT: Final = "nothing"


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """Orders that people gave to a running mesh."""

    paused: Mapping[str, str | None] = {}
    """Routines, with who paused each; None: that is not known. Others are not paused, or all are."""
    maintained: Mapping[str, str | None] = {}
    """Devices, with who maintains each; None: that is not known."""


def changes(before: Deployment, after: Deployment) -> tuple[Change, ...]:
    """Returns the differences, in the order of the document. None: the documents mean the same."""
    return (
        *_named(before, after),
        *_settings(before, after),
        *_entries("node", before.nodes, after.nodes),
        *_entries("device", before.devices, after.devices),
        *_entries("routine", before.routines, after.routines),
    )


def _named(before: Deployment, after: Deployment) -> Iterator[Change]:
    if before.name != after.name:
        detail = f"{before.name or _ABSENT} -> {after.name or _ABSENT}"
        yield Change(kind="document", name="name", what=What.CHANGED, details=(detail,))


def _settings(before: Deployment, after: Deployment) -> Iterator[Change]:
    old, new = _flat(before.settings), _flat(after.settings)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            detail = f"{old.get(name, _ABSENT)} -> {new.get(name, _ABSENT)}"
            yield Change(kind="setting", name=name, what=What.CHANGED, details=(detail,))


def _entries(kind: str, before: Mapping[Any, BaseModel], after: Mapping[Any, BaseModel]) -> Iterator[Change]:
    gone = [name for name in before if name not in after]
    came = [name for name in after if name not in before]
    for name in gone:
        heir = next((one for one in came if after[one] == before[name]), None)
        if heir is None:
            yield Change(kind=kind, name=name, what=What.REMOVED)
        else:
            came.remove(heir)
            yield Change(kind=kind, name=name, what=What.RENAMED, details=(heir,))
    for name in came:
        details = tuple(f"{path}: {text}" for path, text in _told(after[name]))
        yield Change(kind=kind, name=name, what=What.ADDED, details=details)
    for name, entry in after.items():
        if name in before and before[name] != entry:
            details = tuple(_differences(before[name], entry))
            yield Change(kind=kind, name=name, what=What.CHANGED, details=details)


def _told(entry: BaseModel) -> Iterator[tuple[str, str]]:
    """Returns the written keys of a new entry, without those that have their default."""
    for name, field in type(entry).model_fields.items():
        value = getattr(entry, name)
        if value != field.get_default(call_default_factory=True):
            yield _label(name), _text(name, value)


def _differences(before: BaseModel, after: BaseModel) -> Iterator[str]:
    for name in type(after).model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        if name == "do":
            yield from _steps(old, new)
        elif isinstance(old, dict | BaseModel) and isinstance(new, dict | BaseModel):
            flat_old, flat_new = _flat(old), _flat(new)
            for path in sorted(flat_old.keys() | flat_new.keys()):
                if flat_old.get(path) != flat_new.get(path):
                    was, now = flat_old.get(path, _ABSENT), flat_new.get(path, _ABSENT)
                    yield f"{_label(name)}.{path}: {was} -> {now}"
        else:
            yield f"{_label(name)}: {_text(name, old)} -> {_text(name, new)}"


def _steps(old: tuple[Step, ...], new: tuple[Step, ...]) -> Iterator[str]:
    before, after = [_step(one) for one in old], [_step(one) for one in new]
    for how, first, last, to, until in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if how != "equal":
            was, now = " and ".join(before[first:last]), " and ".join(after[to:until])
            yield f"do: {was or _ABSENT} -> {now or _ABSENT}"


def _flat(value: Any, path: str = "", name: str = "") -> dict[str, str]:
    """Texts by their path in the document."""
    if isinstance(value, BaseModel) and not isinstance(value, ValueType | Step):
        fields = [(field, _label(field), getattr(value, field)) for field in type(value).model_fields]
    elif isinstance(value, dict):
        fields = [(str(key), str(key), one) for key, one in value.items()]
    else:
        return {path: _text(name, value)}
    flat: dict[str, str] = {}
    for field, label, one in fields:
        flat |= _flat(one, f"{path}.{label}" if path else label, field)
    return flat


def _label(name: str) -> str:
    return name.removesuffix("_ms")


def _text(name: str, value: Any) -> str:
    match value:
        case None:
            return _ABSENT
        case bool():
            return str(value).lower()
        case int() if name.endswith("_ms"):
            return show_duration(value)
        case Place(x, y, z):
            return f"[{', '.join(map(show_length, (x, y, z) if z else (x, y)))}]"
        case ValueType():
            return value.describe()
        case Step():
            return _step(value)
        case tuple() | list():
            return ", ".join(_text("", one) for one in value) or _ABSENT
        case BaseModel() | dict():
            return ", ".join(f"{path} {text}" for path, text in _flat(value).items() if text != _ABSENT)
        case _:
            return str(value)


def _step(step: Step) -> str:
    argument = "" if step.argument is None else f" {_text('', step.argument)}"
    more = [
        f"takes {show_duration(step.takes_ms)}" if step.takes_ms is not None else "",
        f"timeout {show_duration(step.timeout_ms)}" if step.timeout_ms is not None else "",
        "best effort" if step.best_effort else "",
        "together with the one before" if step.together else "",
    ]
    extra = ", ".join(filter(None, more))
    return f"{step.device} {step.command}{argument}" + (f" ({extra})" if extra else "")


# -- what it means -------------------------------------------------------------------------------------------


def consequences(
    before: Program, after: Program, found: Iterable[Change], orders: Orders | None = None
) -> tuple[str, ...]:
    """What follows for a mesh that runs by the one and is to run by the other. orders None: nobody knows
    what is paused and maintained."""
    found = tuple(found)
    if orders is None:
        orders = Orders(
            paused=dict.fromkeys(before.group_of_routine), maintained=dict.fromkeys(before.group_of_device)
        )
    return (
        *_of_groups(before, after),
        *_of_nodes(before, after),
        *_of_devices(before, after),
        *_of_routines(before, after),
        *_of_orders(before, after, found, orders),
        *_of_settings(found),
    )


def _of_groups(before: Program, after: Program) -> Iterator[str]:
    for cluster in after.plan.clusters:
        if cluster.group not in before.plan.genesis:
            founders = ", ".join(after.plan.genesis[cluster.group])
            yield f"group {cluster.group} is new: {_names(cluster.devices)}; begun by {founders}"
    for cluster in before.plan.clusters:
        if cluster.group not in after.plan.genesis:
            yield f"group {cluster.group} has no device any more: it serves what is left to its end"
    old, new = before.plan.settings.k, after.plan.settings.k
    if old != new:
        yield f"groups have {new} {'member' if new == 1 else 'members'} instead of {old}"


def _of_nodes(before: Program, after: Program) -> Iterator[str]:
    for node in before.node_since:
        if node not in after.node_since:
            yield f"node {node} hands its seats over, and ends by itself"
    for node in after.node_since:
        if node not in before.node_since:
            yield f"node {node} gets seats once it runs: start it from `comesh versions --export FILE`"


def _of_devices(before: Program, after: Program) -> Iterator[str]:
    for device, group in before.group_of_device.items():
        if device not in after.group_of_device:
            yield f"device {device}: runs that hold or wait for it are served first, and nobody new"
        elif after.group_of_device[device] != group:
            yield f"device {device} moves from group {group} to {after.group_of_device[device]}"
    for device, group in after.group_of_device.items():
        if device not in before.group_of_device and group in before.plan.genesis:
            yield f"device {device} is looked after by group {group}"


def _of_routines(before: Program, after: Program) -> Iterator[str]:
    for routine, group in before.group_of_routine.items():
        now = after.group_of_routine.get(routine)
        if now is None:
            yield f"routine {routine}: a live run finishes; firings that wait behind it are dropped, and told"
        elif now != group:
            yield (
                f"routine {routine} moves from group {group} to {now}: a live run finishes there; its "
                "trigger and its cooldown begin anew"
            )
        elif before.routines[routine].steps != after.routines[routine].steps:
            yield f"routine {routine}: a live run finishes with the commands that it began with"


def _of_orders(before: Program, after: Program, found: Iterable[Change], orders: Orders) -> Iterator[str]:
    """Orders are kept by the group, under the name that they were given for: what does not go over."""
    heirs = {(one.kind, one.name): one.details[0] for one in found if one.what is What.RENAMED}
    kept: tuple[tuple[str, Mapping[str, str | None], Mapping[Any, str], Mapping[Any, str], str, str], ...] = (
        ("routine", orders.paused, before.group_of_routine, after.group_of_routine, "a pause", "paused"),
        (
            "device",
            orders.maintained,
            before.group_of_device,
            after.group_of_device,
            "maintenance",
            "in maintenance",
        ),
    )
    for kind, standing, was_in, is_in, order, state in kept:
        for name, by in standing.items():
            heir, group = heirs.get((kind, name)), is_in.get(name)
            if name not in was_in or group == was_in[name]:
                continue
            if by is not None:
                yield f"{kind} {name} is {state}, by {by}: {_lost(name, heir, group)}"
            elif heir is not None:
                yield f"{kind} {name}: {order} of it does not go over to {heir}"
            elif group is not None:
                yield f"{kind} {name}: {order} of it does not go over to group {group}"


def _lost(name: str, heir: str | None, group: str | None) -> str:
    if heir is not None:
        return f"{heir} will not be; order it again for {heir}"
    if group is not None:
        return f"in group {group} it will not be; order it again"
    return f"if {name} comes back with a later version it will not be"


def _of_settings(found: Iterable[Change]) -> Iterator[str]:
    for change in found:
        if change.kind == "setting" and change.name in NEXT_START:
            yield f"setting {change.name} counts for each node from its next start"


def _names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more

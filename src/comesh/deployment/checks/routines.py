"""Routines: one trigger, something to do, and commands that their devices understand."""

from collections.abc import Iterator

from comesh.deployment.draft import Draft
from comesh.deployment.id_names import find, legal_names
from comesh.deployment.model import Command, Device, Routine, Step
from comesh.deployment.problems import Complaint, Path, complain, did_you_mean, quote
from comesh.deployment.units import show_duration
from comesh.deployment.values import Kind, ValueType

MIN_EVERY_MS = 1000
_TRIGGERS = {"when": "when", "on_event": "on_event", "every_ms": "every", "at": "at", "cron": "cron"}
_OLD_WORDS = {"on": "true", "yes": "true", "y": "true", "off": "false", "no": "false", "n": "false"}


def one_trigger(draft: Draft) -> Iterator[Complaint]:
    for routine_id, routine in draft.routines.items():
        path: Path = ("routines", routine_id)
        triggers = [key for field, key in _TRIGGERS.items() if getattr(routine, field) is not None]
        if len(triggers) > 1:
            what = f"the routine has {len(triggers)} triggers: {', '.join(triggers)}"
            fix = "write one routine for each; a time can also stand in the clause, as now.time"
            yield complain(*path, triggers[-1], what=what, fix=fix, at_key=True)
        if routine.for_ms is not None and routine.when is None and draft.sound(*path, "when"):
            yield _alone(path, "for", "when")
        if routine.days is not None and routine.at is None and draft.sound(*path, "at"):
            yield _alone(path, "days", "at")
        if routine.every_ms is not None and routine.every_ms < MIN_EVERY_MS:
            yield complain(*path, "every", what="a schedule this dense is not kept", fix="at least 1s")
        if not routine.do and draft.sound(*path, "do"):
            yield complain(
                *path, what="the routine does nothing", fix="add do: and its commands", at_key=True
            )


def _alone(path: Path, key: str, partner: str) -> Complaint:
    what = f"'{key}' is given without '{partner}'"
    return complain(*path, key, what=what, fix=f"add {partner}:, or remove {key}:", at_key=True)


def steps_fit(draft: Draft) -> Iterator[Complaint]:
    for routine_id, routine in draft.routines.items():
        for index, step in enumerate(routine.do):
            path: Path = ("routines", routine_id, "do", index)
            if draft.sound(*path):
                yield from _step_fits(draft, routine, step, path)
        yield from _together_fits(routine, ("routines", routine_id, "do"))


def _together_fits(routine: Routine, path: Path) -> Iterator[Complaint]:
    """Checks that no device is to do two things at a time."""
    busy: set[str] = set()
    for index, step in enumerate(routine.do):
        if not step.together:
            busy = {step.device}
            continue
        if index == 0:
            what = "the first command has none before it to go together with"
            yield complain(*path, index, "together", what=what, fix="remove together")
        elif step.device in busy:
            what = f"{quote(step.device)} is told two things at once"
            yield complain(*path, index, "together", what=what, fix="remove together, or one of the commands")
        busy.add(step.device)


def _step_fits(draft: Draft, routine: Routine, step: Step, path: Path) -> Iterator[Complaint]:
    device = draft.device(step.device)
    if device is None:
        if not draft.exists("devices", step.device):
            yield _unknown_device(draft, step.device, path)
        return
    command = find(device.commands, step.command)
    if command is None:
        if draft.sound("devices", step.device, "commands", step.command):
            yield _unknown_command(device, step, path)
        return
    if not draft.sound("devices", step.device, "commands", step.command):
        return
    yield from _argument_fits(command, step, path)
    takes_ms = step.lasts_ms(command)
    if step.timeout_ms is not None and step.timeout_ms <= takes_ms:
        timeout, takes = show_duration(step.timeout_ms), show_duration(takes_ms)
        what = f"the timeout of {timeout} ends before the command, which takes {takes}"
        yield complain(*path, "timeout", what=what, fix="lengthen timeout, or shorten takes")
    if routine.undo and command.sets is None and command.toggles is None:
        what = f"the routine has undo, but nobody knows what {quote(step.command)} changes"
        fix = f"add sets: to devices.{step.device}.commands.{step.command}, or remove undo"
        yield complain(*path, "command", what=what, fix=fix)


def _unknown_device(draft: Draft, name: str, path: Path) -> Complaint:
    if draft.exists("nodes", name):
        what = f"{quote(name)} is a node, not a device"
        return complain(*path, "device", what=what, fix="name a device that the node hosts")
    fix = did_you_mean(name, legal_names(draft.names("devices")))
    return complain(*path, "device", what=f"unknown device {quote(name)}", fix=fix)


def _unknown_command(device: Device, step: Step, path: Path) -> Complaint:
    if not device.commands:
        what = f"{quote(step.device)} is a sensor: it has no commands"
        return complain(*path, "device", what=what, fix="name a device that can act, or give it commands:")
    what = f"{quote(step.device)} has no command {quote(step.command)}"
    return complain(*path, "command", what=what, fix=did_you_mean(step.command, legal_names(device.commands)))


def _argument_fits(command: Command, step: Step, path: Path) -> Iterator[Complaint]:
    wanted = command.argument
    if wanted is None:
        if step.argument is not None:
            yield complain(
                *path, "argument", what=f"{quote(step.command)} takes no argument", fix="remove it"
            )
    elif step.argument is None:
        what = f"{quote(step.command)} needs an argument"
        yield complain(*path, what=what, fix=f"add argument: {wanted.describe()}")
    elif wanted.fit(step.argument) is None:
        what = f"{quote(step.argument)} is not {wanted.describe()}"
        yield complain(*path, "argument", what=what, fix=_likely_argument(wanted, step.argument))


def _likely_argument(wanted: ValueType, given: object) -> str:
    """A word where true or false is due: YAML 1.1 knew more of them; or quotes that make a word of it."""
    if wanted.kind is not Kind.BOOL or not isinstance(given, str):
        return ""
    if given.lower() in ("true", "false"):
        return f"write {given.lower()}, without quotes and in lower case"
    truth = _OLD_WORDS.get(given.lower())
    return "" if truth is None else f"write {truth}: on, off, yes and no are words here, as in YAML 1.2"

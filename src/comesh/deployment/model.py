"""The deployment document as typed values: what a person wrote, checked in form and with defaults filled.

Field names carry their unit; the document's keys are the aliases. `checks` says whether the parts fit
together, `planning` hands them to the core.
"""

from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import Field, StringConstraints, field_validator, model_validator

from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.plan import Place
from comesh.core.values import Value
from comesh.deployment.policy_names import LockStrategyName
from comesh.deployment.problems import WrongError, did_you_mean, quote
from comesh.deployment.settings import Settings
from comesh.deployment.values import (
    DocumentModel,
    DurationMs,
    Flag,
    PlaceField,
    Text,
    ValueType,
)

DRIVERS = ("bacnet", "coap", "http", "modbus", "mqtt", "virtual")
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MAX_STEPS = 200

Option = Any
"""An option of a driver, which alone knows what it means: texts, numbers, lists, mappings, secrets."""


class Node(DocumentModel):
    """A computer that runs CoMesh."""

    name: Text | None = Field(default=None, description="For people.")
    place: PlaceField = Field(description="Where it is: [x, y, z], from an origin of your choice.")
    power_domain: Text | None = Field(
        default=None, description="Nodes of one domain lose power together. Left out: a domain of its own."
    )
    address: (
        Annotated[Text, StringConstraints(pattern=r"^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$")]
        | None
    ) = Field(default=None, description="host:port of the node, where it is not found by itself.")

    @field_validator("address")
    @classmethod
    def _port_exists(cls, address: str | None) -> str | None:
        if address is not None and not 1 <= int(address.rsplit(":", 1)[1]) <= 65_535:
            raise WrongError(f"{quote(address)} has no such port", "ports go from 1 to 65535")
        return address


class Driver(DocumentModel):
    """How a device is reached."""

    type: Text = Field(description="The technology: " + ", ".join(DRIVERS) + ".")
    options: dict[str, Option] = Field(
        default={}, description="What this driver needs, such as host or topic."
    )

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, value: Any) -> Any:
        match value:
            case str():
                return {"type": value}
            case dict() if "type" in value:
                options = {key: option for key, option in value.items() if key != "type"}
                return {"type": value["type"], "options": options}
            case dict():
                raise WrongError(
                    "the driver has no type", "write type: " + ", type: ".join(DRIVERS[-2:]) + " ..."
                )
            case _:
                return value

    @field_validator("type")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in DRIVERS:
            raise WrongError(f"unknown driver {quote(name)}", did_you_mean(name, DRIVERS))
        return name


class Command(DocumentModel):
    """Something that a device can be told to do."""

    argument: ValueType | None = Field(default=None, description="What it takes; left out: nothing.")
    idempotent: Flag = Field(
        default=True, description="Doing it twice is doing it once: set is, toggle is not."
    )
    takes_ms: DurationMs = Field(
        default=0, alias="takes", description="How long the device needs, such as the travel of a blind."
    )
    sets: Text | dict[str, Value] | None = Field(
        default=None,
        description="What it changes, for reading back and undo: the reading that becomes the argument, or "
        "readings with their new values.",
    )
    toggles: Text | None = Field(
        default=None,
        description="The bool reading that it turns into its opposite; such a command is not idempotent.",
    )

    @model_validator(mode="before")
    @classmethod
    def _toggling_twice_is_not_once(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("toggles") is None:
            return value
        if value.get("idempotent") is True:
            raise WrongError("toggling twice is not toggling once", "remove idempotent")
        return {**value, "idempotent": value.get("idempotent", False)}


class Device(DocumentModel):
    """Anything sensed or actuated."""

    name: Text | None = Field(default=None, description="For people.")
    place: PlaceField | None = Field(default=None, description="Where it is; left out: where its node is.")
    on: Text | None = Field(default=None, description="The node that hosts it, by a wire or as part of it.")
    readings: dict[str, ValueType] = Field(default={}, description="What it reports, by name.")
    event: Flag = Field(
        default=False, description="Its readings are events: each counts, none is lost or taken twice."
    )
    commands: dict[str, Command] = Field(default={}, description="What it can be told to do, by name.")
    driver: Driver = Field(default=Driver(type="virtual"), description="How it is reached.")

    @field_validator("commands", mode="before")
    @classmethod
    def _bare_commands(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: {} if command is None else command for name, command in value.items()}


STEP_KEYS = ("device", "command", "argument", "takes", "timeout", "best_effort", "together")


class Step(DocumentModel):
    """One command of a routine."""

    device: Text = Field(description="The device.")
    command: Text = Field(description="One of its commands.")
    argument: Value | None = Field(default=None, description="What the command takes.")
    takes_ms: DurationMs | None = Field(
        default=None,
        alias="takes",
        description="How long to wait for it here; left out: as the command says.",
    )
    timeout_ms: DurationMs | None = Field(
        default=None, alias="timeout", description="After this long it failed; left out: as the settings say."
    )
    best_effort: Flag = Field(
        default=False, description="The run goes on if this fails; otherwise it must work."
    )
    together: Flag = Field(
        default=False, description="At once with the command before it, instead of after that is done."
    )

    @model_validator(mode="before")
    @classmethod
    def _is_a_command(cls, value: Any) -> Any:
        """Refuses a step of another kind at once, instead of each key that it lacks."""
        if isinstance(value, dict) and not value.keys() & {"device", "command"}:
            others = [key for key in value if key not in STEP_KEYS]
            if len(others) == 1 and not get_close_matches(others[0], ("device", "command")):
                what = f"there is no step {quote(others[0])}: each step is a command of a device"
                raise WrongError(what, "write {device: ..., command: ...}; takes: says how long it lasts")
        return value

    def lasts_ms(self, command: Command) -> int:
        """Returns how long the step takes, where this is its command."""
        return command.takes_ms if self.takes_ms is None else self.takes_ms


class Routine(DocumentModel):
    """Commands that run together, holding the locks of all their devices, when something happens."""

    name: Text | None = Field(default=None, description="For people.")
    when: Text | None = Field(
        default=None,
        description="A clause; fires when it becomes true, such as hall_temp.celsius > 26 && door.open.",
    )
    for_ms: DurationMs | None = Field(
        default=None, alias="for", description="The clause must stay true for this long first."
    )
    on_event: Text | None = Field(
        default=None, description="Fires on an event, such as button.press or button.press == 'double'."
    )
    every_ms: DurationMs | None = Field(
        default=None, alias="every", description="Fires again and again, counted from midnight UTC."
    )
    at: tuple[Text, ...] | None = Field(
        default=None, description="Times of day, such as 07:30, sunset or sunset-30m; one or a list."
    )
    days: tuple[Text, ...] | None = Field(
        default=None,
        description="For at: mon, tue, wed, thu, fri, sat, sun, or a range such as mon-fri; "
        "left out: every day.",
    )
    cron: Text | None = Field(default=None, description="A cron line of five fields.")
    cooldown_ms: DurationMs = Field(
        default=0, alias="cooldown", description="Not again within this long after a firing."
    )
    strategy: LockStrategyName | None = Field(
        default=None, description="How to get the locks; left out: as the settings say."
    )
    undo: Flag = Field(default=False, description="If the run fails, put back what it changed.")
    do: tuple[Step, ...] = Field(default=(), description="The commands, in order.", max_length=MAX_STEPS)

    @field_validator("at", "days", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value


class Deployment(DocumentModel):
    """The whole document."""

    name: Text | None = Field(default=None, description="For people.")
    settings: Settings = Settings()
    nodes: dict[NodeId, Node] = Field(default={}, description="The computers that run CoMesh, by id.")
    devices: dict[DeviceId, Device] = Field(default={}, description="What is sensed and actuated, by id.")
    routines: dict[RoutineId, Routine] = Field(default={}, description="What happens when, by id.")

    def place_of(self, device: DeviceId) -> Place:
        """Returns the place of a device: its own, or that of the node that hosts it."""
        entry = self.devices[device]
        if entry.place is not None:
            return entry.place
        return self.nodes[NodeId(str(entry.on))].place

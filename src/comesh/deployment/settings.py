"""The settings of a deployment, their defaults, and the presets.

A preset is a small delta of the defaults; what the document says itself wins over both.
"""

from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from comesh.core.plan import Locality
from comesh.core.strategies import Batch, LockOrder
from comesh.deployment.policy_names import LeaderPolicyName, LockStrategyName, MemberPolicyName
from comesh.deployment.problems import WrongError, did_you_mean, quote
from comesh.deployment.values import DocumentModel, DurationMs, Flag, Number, Text, Whole

MAX_F = 20
MAX_CLUSTER_SIZE = 10_000
"""Maximum size of a cluster, as large as planning takes: one cluster of everything is possible."""


class MemberPolicy(StrEnum):
    """The built-in ones."""

    LSH_MIX = "lsh-mix"
    RANDOM = "random"


class Durability(StrEnum):
    BATCHED = "batched"
    STRICT = "strict"


class Timeouts(StrEnum):
    ESTIMATED = "estimated"
    FIXED = "fixed"


class LocksSettings(DocumentModel):
    """How routines get the locks of their devices."""

    strategy: LockStrategyName = Field(
        default="sequential",
        description="sequential: one after the other in one global order. optimistic: all at once, give all "
        "back on a refusal. priority: all at once, the older run goes first. Or one of your own. A routine "
        "may choose another.",
    )
    batch: Batch = Field(
        default=Batch.CLUSTER,
        description="cluster: the locks of one cluster in one message. none: one by one, as in the paper.",
    )
    order: LockOrder = Field(
        default=LockOrder.CLUSTER,
        description="The global order of sequential: by cluster, or by device id as in the paper.",
    )


class LshSettings(DocumentModel):
    """Locality-sensitive hashing: more tables or wider buckets give more candidates, more m fewer."""

    m: Annotated[Whole, Field(ge=1, le=16)] = Field(default=2, description="Hashes joined per table.")
    l: Annotated[Whole, Field(ge=1, le=16)] = Field(default=2, description="Tables.")
    r: Annotated[Number, Field(ge=0.1, le=1000)] = Field(
        default=4.0, description="Bucket width, in mean distances between neighbours."
    )
    jitter: Annotated[Number, Field(ge=0, le=1)] = Field(
        default=0.0, description="Noise on the places, in mean distances between neighbours; spreads load."
    )


class SelectionPolicy(DocumentModel):
    """How the nodes that look after devices are selected."""

    clusters: Locality = Field(default=Locality.LOCALITY, description="Which devices form a cluster.")
    members: MemberPolicyName = Field(
        default=str(MemberPolicy.LSH_MIX),
        description="lsh-mix: f+1 members near the cluster and f from anywhere. random: all from anywhere. "
        "Or one of your own.",
    )
    leaders: LeaderPolicyName = Field(
        default="spread",
        description="Who leads. locality: a near member. spread: of the near ones who leads the fewest "
        "devices. random: any member. Or one of your own.",
    )
    cluster_size: Annotated[Whole, Field(ge=1, le=MAX_CLUSTER_SIZE)] = Field(
        default=25, description="The most devices of one cluster."
    )
    power_domain_rule: Flag = Field(
        default=True, description="At most f members of a group from one power domain."
    )
    lsh: LshSettings = LshSettings()


class Location(DocumentModel):
    """Where on Earth the origin of the places is; sun times need it."""

    latitude: Annotated[Number, Field(ge=-90, le=90)] = Field(description="Degrees, north positive.")
    longitude: Annotated[Number, Field(ge=-180, le=180)] = Field(description="Degrees, east positive.")

    @model_validator(mode="before")
    @classmethod
    def _not_a_pair(cls, value: Any) -> Any:
        if isinstance(value, list):
            numbers = [quote(item) for item in value] if len(value) == 2 else ["47.4", "8.5"]
            fix = f"write {{latitude: {numbers[0]}, longitude: {numbers[1]}}}"
            raise WrongError("a location is a mapping", fix)
        return value


class Settings(DocumentModel):
    """What holds for the whole deployment."""

    preset: Literal["default", "paper", "central"] = Field(
        default="default",
        description="A set of defaults: default, those of the paper, or one node that looks after "
        "everything.",
    )
    f: Annotated[Whole, Field(ge=0, le=MAX_F)] = Field(
        default=1, description="Failures that a group survives; a group has 2f+1 nodes."
    )
    epoch_ms: DurationMs = Field(
        default=60_000, alias="epoch", description="How long a group serves before others take its place."
    )
    monitoring_ms: DurationMs = Field(
        default=1000, alias="monitoring", description="How often each device is asked."
    )
    lease_ms: DurationMs = Field(
        default=1000, alias="lease", description="How long a leader may act without hearing from its group."
    )
    membership_period_ms: DurationMs = Field(
        default=1000, alias="membership_period", description="How often a node probes another."
    )
    hop_ms: DurationMs = Field(
        default=10, alias="hop", description="The expected time of one radio hop; sizes the lease check."
    )
    command_timeout_ms: DurationMs = Field(
        default=5000, alias="command_timeout", description="How long a command may take beyond its duration."
    )
    flight_limit_ms: DurationMs = Field(
        default=10_000,
        alias="flight_limit",
        description="How long a command may stay in the air where the driver cannot say.",
    )
    durability: Durability = Field(
        default=Durability.BATCHED,
        description="batched: flushed to disk every 50 ms. strict: flushed before each acknowledgement.",
    )
    push: Flag = Field(default=True, description="Let devices report changes by themselves where they can.")
    timeouts: Timeouts = Field(
        default=Timeouts.ESTIMATED, description="Timeouts from measured round trips, or fixed ones."
    )
    seed: Annotated[Whole, Field(ge=0)] = Field(
        default=0, description="Decides all hashing; another seed gives other groups."
    )
    time_zone: Text = Field(default="UTC", description="For schedules and clauses, such as Europe/Zurich.")
    location: Location | None = Field(default=None, description="Needed for sunrise, sunset and sun.up.")
    locks: LocksSettings = LocksSettings()
    selection: SelectionPolicy = SelectionPolicy()

    @model_validator(mode="before")
    @classmethod
    def _apply_preset(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        preset = value.get("preset", "default")
        if not isinstance(preset, str) or preset not in PRESETS:
            known = did_you_mean(preset, PRESETS) if isinstance(preset, str) else ""
            raise WrongError(f"unknown preset {quote(preset)}", known or f"known: {', '.join(PRESETS)}")
        return overlay(PRESETS[preset], value)


PRESETS: MappingProxyType[str, dict[str, Any]] = MappingProxyType(
    {
        "default": {},
        # The evaluation's defaults with one time unit of 1 s. The lease covers four round trips of the
        # 2.4 hops that the paper measures to a quorum, and makes the epoch ten leases long.
        "paper": {
            "f": 2,
            "epoch": "200s",
            "lease": "20s",
            "hop": "1s",
            "push": False,
            "timeouts": "fixed",
            "locks": {"batch": "none", "order": "device"},
            "selection": {"power_domain_rule": False, "leaders": "locality"},
        },
        # What a hub would be: one cluster of everything, and one node that looks after it.
        # A hub stays where it is: its epoch ends once a year.
        "central": {"f": 0, "epoch": "365d", "selection": {"cluster_size": MAX_CLUSTER_SIZE}},
    }
)


def overlay(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """base with own on top; mappings are laid over each other, everything else replaces."""
    merged = dict(base)
    for key, value in own.items():
        below = merged.get(key)
        merged[key] = overlay(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged

"""Names of policies and strategies as a document has them: those that are registered, ours and others'.

A name that is not known after all packages were asked is refused: a node that ran by another policy than the
rest would select other groups.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema
from pydantic.types import Strict

from comesh.core.registry import NAME_PATTERN, Registry
from comesh.core.selection.policies import LEADER_POLICIES, MEMBER_POLICIES
from comesh.core.strategies import LOCK_STRATEGIES
from comesh.deployment.plugins import GROUP, load_installed
from comesh.deployment.problems import WrongError, did_you_mean, quote


def check_name(registry: Registry[Any], name: str) -> None:
    """WrongError: nothing of that name is registered here, nor by a package that is installed."""
    if registry.find(name) is not None:
        return
    failures = load_installed()
    if registry.find(name) is None:
        known = f"known here: {', '.join(registry.names())}"
        close = did_you_mean(name, registry.names())
        hints = [close] if close.startswith("did you mean") else []
        hints.append(known)
        hints += failures or [f"if it is your own, install its package ({GROUP}) on every node"]
        raise WrongError(f"unknown {registry.kind} {quote(name)}", "; ".join(hints))


def _known_in(registry: Registry[Any]) -> Any:
    def check(value: object) -> object:
        if isinstance(value, str):
            check_name(registry, value)
        return value

    own = {"type": "string", "pattern": NAME_PATTERN, "description": "Your own, by the name it registered."}
    return BeforeValidator(check), WithJsonSchema({"anyOf": [{"enum": registry.names()}, own]})


_members, _members_schema = _known_in(MEMBER_POLICIES)
_leaders, _leaders_schema = _known_in(LEADER_POLICIES)
_locks, _locks_schema = _known_in(LOCK_STRATEGIES)

MemberPolicyName = Annotated[str, Strict(), _members, _members_schema]
LeaderPolicyName = Annotated[str, Strict(), _leaders, _leaders_schema]
LockStrategyName = Annotated[str, Strict(), _locks, _locks_schema]

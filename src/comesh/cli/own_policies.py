"""Policies and strategies on the command line, by name; the user's own come from a file."""

from typing import Annotated, Any, NamedTuple

import typer
from msgspec.structs import replace

from comesh.cli.terminal import fail
from comesh.core.plan import SelectionSettings
from comesh.core.registry import Registry
from comesh.core.selection.policies import LEADER_POLICIES, MEMBER_POLICIES
from comesh.core.strategies import LOCK_STRATEGIES
from comesh.deployment.plugins import PluginError, load_plugin
from comesh.deployment.policy_names import check_name
from comesh.deployment.problems import WrongError

Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.PY",
        help="Your own policies and strategies: a file, or the name of a module; repeatable.",
    ),
]


class Names(NamedTuple):
    """Registered names of policies and of a strategy; None: the default."""

    members: str | None = None
    leaders: str | None = None
    strategy: str | None = None

    def checked(self, plugins: list[str] | None) -> "Names":
        """Returns the same names; ends the command where one of them is not registered, here or in a
        plug-in."""
        try:
            for plugin in plugins or []:
                load_plugin(plugin)
        except PluginError as wrong:
            fail(str(wrong))
        registries: tuple[Registry[Any], ...] = (MEMBER_POLICIES, LEADER_POLICIES, LOCK_STRATEGIES)
        for option, name, registry in zip(self._fields, self, registries, strict=True):
            if name is not None:
                try:
                    check_name(registry, name)
                except WrongError as wrong:
                    fail(f"--{option} {name}: {wrong}; or name its file with --plugin")
        return self

    def selection(self, f: int) -> SelectionSettings:
        settings = SelectionSettings(f=f)
        return replace(
            settings, members=self.members or settings.members, leaders=self.leaders or settings.leaders
        )

"""Every command's help, as a newcomer with 80 columns reads it."""

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from comesh.cli.help import MAX_SUMMARY, summary
from comesh.cli.main import COMMANDS, PANELS, app

WIDTH = {"COLUMNS": "80"}
ROOT: Any = get_command(app)


def commands(command: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands, with those of groups, by the words that call them."""
    names = command.list_commands(None) if hasattr(command, "list_commands") else ()
    for name in names:
        found = command.get_command(None, name)
        yield (*path, name), found
        yield from commands(found, (*path, name))


ALL = dict(commands())


def help_of(*path: str) -> str:
    shown = CliRunner().invoke(app, [*path, "--help"], env=WIDTH)
    assert shown.exit_code == 0, shown.output
    return shown.output


def names(command: Any) -> list[Any]:
    return [param for param in command.params if not getattr(param, "hidden", False)]


def test_every_command_is_in_one_section_and_says_what_it_does_on_one_line() -> None:
    shown = help_of()
    for panel, members in PANELS.items():
        _, _, section = shown.partition(f"{panel}:\n")
        lines = section.partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in lines] == list(members)
        for line in lines:
            assert line.rstrip().endswith("."), f"cut or wrapped: {line}"
            assert not line.rstrip().endswith("..."), line
            assert len(line) <= 80
    assert len(COMMANDS) == len(set(COMMANDS))


def test_a_command_that_simulates_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    for name in [name for name in sys.modules if name.startswith(("comesh.sim", "comesh.cli.sim"))]:
        monkeypatch.delitem(sys.modules, name)
    told = CliRunner().invoke(app, ["sim", "--devices", "50", "what"])
    assert told.exit_code == 2
    assert "needs numpy: pip install 'comesh[sim]'" in told.stderr
    assert "Needs: pip install 'comesh[sim]'." in CliRunner().invoke(app, ["--help"]).stdout


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_a_command_s_summary_is_a_short_sentence(path: tuple[str, ...]) -> None:
    first = summary(ALL[path].help)
    assert len(first) <= MAX_SUMMARY
    assert re.fullmatch(r"[A-Z][^.]*\.", first)
    assert f"\n  {first}\n" in help_of(*path)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_a_command_s_usage_and_types_are_names_that_people_read(path: tuple[str, ...]) -> None:
    shown = help_of(*path)
    usage = shown.partition("\n\n")[0]
    assert not re.search(r"[{}<>]|\[\[|\]\]", usage), usage
    assert not re.search(r"<[a-zA-Z]|list\[|x>=|<=x", shown), shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_option_and_argument_has_help(path: tuple[str, ...]) -> None:
    for param in names(ALL[path]):
        assert param.help and param.help[0].isupper(), f"{' '.join(path)}: {param.name}"


def test_usage_shows_what_may_be_left_out_and_what_may_be_repeated() -> None:
    assert help_of("set").startswith("Usage: comesh set [OPTIONS] DEVICE COMMAND [ARGUMENT]\n")
    assert help_of("validate").startswith("Usage: comesh validate [OPTIONS] FILE...\n")
    assert help_of("lab").startswith("Usage: comesh lab [OPTIONS] [NAME...]\n")
    assert help_of("keys", "revoke").startswith("Usage: comesh keys revoke [OPTIONS] [NODE...]\n")


def test_options_that_choose_a_node_have_a_section_of_their_own() -> None:
    own, _, which = help_of("devices").partition("Which node to ask:\n")
    assert "--down" in own and "--node" not in own
    assert "--node" in which and "--token-file" in which


def test_bounds_are_written_as_people_write_them() -> None:
    assert "1 to 1000" in help_of("plan")
    assert "0 or more" in help_of("demo")


def test_comesh_alone_shows_the_first_five_commands_and_where_the_rest_is() -> None:
    shown = CliRunner().invoke(app, [], env=WIDTH)
    assert shown.exit_code == 0
    steps = re.findall(r"^  comesh (\w+)", shown.output, re.MULTILINE)
    assert steps == ["demo", "new", "validate", "up", "status"]
    assert set(steps) <= set(COMMANDS)
    assert "comesh --help" in shown.output
    assert max(map(len, shown.output.splitlines())) <= 80


def test_a_group_of_commands_alone_shows_its_commands() -> None:
    for name in ("keys", "virtual"):
        shown = CliRunner().invoke(app, [name], env=WIDTH)
        assert "Commands:" in shown.output
        assert "..." not in shown.output.partition("Commands:")[2]


def test_help_has_no_colour_where_nobody_sees_it() -> None:
    assert "\x1b" not in help_of() + help_of("status")

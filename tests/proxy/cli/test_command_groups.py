"""Each command is declared in the file with its code, and its help has the usual form."""

import ast
from pathlib import Path

import pytest
import typer

from sluicegate.proxy.cli.commands import app
from tests.oracle.kafka_java import ROOT

GROUPS = sorted((ROOT / "proxy" / "cli").glob("*_commands.py"))
COMMANDS = app.registered_commands


@pytest.mark.parametrize("path", GROUPS, ids=lambda path: path.stem)
def test_every_function_of_a_command_group_is_registered(path: Path) -> None:
    registered = {
        command.callback.__name__
        for command in COMMANDS
        if command.callback is not None and command.callback.__module__.endswith(f".{path.stem}")
    }
    for function in ast.parse(path.read_text()).body:
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
            assert function.name in registered, (
                f"proxy/cli/{path.name}: {function.name} is not a command; decorate it with @commands.command(...), "
                f"and "
                "list a new group in proxy/cli/commands.py"
            )


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.callback.__name__)
def test_every_command_has_help_and_the_option_h(command: typer.models.CommandInfo) -> None:
    assert command.callback is not None
    name = command.callback.__name__
    assert (command.callback.__doc__ or "").strip(), f"{name} has no docstring, which is the help text"
    assert "-h" in (command.context_settings or {}).get("help_option_names", ()), (
        f"{name}: declare it with context_settings=HELP, so that -h is --help"
    )


def test_command_names_are_unique() -> None:
    names = [command.name or getattr(command.callback, "__name__", "") for command in COMMANDS]
    assert len(names) == len(set(names)), f"a name is declared twice among {names}"

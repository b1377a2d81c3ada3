"""The command line as data, out of the commands themselves: what its manual page and shells' completion are made of."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer


@dataclass(frozen=True, slots=True)
class Option:
    """An option, or an argument where `names` is empty. `takes`: what stands behind it, None for a switch."""

    names: tuple[str, ...]
    takes: str | None
    about: str
    required: bool
    repeated: bool

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it takes, where they are few: they are written `one|other`."""
        return tuple(self.takes.split("|")) if self.takes is not None and "|" in self.takes else ()

    @property
    def takes_file(self) -> bool:
        """Whether a file is to be named."""
        return self.takes == "FILE"


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it does, what it takes. `name` is empty for what stands before any command."""

    name: str
    about: str
    options: tuple[Option, ...]
    arguments: tuple[Option, ...]

    @property
    def in_short(self) -> str:
        """Its first words, up to a colon or the first sentence's end."""
        sentence = self.about.partition(". ")[0]
        return sentence.partition(":")[0].rstrip(".")

    @property
    def takes_file(self) -> bool:
        """Whether an argument of it is a file."""
        return any(argument.takes_file for argument in self.arguments)


_HELP = Option(("-h", "--help"), None, "Say what it does and takes, and end.", required=False, repeated=False)


def commands_of(app: typer.Typer) -> Iterator[Command]:
    """The whole first, then each command in the order of its help."""
    root: Any = typer.main.get_command(app)
    yield _command("", root)
    for name, command in root.commands.items():
        yield _command(name, command)


def _command(name: str, command: Any) -> Command:
    options = [_option(one) for one in command.params if one.param_type_name == "option"]
    arguments = [_option(one) for one in command.params if one.param_type_name == "argument"]
    return Command(name, " ".join((command.help or "").split()), (*options, _HELP), tuple(arguments))


def _option(one: Any) -> Option:
    is_option = one.param_type_name == "option"
    takes = None if is_option and one.is_flag else str(one.metavar or one.name.upper())
    about = " ".join((one.help or "").split())
    repeated = bool(one.multiple) or one.nargs == -1
    return Option(tuple(one.opts) if is_option else (), takes, about, bool(one.required), repeated)

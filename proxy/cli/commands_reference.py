"""Generates the page about all commands from their help texts.

`python -m sluicegate.proxy.cli.commands_reference > docs/commands.md` writes the page.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

import typer

from sluicegate.proxy.cli.commands import app

_WIDTH = 78  # this fits the column of the docs site
_HEAD = """# Commands

The commands of `sluicegate`. This page is generated from their help texts:
`python -m sluicegate.proxy.cli.commands_reference > docs/commands.md`. For `sluicegate-spark` see
[the pipeline](pipeline.md). Each command also has `--help`.
"""
_HELP = re.compile(r"(?:\n+Options:)?\n +-h, --help +Show this message and exit\.$")
"""The line about the option, with the heading if the command has no other option."""


def page() -> str:
    """Return the page."""
    group: Any = typer.main.get_command(app)
    return "\n".join([_HEAD, *(f"## {name}\n\n```text\n{text}\n```\n" for name, text in _helps(group, ""))])


def _helps(group: Any, around: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the help of each command.

    `around` contains the names of the groups that contain it, each followed by a blank.
    """
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from _helps(command, f"{around}{name} ")
            continue
        command.rich_markup_mode = None  # the default mode draws boxes, which are for terminals
        with command.make_context(f"sluicegate {around}{name}", [], resilient_parsing=True) as context:
            context.max_content_width = _WIDTH
            context.terminal_width = _WIDTH
            lines = command.get_help(context).splitlines()
        text = "\n".join(line.rstrip() for line in lines).strip()
        yield around + name, _HELP.sub("", text)


if __name__ == "__main__":
    sys.stdout.write(page())

"""Writes the manual page from the command line itself: `python -m sluicegate.proxy.process.man_page`."""

import sys
from collections.abc import Iterator, Sequence
from textwrap import wrap

from sluicegate.proxy.process.command_tree import Command, Option, commands_of

_WIDTH = 78
_DESCRIPTION = (
    "It stands in front of a Kafka cluster: producers name it as their bootstrap server, each partition's batch is "
    "judged as a broker with the configured limits would judge it, good batches are forwarded byte for byte, and the "
    "rest are answered with the broker's own error codes and texts."
)
_EXIT_STATUS = (
    ("0", "It has done what was asked; with check, doctor and try: all is well."),
    ("1", "A file has a mistake, something must be mended, a record would be refused, or a proxy cannot start."),
    ("2", "The command line is wrong, or what was to be looked at could not be."),
)
_ENVIRONMENT = (
    ("SLUICEGATE__SECTION__KEY", "Goes before the file's key, a dot in it written as an underscore; to the letter."),
)
_SIGNALS = (
    ("SIGTERM, SIGINT", "Take no more connections, let what is in flight finish, and end."),
    ("SIGHUP", "Read the file again; policies of topics count at once."),
)


def lines_of(commands: Sequence[Command], version: str) -> Iterator[str]:
    """In man's macros (man(7)); the first of `commands` is what stands before any command."""
    root, *others = commands
    yield f'.TH SLUICEGATE 1 "" "sluicegate {version}" "User Commands"'
    yield ".SH NAME"
    yield f"sluicegate \\- {_text('validates what Kafka producers write before a broker stores it')}"
    yield ".SH SYNOPSIS"
    yield ".B sluicegate"
    yield r".RI [ OPTIONS ] \~ COMMAND \~ [ ARGUMENTS ]"
    yield ".SH DESCRIPTION"
    yield from _filled(_DESCRIPTION)
    yield ".SH OPTIONS"
    yield from _options(root.options)
    yield ".SH COMMANDS"
    for command in others:
        yield f".SS sluicegate {command.name} {_synopsis(command)}".rstrip()
        yield from _filled(command.about)
        yield from _options((*command.arguments, *command.options[:-1]))
    yield from _table("EXIT STATUS", _EXIT_STATUS)
    yield from _table("ENVIRONMENT", _ENVIRONMENT)
    yield from _table("SIGNALS", _SIGNALS)
    yield ".SH SEE ALSO"
    yield "The pages in docs/ of the source: configuration.md, policies.md, install.md."


def _synopsis(command: Command) -> str:
    words = ["[OPTIONS]"] if len(command.options) > 1 else []
    for argument in command.arguments:
        dots = " ..." if argument.repeated else ""
        words.append(f"{argument.takes}{dots}" if argument.required else f"[{argument.takes}{dots}]")
    return _text(" ".join(words))


def _options(options: Sequence[Option]) -> Iterator[str]:
    for option in options:
        names = ", ".join(rf"\fB{_text(name)}\fR" for name in option.names)
        takes = rf"\fI{_text(option.takes)}\fR" if option.takes is not None else ""
        yield ".TP"
        yield f"{names} {takes}".strip()
        yield from _filled(option.about)


def _table(title: str, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield f".SH {title}"
    for name, about in rows:
        yield ".TP"
        yield rf"\fB{_text(name)}\fR"
        yield from _filled(about)


def _filled(text: str) -> Iterator[str]:
    """In lines as roff likes them."""
    return (_text(line) for line in wrap(text, _WIDTH, break_on_hyphens=False, break_long_words=False))


def _text(text: str) -> str:
    """No character of it is one of roff's."""
    safe = text.replace("\\", r"\e").replace("-", r"\-").replace("…", "...").replace("’", "'")
    return rf"\&{safe}" if safe.startswith((".", "'")) else safe


def main() -> None:
    """Print the page."""
    from sluicegate.proxy.process.cli import app  # noqa: PLC0415  # it imports what this module is told by
    from sluicegate.proxy.reporting.build_info import VERSION  # noqa: PLC0415

    sys.stdout.write("\n".join(lines_of(list(commands_of(app)), VERSION)) + "\n")


if __name__ == "__main__":
    main()

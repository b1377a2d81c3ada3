"""Lines for a person, whatever is in them and whatever the stream can show."""

import os
import sys
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import NoReturn

import typer

from sluicegate.config.loading import ConfigError, Loaded, load_file
from sluicegate.config.source import printable

HELP = {"help_option_names": ["-h", "--help"]}
_MAX_PROBLEMS = 50


def read(loading: Callable[[], Loaded], needed: Container[str] = (), code: int = 1) -> Loaded:
    """What it loads; its problems end the command. `needed`: keys that, where they are missing, are best given in a
    file.
    """
    try:
        return loading()
    except ConfigError as error:
        problems = [str(problem) for problem in error.problems]
        if any(problem.key in needed for problem in error.problems):
            problems.append("give --config FILE, or --upstream HOST:PORT and --listen HOST:PORT")
        end(problems, code)


def read_file(file: Path, code: int = 1) -> Loaded:
    """A configuration's file, with the environment before it."""
    return read(lambda: load_file(file, os.environ), code=code)


def end(problems: list[str], code: int = 1) -> NoReturn:
    """The command has failed."""
    for problem in problems[:_MAX_PROBLEMS]:
        say(problem, err=True)
    if len(problems) > _MAX_PROBLEMS:
        say(f"and {len(problems) - _MAX_PROBLEMS} more", err=True)
    raise typer.Exit(code) from None


def say_all(lines: Iterable[str]) -> None:
    """One line after the other."""
    for line in lines:
        say(line)


def say(text: str, err: bool = False) -> None:
    """A line."""
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    print(printable(text).encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)

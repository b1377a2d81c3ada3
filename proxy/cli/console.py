"""Prints lines to the console. Characters that are not printable, or that the stream cannot encode, are escaped."""

import os
import sys
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import NoReturn

import typer

from sluicegate.config.files.source import printable
from sluicegate.config.loading import ConfigError, Loaded, load_file

HELP = {"help_option_names": ["-h", "--help"]}
_MAX_PROBLEMS = 50


def read(loading: Callable[[], Loaded], needed: Container[str] = (), code: int = 1) -> Loaded:
    """Return the loaded configuration, or print its problems and exit with `code`.

    If one of the keys in `needed` is missing, the options that set it are printed too.
    """
    try:
        return loading()
    except ConfigError as error:
        problems = [str(problem) for problem in error.problems]
        if any(problem.key in needed for problem in error.problems):
            problems.append("specify --config FILE, or --upstream HOST:PORT and --listen HOST:PORT")
        end(problems, code)


def read_file(file: Path, code: int = 1) -> Loaded:
    """Return the content of a configuration file. The environment overrides it. Problems end the command."""
    return read(lambda: load_file(file, os.environ), code=code)


def read_checked(file: Path, code: int = 1) -> Loaded:
    """Return the content of a configuration file after compiling all its policies. Problems end the command."""
    # imported here, so that the console starts quickly
    from sluicegate.proxy.reload.config_check import checked_policies

    return read(lambda: checked_policies(file), code=code)


def end(problems: list[str], code: int = 1) -> NoReturn:
    """Print the problems and exit with `code`."""
    for problem in problems[:_MAX_PROBLEMS]:
        print_line(problem, err=True)
    if len(problems) > _MAX_PROBLEMS:
        print_line(f"and {len(problems) - _MAX_PROBLEMS} more", err=True)
    raise typer.Exit(code) from None


def print_lines(lines: Iterable[str]) -> None:
    """Print each line."""
    for line in lines:
        print_line(line)


def print_line(text: str, err: bool = False) -> None:
    """Print a line, to standard error if `err` is true."""
    print_whole(printable(text), err)


def print_whole(text: str, err: bool = False) -> None:
    """Print a line of any length whose characters are printable, to standard error if `err` is true."""
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)

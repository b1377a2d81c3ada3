"""Runs `sluicegate-spark` repeatedly in one process, whose session and imports are reused.

Each line of standard input contains a command's arguments as JSON; each line of standard output contains its exit
status. The first two arguments of this program are the files for the command's standard output and standard error. The
third contains additional settings of the session as JSON, and the fourth is the working directory of the commands.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from pyspark.sql import SparkSession

from sluicegate.pipeline.cli import app
from sluicegate.pipeline.commands.spark import session

MASTER = "local[2]"


def status_of(arguments: Sequence[str]) -> int:
    """Run the command in this process and return its exit status."""
    try:
        app(list(arguments), prog_name="sluicegate-spark")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    return 0


def _begin_files() -> None:
    """Empty both files and redirect the output of this process to them."""
    for number, name in enumerate(sys.argv[1:3], 1):
        Path(name).write_bytes(b"")
        with Path(name).open("ab") as file:  # Java keeps the file open and appends to it
            os.dup2(file.fileno(), number)


def main() -> None:
    """Run commands until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.chdir(sys.argv[4])
    kept: SparkSession | None = None
    for line in sys.stdin:
        _begin_files()
        if kept is None:
            kept = session("kept", MASTER, json.loads(sys.argv[3]))  # the session's Java also prints to these files
            _begin_files()
        status = status_of([*json.loads(line), "--master", MASTER])
        sys.stdout.flush()
        sys.stderr.flush()
        print(status, file=answers, flush=True)
    if kept is not None:
        kept.stop()


if __name__ == "__main__":
    main()

"""`sluicegate-spark` again and again in one process, whose session and imports are there already.

A line of JSON on standard input has the arguments; a line on standard output, the exit status. What the command prints
goes to the two files that are this program's first arguments, what it tells of errors to the second. The third argument
has, in JSON, what the session begins with beside what it begins with for every command; the fourth is the folder where
commands run.
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
    """Without what was printed before."""
    for number, name in enumerate(sys.argv[1:3], 1):
        Path(name).write_bytes(b"")
        with Path(name).open("ab") as file:  # Java has it open from its start on, and writes behind what is there
            os.dup2(file.fileno(), number)


def main() -> None:
    """Until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.chdir(sys.argv[4])
    kept: SparkSession | None = None
    for line in sys.stdin:
        _begin_files()
        if kept is None:
            kept = session("kept", MASTER, json.loads(sys.argv[3]))  # whose Java prints to these files as well
            _begin_files()
        status = status_of([*json.loads(line), "--master", MASTER])
        sys.stdout.flush()
        sys.stderr.flush()
        print(status, file=answers, flush=True)
    if kept is not None:
        kept.stop()


if __name__ == "__main__":
    main()

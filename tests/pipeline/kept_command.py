"""`sluicegate-spark` again and again in one process, whose Java and imports are there already. A session is begun and
ended for each, as in a process of its own.

A line of JSON on standard input has the arguments; a line on standard output, the exit status. What the command prints
goes to the two files that are this program's arguments, what it tells of errors to the second.
"""

import json
import os
import sys
from pathlib import Path

import click

from sluicegate.pipeline.cli import app


def _status_of(arguments: list[str]) -> int:
    try:
        app(arguments, prog_name="sluicegate-spark")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    return 0


def main() -> None:
    """Until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        for number, name in enumerate(sys.argv[1:3], 1):
            Path(name).write_bytes(b"")
            with Path(name).open("ab") as file:  # Java has it open from its start on, and writes behind what is there
                os.dup2(file.fileno(), number)
        status = _status_of(json.loads(line))
        sys.stdout.flush()
        sys.stderr.flush()
        print(status, file=answers, flush=True)


if __name__ == "__main__":
    main()

"""`sluicegate run`: has the command line and the file read, and serves what they say.

This process, and those that are forked from it, hold no more than serving takes (`tests/proxy/process/test_memory.py`).
"""

import os
import signal
import sys

from sluicegate.proxy.process.reading_apart import Reader, ReaderEnded, Start, Usable
from sluicegate.proxy.process.saying import say


def main() -> None:
    """Until SIGTERM or Ctrl-C; ends with the code of the command."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is somebody who takes it
    try:
        sys.exit(_run(tuple(sys.argv[1:])))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _run(arguments: tuple[str, ...]) -> int:
    reader = Reader(Start(arguments))
    # Meanwhile: what is loaded here the reader does not need.
    from sluicegate.proxy.network.inherited_sockets import BadSocket, inherited_sockets  # noqa: PLC0415
    from sluicegate.proxy.process.cannot_start import CannotStart  # noqa: PLC0415
    from sluicegate.proxy.process.running import run_until_signal  # noqa: PLC0415
    from sluicegate.proxy.reporting.log_setup import logging_behind_a_queue  # noqa: PLC0415

    try:
        found = reader.answer()
    except ReaderEnded as error:
        return error.exit_code if error.exit_code >= 0 else 128 - error.exit_code
    assert isinstance(found, Usable)
    try:
        with logging_behind_a_queue(found.config.log):
            run_until_signal(found.config, found.file, inherited_sockets(os.environ, os.getpid()))
    except (CannotStart, BadSocket) as error:
        say(f"sluicegate: {error}", err=True)
        return 1
    return 0

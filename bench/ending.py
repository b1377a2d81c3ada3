"""A measurement that is terminated stops the processes that it has started, and removes its folders."""

import signal
import sys
from types import FrameType


def end_on_sigterm() -> None:
    """Make SIGTERM end this process as Ctrl-C does, through every `finally`."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second signal does not interrupt the cleanup
    sys.exit(128 + number)

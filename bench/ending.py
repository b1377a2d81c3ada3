"""Makes a terminated measurement stop the processes that it started, and remove its folders."""

import signal
import sys
from types import FrameType


def end_on_sigterm() -> None:
    """Make SIGTERM end this process as Ctrl-C does, so that every `finally` block runs."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second signal does not interrupt the cleanup
    sys.exit(128 + number)

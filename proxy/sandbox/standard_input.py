"""Detects the end of the standard input: the program that started the sandbox has ended, or has closed the input."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress

_STANDARD_INPUT = 0
_READ_BYTES = 4096


def call_at_end_of_input(ended: Callable[[], object]) -> None:
    """Call `ended` in a daemon thread when the standard input ends."""
    threading.Thread(target=_read_until_end, args=(ended,), name="standard input", daemon=True).start()


def _read_until_end(ended: Callable[[], object]) -> None:
    # Python's own file object has a lock, which a blocked thread would hold when the interpreter shuts down.
    with suppress(OSError):  # a missing standard input counts as ended
        while os.read(_STANDARD_INPUT, _READ_BYTES):
            pass
    with suppress(RuntimeError):  # the event loop has already ended
        ended()

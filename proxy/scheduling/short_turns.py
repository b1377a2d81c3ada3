"""Lets a thread yield the interpreter to the event loop often. Otherwise the loop would wait 5 ms each time.

The thread sleeps briefly. If it only released the interpreter, it would acquire it again before the loop wakes up. A
shorter switch interval would interrupt the loop just as often. After a long uninterruptible step, such as a library
call that parses a large value, the thread rests for as long as the step took, so that others can do many short steps.
"""

import time

_TURN_SECONDS = 0.0005
_PAUSE_SECONDS = 0.00005
_LONG_SECONDS = 0.005
_MOST_REST_SECONDS = 0.03


class ShortTurns:
    """Yields between small steps of work."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def give_way(self) -> None:
        """Yield the interpreter after half a millisecond of work."""
        worked = time.monotonic() - self._since
        if worked > _TURN_SECONDS:
            time.sleep(_PAUSE_SECONDS if worked < _LONG_SECONDS else min(worked, _MOST_REST_SECONDS))
            self._since = time.monotonic()

"""A thread that works beside the event loop lets it have the interpreter often: else the loop waits 5 ms each time.

It really sleeps for a moment. Who only lets go and asks again at once has it again before the loop has woken up; and a
shorter switch interval would take it from the loop as often as from the thread. What could not be interrupted for long
(a library that reads a large value) is followed by as long a rest, in which others take the many small steps that a new
connection needs, for each of which they would wait as long again.
"""

import time

_TURN_SECONDS = 0.0005
_PAUSE_SECONDS = 0.00005
_LONG_SECONDS = 0.005
_MOST_REST_SECONDS = 0.03


class ShortTurns:
    """For a loop of small pieces of work; `give_way` between two of them."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def give_way(self) -> None:
        """Let others have the interpreter once half a millisecond is over."""
        worked = time.monotonic() - self._since
        if worked > _TURN_SECONDS:
            time.sleep(_PAUSE_SECONDS if worked < _LONG_SECONDS else min(worked, _MOST_REST_SECONDS))
            self._since = time.monotonic()

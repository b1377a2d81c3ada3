"""A thread that works beside the event loop lets it have the interpreter often: else the loop waits 5 ms each time.

It really sleeps for a moment. Who only lets go and asks again at once has it again before the loop has woken up; and a
shorter switch interval would take it from the loop as often as from the thread.
"""

import time

_TURN_SECONDS = 0.0005
_PAUSE_SECONDS = 0.00005


class ShortTurns:
    """For a loop of small pieces of work; `give_way` between two of them."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def give_way(self) -> None:
        """Let others have the interpreter once half a millisecond is over."""
        if time.monotonic() - self._since > _TURN_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            self._since = time.monotonic()

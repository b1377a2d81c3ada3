"""Hears what another process says. What is long arrives in pieces: who waits for its end waits in a thread here."""

from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

_ENDS_WITHIN_SECONDS = 5.0


class Inbox:
    """Of one pipe, which nobody else reads. The pipe stays a blocking one: a loop that watched it would change that,
    and of a message longer than the system's buffer it would then find a part, and no more.
    """

    def __init__(
        self,
        pipe: Connection,
        name: str,
        from_thread: Callable[..., Any],
        heard: Callable[[Any], None],
        ended: Callable[[], None],
    ) -> None:
        """`heard` is told each message, `ended` that the other side is gone; both run by `from_thread`, on a loop."""
        self._pipe = pipe
        self._from_thread = from_thread
        self._heard = heard
        self._ended = ended
        self._thread = Thread(target=self._listen, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The other side is gone. Ends before the pipe is closed, whose number another file might get."""
        self._thread.join(_ENDS_WITHIN_SECONDS)

    def _listen(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            while True:
                try:
                    message = self._pipe.recv()
                except (EOFError, OSError):
                    self._from_thread(self._ended)
                    return
                self._from_thread(self._heard, message)

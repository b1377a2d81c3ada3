"""Says things to another process without waiting until it hears them: a pipe that is full keeps nobody else waiting."""

from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread

_ENDS_WITHIN_SECONDS = 5.0


class Outbox:
    """Of one pipe, in the order in which it is told; nobody else writes there. What nobody hears any more is lost."""

    def __init__(self, pipe: Connection, name: str) -> None:
        self._pipe = pipe
        self._words: SimpleQueue[object] = SimpleQueue()
        self._thread = Thread(target=self._send, name=name, daemon=True)
        self._thread.start()

    @property
    def is_behind(self) -> bool:
        """Whether something still waits to be said."""
        return not self._words.empty()

    def say(self, word: object) -> None:
        """Whatever can be pickled."""
        self._words.put(word)

    def close(self) -> None:
        """The other side is gone. Ends before the pipe is closed, whose number another file might get."""
        self._words.put(None)
        self._thread.join(_ENDS_WITHIN_SECONDS)

    def _send(self) -> None:
        while (word := self._words.get()) is not None:
            try:
                self._pipe.send(word)
            except OSError:
                return

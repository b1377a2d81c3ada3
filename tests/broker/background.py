"""Something that goes on beside a test, in threads of its own."""

import threading
from collections.abc import Callable


class Background:
    """Runs functions from `start` until `stop`; each of them asks often whether it is to end."""

    def __init__(self, *functions: Callable[[], None]) -> None:
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=function, daemon=True) for function in functions]

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def waits(self, seconds: float) -> bool:
        """Whether it is to go on behind that time; False as soon as it is to end."""
        return not self._stopped.wait(seconds)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """And wait for all of them. May be called again."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()

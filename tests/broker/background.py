"""Runs work next to a test, in threads."""

import threading
from collections.abc import Callable


class Background:
    """Runs functions from `start` until `stop`; each function checks regularly whether it has to end."""

    def __init__(self, *functions: Callable[[], None]) -> None:
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=function, daemon=True) for function in functions]

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def wait_and_continue(self, seconds: float) -> bool:
        """Wait. Return whether the function may continue afterwards; returns False as soon as it has to end."""
        return not self._stopped.wait(seconds)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End all functions and wait for them. May be called repeatedly."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()

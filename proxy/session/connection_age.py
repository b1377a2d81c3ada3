"""The age at which a connection is closed, so that clients spread over replicas that were added later.

A tenth of jitter keeps connections that were opened together from ending together, as in gRPC (MAX_CONNECTION_AGE).
"""

from collections.abc import Callable

_JITTER = 0.1


class ConnectionAge:
    """The age of one connection. `most` None: no bound; times are in seconds."""

    def __init__(self, most: float | None, chance: Callable[[], float]) -> None:
        """`chance` returns a number from 0 to 1."""
        self._most = None if most is None else most * (1 + _JITTER * chance())
        self._began: float | None = None

    def is_reached(self, now: float) -> bool:
        """Return whether the connection is older than its bound; the first call is its beginning."""
        if self._most is None:
            return False
        if self._began is None:
            self._began = now
        return now - self._began > self._most

"""A reserved file descriptor, which lets the process reject clients when it has no other descriptor left."""

import errno
import os
import socket

from sluicegate.proxy.network.listeners import BACKLOG

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_RETRY_AFTER_EXHAUSTED_SECONDS = 1.0
_RETRY_SECONDS = 0.01


class SpareDescriptor:
    """Keeps one descriptor open, and closes it to accept and reject clients that would otherwise wait."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._reopen()

    def handle_accept_error(self, listener: socket.socket, error: Exception) -> float:
        """Handle an error of accept(). Return the number of seconds to wait before the next attempt."""
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            self._close_waiting(listener)
            return _RETRY_AFTER_EXHAUSTED_SECONDS
        return _RETRY_SECONDS

    def _close_waiting(self, listener: socket.socket) -> None:
        """Accept and close all connections in the listener's backlog."""
        self.close()
        try:
            for _ in range(BACKLOG):
                listener.accept()[0].close()
        except OSError:  # the backlog is empty, or another thread has taken the descriptor
            pass
        self._reopen()

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _reopen(self) -> None:
        try:
            self._descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._descriptor = None

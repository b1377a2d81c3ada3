"""A file descriptor that is kept for the moment when there are no more."""

import errno
import os
import socket

from sluicegate.proxy.network.listeners import BACKLOG

# How the system says that it has no more.
_SPENT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_AFTER_SPENT_SECONDS = 1.0
_AFTER_ABORTED_SECONDS = 0.01


class SpareDescriptor:
    """With it, clients can be taken and closed instead of left waiting."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._open()

    def make_room(self, listener: socket.socket, error: Exception) -> float:
        """What can be done where no connection could be accepted; returns after how many seconds to try again."""
        if isinstance(error, OSError) and error.errno in _SPENT:
            self._turn_away(listener)
            return _AFTER_SPENT_SECONDS
        return _AFTER_ABORTED_SECONDS

    def _turn_away(self, listener: socket.socket) -> None:
        """Close all connections that wait to be accepted now."""
        self.close()
        try:
            for _ in range(BACKLOG):
                listener.accept()[0].close()
        except OSError:  # none left, or somebody else has taken the descriptor
            pass
        self._open()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> None:
        try:
            self._descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._descriptor = None

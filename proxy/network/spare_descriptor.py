"""A file descriptor that is kept for the moment when there are no more."""

import errno
import os
import socket

from sluicegate.proxy.network.listeners import BACKLOG

SPENT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""How the system says that it has no more."""


class SpareDescriptor:
    """With it, clients can be taken and closed instead of left waiting."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._open()

    def turn_away(self, listener: socket.socket) -> None:
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

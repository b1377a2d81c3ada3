"""How many offsets a process has read, sent to the driver while its tasks run: Spark itself tells only of whole tasks.

The driver's address is a local property of its Spark jobs. A datagram that is lost costs nothing: the next one has the
whole count.
"""

import json
import os
import socket
import time
from threading import Lock

from pyspark import TaskContext

PROPERTY = "sluicegate.progress"
"""Of Spark jobs: host, port and token of the driver's socket, as JSON."""
_EVERY_SECONDS = 0.5


class _Reader:
    """The count of a process, and where it is sent to."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._address: tuple[str, int] | None = None
        self._token = ""
        self._count = 0
        self._next_at = 0.0

    def begin_task(self) -> None:
        """Look where the task's driver is."""
        context = TaskContext.get()
        told = context.getLocalProperty(PROPERTY) if context is not None else None
        host, port, token = json.loads(told) if told else ("", 0, "")
        with self._lock:
            if token != self._token:
                self._address, self._token, self._count = (host, port), token, 0

    def add(self, offsets: int) -> None:
        """So many were read since."""
        with self._lock:
            self._count += offsets
            if time.monotonic() >= self._next_at:
                self._send()

    def end(self, offsets: int) -> None:
        """So many of a range were left; nothing more of it is read."""
        with self._lock:
            self._count += max(offsets, 0)
            self._send()

    def _send(self) -> None:
        if not self._token or self._address is None:
            return
        self._next_at = time.monotonic() + _EVERY_SECONDS
        told = json.dumps([self._token, f"{socket.gethostname()}/{os.getpid()}", self._count]).encode()
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.sendto(told, socket.MSG_DONTWAIT, self._address)
        except OSError:  # where datagrams do not reach the driver, nothing is shown
            self._token = ""


_reader = _Reader()
begin_task = _reader.begin_task
add = _reader.add
end = _reader.end

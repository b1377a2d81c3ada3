"""Reports the number of offsets that a process has read to the driver while its tasks run.

Spark itself only reports whole tasks. The driver's address is a local property of its Spark jobs. A lost datagram does
no harm, because the next datagram contains the total count.
"""

import json
import os
import socket
import time
from threading import Lock

from pyspark import TaskContext

PROPERTY = "sluicegate.progress"
"""Local property of Spark jobs: host, port and token of the driver's socket, as JSON."""
_EVERY_SECONDS = 0.5


class _Reader:
    """The count of a process, and the address of its driver."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._address: tuple[str, int] | None = None
        self._token = ""
        self._count = 0
        self._next_at = 0.0

    def begin_task(self) -> None:
        """Read the driver's address from the task's local property."""
        context = TaskContext.get()
        content = context.getLocalProperty(PROPERTY) if context is not None else None
        host, port, token = json.loads(content) if content else ("", 0, "")
        with self._lock:
            if token != self._token:
                self._address, self._token, self._count = (host, port), token, 0

    def add(self, offsets: int) -> None:
        """Count offsets that were read."""
        with self._lock:
            self._count += offsets
            if time.monotonic() >= self._next_at:
                self._send()

    def end(self, offsets: int) -> None:
        """Count the remaining offsets of a range that is finished."""
        with self._lock:
            self._count += max(offsets, 0)
            self._send()

    def _send(self) -> None:
        if not self._token or self._address is None:
            return
        self._next_at = time.monotonic() + _EVERY_SECONDS
        content = json.dumps([self._token, f"{socket.gethostname()}/{os.getpid()}", self._count]).encode()
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.sendto(content, socket.MSG_DONTWAIT, self._address)
        except OSError:  # without a route to the driver there is no progress line
            self._token = ""


_reader = _Reader()
begin_task = _reader.begin_task
add = _reader.add
end = _reader.end

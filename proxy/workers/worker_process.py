"""A worker process as its supervisor knows it, and the folder for the socket that starts workers."""

import os
import tempfile
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess

from sluicegate.proxy.server.startup import CannotStart
from sluicegate.proxy.workers.messages import Inbox, Outbox, Report


@dataclass(slots=True)
class WorkerProcess:
    """A process, the pipe to it, and its last messages; times in seconds, monotonic.

    `compiled` and `adopted`: numbers of reloads; `problem`: why it could not compile the last one.
    """

    index: int
    process: ForkServerProcess
    pipe: Connection
    outbox: Outbox
    started_at: float
    last_message_at: float
    inbox: Inbox | None = None
    takes_connections: bool = False
    compiled: int = 0
    problem: str | None = None
    adopted: int = 0
    report: Report | None = None

    def close(self) -> None:
        """Stop sending and receiving, after the process has ended."""
        if self.inbox is not None:
            self.inbox.close()
        self.outbox.close()
        self.pipe.close()


_SHARED_MEMORY = "/dev/shm"  # noqa: S108
# A socket's name has at most 107 bytes, of which multiprocessing takes 32 for itself.
_LONGEST_FOLDER = 72


def choose_socket_folder() -> None:
    """Check that multiprocessing can put its socket into the temporary folder; otherwise use shared memory as this
    process's temporary folder. Raises CannotStart.
    """
    try:
        if len(os.fsencode(tempfile.gettempdir())) <= _LONGEST_FOLDER:
            return
    except FileNotFoundError:
        pass  # there is none
    if not os.access(_SHARED_MEMORY, os.W_OK):
        raise CannotStart(
            "several workers need a folder for a socket between their processes. It must be writable, and its name at "
            f"most {_LONGEST_FOLDER} bytes long. None of $TMPDIR, /tmp, /var/tmp, /usr/tmp, the current folder "
            f"and {_SHARED_MEMORY} is such a folder; set TMPDIR"
        )
    tempfile.tempdir = _SHARED_MEMORY

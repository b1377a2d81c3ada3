"""One worker, as its supervisor knows it."""

from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess

from sluicegate.proxy.workers.inbox import Inbox
from sluicegate.proxy.workers.outbox import Outbox
from sluicegate.proxy.workers.worker import Report


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
    heard_at: float
    inbox: Inbox | None = None
    takes_connections: bool = False
    compiled: int = 0
    problem: str | None = None
    adopted: int = 0
    report: Report | None = None

    def close(self) -> None:
        """Its process has ended, or ends: nothing is said or heard any more."""
        if self.inbox is not None:
            self.inbox.close()
        self.outbox.close()
        self.pipe.close()

"""The supervisor's view of the worker processes, and the folder for the socket that starts them."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess

import structlog

from sluicegate.proxy.server.startup import CannotStart
from sluicegate.proxy.workers.messages import Inbox, Outbox, Report


@dataclass(slots=True)
class WorkerProcess:
    """A process, the pipe to it, and its last messages.

    Times are monotonic, in seconds. `unanswered` is the number of regular report requests since the worker's last
    message. `compiled` and `adopted` are numbers of reloads, and `problem` explains why the worker could not compile
    the last one. `suspended` and `settings` are the numbers of the suspensions and of the topic settings in force.
    """

    index: int
    process: ForkServerProcess
    pipe: Connection
    outbox: Outbox
    started_at: float
    last_message_at: float
    inbox: Inbox | None = None
    takes_connections: bool = False
    unanswered: int = 0
    compiled: int = 0
    problem: str | None = None
    adopted: int = 0
    suspended: int = 0
    settings: int = 0
    report: Report | None = None

    def close(self) -> None:
        """Stop sending and receiving after the process has ended."""
        if self.inbox is not None:
            self.inbox.close()
        self.outbox.close()
        self.pipe.close()


class Workers:
    """One supervisor's worker processes by index, with a signal after each of their messages.

    It belongs to one event loop, but other threads may iterate over it.
    """

    def __init__(self) -> None:
        self._known: dict[int, WorkerProcess] = {}
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[WorkerProcess]:
        return iter(list(self._known.values()))

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, worker: WorkerProcess) -> bool:
        return self._known.get(worker.index) is worker

    def add(self, worker: WorkerProcess) -> None:
        """Add a worker, which replaces an earlier one with the same index."""
        self._known[worker.index] = worker

    def remove(self, worker: WorkerProcess) -> None:
        """Remove a worker that has ended."""
        del self._known[worker.index]

    def clear(self) -> None:
        """Remove all workers."""
        self._known.clear()

    def send(self, message: object) -> None:
        """Send a message to every worker."""
        for worker in self:
            worker.outbox.send(message)

    def notify(self) -> None:
        """Wake all tasks that wait for a change."""
        self._changed.set()

    async def next_change(self) -> None:
        """Wait until a worker has sent a message or has ended."""
        self._changed.clear()
        await self._changed.wait()

    async def wait_until_all(self, done: Callable[[WorkerProcess], bool], seconds: float) -> None:
        """Wait until `done` returns True for all workers, at most `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not all(map(done, self)):
                    await self.next_change()


class WorkerLauncher:
    """The process that forks workers (multiprocessing's fork server). It may end while the workers run."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("sluicegate")

    def restart_if_ended(self) -> None:
        """If the process has ended, log that and restart it, so that it is ready for the next worker."""
        pid: int | None = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]  # it has no other name
        if pid is None or sys.platform == "darwin":  # macOS has no waitid
            return
        # multiprocessing reads the exit status
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None:
            self._log.error(
                "worker launcher ended, restarting",
                process=pid,
                code=ended.si_status,
                advice="running workers are not affected; code 9 usually means that the system killed it "
                "because memory was exhausted",
            )
            forkserver.ensure_running()


_SHARED_MEMORY = "/dev/shm"  # noqa: S108  # a folder in it has a random name
# A socket's name has at most 107 bytes, and multiprocessing uses 32 of them.
_LONGEST_FOLDER = 72


def choose_socket_folder() -> None:
    """Check that multiprocessing can put its socket into the temporary folder.

    If it cannot, use shared memory as this process's temporary folder. Raises CannotStart.
    """
    try:
        if len(os.fsencode(tempfile.gettempdir())) <= _LONGEST_FOLDER:
            return
    except FileNotFoundError:
        pass  # there is no temporary folder
    if not os.access(_SHARED_MEMORY, os.W_OK):
        raise CannotStart(
            "several workers need a folder for a socket between their processes. It must be writable, and its name at "
            f"most {_LONGEST_FOLDER} bytes long. None of $TMPDIR, /tmp, /var/tmp, /usr/tmp, the current folder and "
            f"{_SHARED_MEMORY} is suitable; set TMPDIR"
        )
    tempfile.tempdir = _SHARED_MEMORY

"""How much memory Spark's processes hold at the top, by looking at them from time to time (Linux's /proc)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from bench.machine import resident_of, with_children

_EVERY_SECONDS = 0.1


@dataclass(slots=True)
class Peaks:
    """Bytes resident, each at its highest: the driver's Python, which is this process; its JVM, in a local session
    the executor too; and all Python workers together.
    """

    driver: int = 0
    jvm: int = 0
    workers: int = 0

    def look(self) -> None:
        """Once more."""
        jvm = workers = 0
        for pid in with_children(os.getpid())[1:]:
            if Path(f"/proc/{pid}/comm").read_text().strip() == "java":
                jvm += resident_of(pid)
            else:
                workers += resident_of(pid)
        self.driver = max(self.driver, resident_of(os.getpid()))
        self.jvm, self.workers = max(self.jvm, jvm), max(self.workers, workers)


@contextmanager
def peaks() -> Iterator[Peaks]:
    """The peak memory of the block's processes, available after the block."""
    found, over = Peaks(), Event()

    def watch() -> None:
        while not over.wait(_EVERY_SECONDS):
            try:
                found.look()
            except (FileNotFoundError, ProcessLookupError):
                continue  # one has ended meanwhile

    watching = Thread(target=watch)
    watching.start()
    try:
        yield found
    finally:
        over.set()
        watching.join()

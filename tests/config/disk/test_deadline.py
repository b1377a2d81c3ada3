"""A hanging file system blocks no caller. Reading has a deadline, starts no second thread, and resumes later."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate.config.disk import deadline as file_deadline
from sluicegate.config.disk.deadline import MOST_HANGING, FileUnreadable, note_file, within_deadline

SOON = 0.05
LONG = 60.0


class Disk:
    """A file system that hangs until the test releases it."""

    def __init__(self) -> None:
        self.back = threading.Event()
        self.begun = 0
        self.done = threading.Semaphore(0)

    def read(self) -> str:
        self.begun += 1
        note_file(Path("/disk/file"))
        self.back.wait()
        self.done.release()
        return "content"


@pytest.fixture
def disk() -> Iterator[Disk]:
    made = Disk()
    yield made
    made.back.set()


def test_read_fails_at_the_deadline_with_the_name_of_the_hanging_file(disk: Disk) -> None:
    with pytest.raises(FileUnreadable) as raised:
        within_deadline("a", disk.read, SOON)

    assert raised.value.filename == "/disk/file"
    assert raised.value.strerror == "its file system has not responded within 0.05 s"


def test_read_of_a_hanging_file_is_not_repeated_and_later_calls_fail_at_once(disk: Disk) -> None:
    for _ in range(3):
        with pytest.raises(FileUnreadable):
            within_deadline("b", disk.read, SOON)

    assert disk.begun == 1
    with pytest.raises(FileUnreadable):
        within_deadline("b", disk.read, -LONG)  # only the deadline of the hanging call matters


def test_a_file_is_read_again_after_its_file_system_recovers(disk: Disk) -> None:
    with pytest.raises(FileUnreadable):
        within_deadline("c", disk.read, SOON)
    disk.back.set()

    assert within_deadline("c", disk.read, LONG) == "content"
    disk.done.acquire()


def test_limits_the_number_of_hanging_file_reads(disk: Disk) -> None:
    for place in range(MOST_HANGING):
        with pytest.raises(FileUnreadable, match="not responded"):
            within_deadline(("d", place), disk.read, 0)
    with pytest.raises(FileUnreadable, match=f"{MOST_HANGING} other reads have not finished"):
        within_deadline(("d", MOST_HANGING), disk.read, LONG)
    assert disk.begun == MOST_HANGING

    disk.back.set()
    for _ in range(MOST_HANGING):
        disk.done.acquire()
    end = time.monotonic() + LONG
    while file_deadline._attempts and time.monotonic() < end:
        time.sleep(0.001)  # the threads have done their work and are about to end
    assert within_deadline(("d", MOST_HANGING), lambda: "free") == "free"


def test_within_deadline_propagates_exceptions_of_the_read() -> None:
    def raise_timeout() -> None:
        raise TimeoutError("raised by the work itself")

    with pytest.raises(TimeoutError, match="raised by the work itself"):
        within_deadline("e", raise_timeout, LONG)


def test_hanging_file_threads_are_daemon_threads(disk: Disk) -> None:
    with pytest.raises(FileUnreadable):
        within_deadline("f", disk.read, SOON)

    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "file")

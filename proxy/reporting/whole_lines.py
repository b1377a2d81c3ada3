"""Appends whole lines to a file descriptor, even if the disk accepts only part of a write.

After a short write (full disk, limit on the file size), the file is truncated to the end of the last whole line. If
several processes write to a file, a lock ensures that each truncates only its own data.
"""

import os
import select
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN

_LOCK_SECONDS = 1.0
_RETRY_SECONDS = 0.01
_MAX_WAIT_MS = 1000
_NEWLINE = 10
Lock = Callable[[int, int], None]
"""fcntl.flock for a file that each process opens itself, or fcntl.lockf for an inherited descriptor."""


class PartialWrite(OSError):
    """Only the first `lines` lines were written. If `torn` is true, part of the next line remains in the file."""

    def __init__(self, cause: OSError, lines: int, torn: bool) -> None:
        super().__init__(cause.errno, cause.strerror or str(cause))
        self.lines = lines
        self.torn = torn


def is_regular(fd: int) -> bool:
    """Return whether the descriptor is a regular file, which can be truncated and locked."""
    return stat.S_ISREG(os.fstat(fd).st_mode)


def append_lines(fd: int, data: bytes) -> None:
    """Append `data`, which consists of whole lines, to `fd`.

    If the file has a lock, the caller holds it. Raises PartialWrite.
    """
    written = 0
    try:
        while written < len(data):
            written += _written(fd, data[written:] if written else data)
    except OSError as error:
        whole = data.rfind(b"\n", 0, written) + 1
        torn = whole < written and not _truncated(fd, written - whole)
        raise PartialWrite(error, data.count(b"\n", 0, whole), torn) from error


def ends_within_a_line(fd: int) -> bool:
    """Return whether the last line of a regular file has no newline. Return False if the file cannot be read."""
    with suppress(OSError):
        size = os.fstat(fd).st_size
        return size > 0 and os.pread(fd, 1, size - 1)[0] != _NEWLINE
    return False


@contextmanager
def file_lock(fd: int, lock: Lock) -> Iterator[None]:
    """Hold a file's lock.

    Raises BlockingIOError if another process holds it for a second. On file systems without locks, no lock is used.
    """
    end = time.monotonic() + _LOCK_SECONDS
    held = False
    while not held:
        try:
            lock(fd, LOCK_EX | LOCK_NB)
            held = True
        except (BlockingIOError, PermissionError) as error:  # POSIX allows lockf to fail with either error
            if time.monotonic() > end:
                raise BlockingIOError(error.errno, "another process holds the file's lock") from error
            time.sleep(_RETRY_SECONDS)
        except OSError:
            break
    try:
        yield
    finally:
        if held:
            with suppress(OSError):
                lock(fd, LOCK_UN)


def _written(fd: int, data: bytes) -> int:
    """Write like os.write, but wait if the descriptor is non-blocking and cannot accept data."""
    while True:
        try:
            return os.write(fd, data)
        except BlockingIOError:
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            if not poll.poll(_MAX_WAIT_MS):
                raise


def _truncated(fd: int, size: int) -> bool:
    """Remove the last `size` bytes if they are still the end of the file. Return whether they were."""
    try:
        end = os.lseek(fd, 0, os.SEEK_CUR)
        if not is_regular(fd) or os.fstat(fd).st_size != end:
            return False
        os.ftruncate(fd, end - size)
        os.lseek(fd, end - size, os.SEEK_SET)
    except OSError:
        return False
    return True

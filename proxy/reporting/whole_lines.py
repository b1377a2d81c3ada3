"""Appends whole lines to a descriptor, although a disk may accept only a part of a write.

A short write (full disk, limit of the file size) is truncated to the end of the last whole line. If several processes
write to a file, a lock makes sure that a process truncates only its own data.
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
"""fcntl.flock (for a file that each process opens itself) or fcntl.lockf (for an inherited one)."""


class PartialWrite(OSError):
    """Only the first `lines` lines were written. `torn`: a part of the next one remains in the file."""

    def __init__(self, cause: OSError, lines: int, torn: bool) -> None:
        super().__init__(cause.errno, cause.strerror or str(cause))
        self.lines = lines
        self.torn = torn


def is_regular(fd: int) -> bool:
    """Return whether the descriptor is a regular file, which can be truncated and locked."""
    return stat.S_ISREG(os.fstat(fd).st_mode)


def append_lines(fd: int, data: bytes) -> None:
    """Append `data`, whole lines, to `fd`. The caller holds the lock, if there is one. Raises PartialWrite."""
    written = 0
    try:
        while written < len(data):
            written += _written(fd, data[written:] if written else data)
    except OSError as error:
        whole = data.rfind(b"\n", 0, written) + 1
        torn = whole < written and not _truncated(fd, written - whole)
        raise PartialWrite(error, data.count(b"\n", 0, whole), torn) from error


def ends_within_a_line(fd: int) -> bool:
    """Return whether the last line of a regular file has no newline; False if it cannot be read."""
    with suppress(OSError):
        size = os.fstat(fd).st_size
        return size > 0 and os.pread(fd, 1, size - 1)[0] != _NEWLINE
    return False


@contextmanager
def locked(fd: int, lock: Lock) -> Iterator[None]:
    """Hold the lock of a file. Raises BlockingIOError if another process holds it for a second.

    File systems without locks are used without one.
    """
    end = time.monotonic() + _LOCK_SECONDS
    held = False
    while not held:
        try:
            lock(fd, LOCK_EX | LOCK_NB)
            held = True
        except (BlockingIOError, PermissionError) as error:  # POSIX allows lockf either error
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
    """Write like os.write, and wait if the descriptor is non-blocking."""
    while True:
        try:
            return os.write(fd, data)
        except BlockingIOError:
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            if not poll.poll(_MAX_WAIT_MS):
                raise


def _truncated(fd: int, size: int) -> bool:
    """Remove the last `size` bytes, if they are still the end of the file."""
    try:
        end = os.lseek(fd, 0, os.SEEK_CUR)
        if not is_regular(fd) or os.fstat(fd).st_size != end:
            return False
        os.ftruncate(fd, end - size)
        os.lseek(fd, end - size, os.SEEK_SET)
    except OSError:
        return False
    return True

"""Lines are appended to a descriptor whole or not at all, although a disk may take only a part of them.

A write that was cut short (a full disk, a limit on the file's size) is taken back to the end of the last whole line.
Several processes may write to one file: a lock makes each the only one for the moment, so that what is taken back is
the writer's own.
"""

import os
import select
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN

_LOCK_SECONDS = 1.0
_LOOK_AGAIN_SECONDS = 0.01
_MAX_WAIT_MS = 1000
_NEWLINE = 10
Lock = Callable[[int, int], None]
"""fcntl.flock (a file that each process opens for itself) or fcntl.lockf (one that was inherited)."""


class PartialWrite(OSError):
    """Not every line was written: `lines` were. `torn`: a piece of the next is there and cannot be taken back."""

    def __init__(self, cause: OSError, lines: int, torn: bool) -> None:
        super().__init__(cause.errno, cause.strerror or str(cause))
        self.lines = lines
        self.torn = torn


def is_regular(fd: int) -> bool:
    """Whether a descriptor is a file on a disk: something with an end, that can be cut and locked."""
    return stat.S_ISREG(os.fstat(fd).st_mode)


def append_lines(fd: int, data: bytes) -> None:
    """Append `data`, whole lines, to `fd`. The caller holds the lock, if there is one. Raises PartialWrite."""
    written = 0
    try:
        while written < len(data):
            written += _written(fd, data[written:] if written else data)
    except OSError as error:
        whole = data.rfind(b"\n", 0, written) + 1
        torn = whole < written and not _taken_back(fd, written - whole)
        raise PartialWrite(error, data.count(b"\n", 0, whole), torn) from error


def ends_within_a_line(fd: int) -> bool:
    """Whether the last line of a regular file has no end; False where that cannot be read."""
    with suppress(OSError):
        size = os.fstat(fd).st_size
        return size > 0 and os.pread(fd, 1, size - 1)[0] != _NEWLINE
    return False


@contextmanager
def locked(fd: int, lock: Lock) -> Iterator[None]:
    """Hold a file's lock. Raises BlockingIOError when another process keeps it for a second.

    Where a file system knows no locks there is none.
    """
    end = time.monotonic() + _LOCK_SECONDS
    held = False
    while not held:
        try:
            lock(fd, LOCK_EX | LOCK_NB)
            held = True
        except (BlockingIOError, PermissionError) as error:  # POSIX lets lockf say either
            if time.monotonic() > end:
                raise BlockingIOError(error.errno, "another process holds the file's lock") from error
            time.sleep(_LOOK_AGAIN_SECONDS)
        except OSError:
            break
    try:
        yield
    finally:
        if held:
            with suppress(OSError):
                lock(fd, LOCK_UN)


def _written(fd: int, data: bytes) -> int:
    """As os.write, also where somebody has made the descriptor non-blocking."""
    while True:
        try:
            return os.write(fd, data)
        except BlockingIOError:
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            if not poll.poll(_MAX_WAIT_MS):
                raise


def _taken_back(fd: int, size: int) -> bool:
    """Cut the last `size` bytes off again, if they are still the file's last."""
    try:
        end = os.lseek(fd, 0, os.SEEK_CUR)
        if not is_regular(fd) or os.fstat(fd).st_size != end:
            return False
        os.ftruncate(fd, end - size)
        os.lseek(fd, end - size, os.SEEK_SET)
    except OSError:
        return False
    return True

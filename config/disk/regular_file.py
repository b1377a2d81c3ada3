"""Reads the files that a configuration names: only regular files, and only up to a maximum size.

Opening never waits for a peer, as opening a FIFO would. In `read_now`, a file system may still hang; `read_file` adds
the deadline from `config/disk/deadline.py`.
"""

import errno
import os
import stat
from pathlib import Path

from sluicegate.config.disk.deadline import FileUnreadable, note_file, within_deadline

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK_BYTES = 1 << 20
_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_file(path: Path, most_bytes: int) -> bytes:
    """Return a regular file's content, at most `most_bytes` + 1 bytes. The extra byte shows that it is too large.

    Blocks, so do not call this in an event loop. Raises OSError, and FileUnreadable if it is not a regular file or its
    file system does not respond in time.
    """
    return within_deadline((path, most_bytes), lambda: read_now(path, most_bytes))


def read_now(path: Path, most_bytes: int) -> bytes:
    """Read a file like `read_file`, but without a deadline: for a thread that already has one."""
    note_file(path)
    _check_kind(path.stat())  # opening a device may have side effects
    descriptor = os.open(path, _FLAGS)
    try:
        _check_kind(os.fstat(descriptor))  # the file may have been replaced since `stat`
        chunks: list[bytes] = []
        left = most_bytes + 1
        while left > 0 and (chunk := os.read(descriptor, min(left, _CHUNK_BYTES))):
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks)
    finally:
        os.close(descriptor)


def stat_now(path: Path) -> os.stat_result:
    """Return a file's status without a deadline: for a thread that already has one. Raises OSError."""
    note_file(path)
    return path.stat()


def real_path(path: Path) -> Path:
    """Return a path without symbolic links. Raises OSError, and FileUnreadable if a file system does not respond."""
    note_file(path)
    return within_deadline((path, "real path"), path.resolve)


def is_unreadable(path: Path) -> bool:
    """Return whether a file is missing or cannot be opened. Has no deadline."""
    note_file(path)
    try:
        _check_kind(path.stat())
        os.close(os.open(path, _FLAGS))
    except OSError:
        return True
    return False


def is_gone(path: Path) -> bool:
    """Return whether a file is missing. Has no deadline. Returns False if this cannot be determined."""
    try:
        stat_now(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # reading the file raises the reason
    return False


def _check_kind(status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise FileUnreadable(errno.EISDIR, os.strerror(errno.EISDIR))
    kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "not a file")
    raise FileUnreadable(errno.EINVAL, f"expected a regular file, found {kind}")

"""An event file that several processes append to, that may be moved away, and that is rotated by size.

Each line is written whole or not at all. A full file is renamed to its name and `.1`, replacing the previous one; the
process that holds the lock renames it, and the others reopen the path.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from fcntl import flock
from itertools import accumulate
from pathlib import Path

from sluicegate.proxy.reporting.whole_lines import PartialWrite, append_lines, ends_within_a_line, is_regular, locked

_FLAGS = os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
# It has client names and may have record contents: readable by its owner, and a group that the operator chooses.
_MODE = 0o640
_MAX_TRIES = 100


class EventFile:
    """For one thread. Raises OSError if the file cannot be opened."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._fd = _opened(path)
        self._torn = False

    def append(self, lines: Sequence[bytes]) -> None:
        """Append all lines. Raises PartialWrite with the number of written lines."""
        written = 0
        tries = 0
        try:
            while written < len(lines):
                tries += 1
                if tries > _MAX_TRIES + len(lines):
                    raise OSError(f"{self._path} is moved away repeatedly")
                written += self._append_some(lines[written:])
        except PartialWrite as error:
            raise PartialWrite(error, written + error.lines, error.torn) from error
        except OSError as error:
            raise PartialWrite(error, written, torn=False) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _append_some(self, lines: Sequence[bytes]) -> int:
        """Write as many lines as fit into the file; return 0 if it was rotated or reopened instead."""
        if not self._is_at_its_path():
            self._open_again()
        if not is_regular(self._fd):
            self._append(lines)
            return len(lines)
        with locked(self._fd, flock):
            if not self._is_at_its_path():
                return 0
            room = self._max_bytes - os.fstat(self._fd).st_size
            if room <= 0:
                self._path.replace(f"{self._path}.1")
                return 0
            before = accumulate((len(line) for line in lines), initial=0)
            some = lines[: sum(size < room for size in before)]
            self._append(some)
            return len(some)

    def _append(self, lines: Sequence[bytes]) -> None:
        if self._torn or ends_within_a_line(self._fd):
            append_lines(self._fd, b"\n")
        try:
            append_lines(self._fd, b"".join(lines))
            self._torn = False
        except PartialWrite as error:
            self._torn = error.torn
            raise

    def _is_at_its_path(self) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._fd))
        except FileNotFoundError:
            return False

    def _open_again(self) -> None:
        new = _opened(self._path)
        os.close(self._fd)
        self._fd = new
        self._torn = False


def _opened(path: Path) -> int:
    """Open the file without waiting, even for the reader of a pipe; readable if permitted, to check its last byte."""
    fd = os.open(path, _FLAGS | os.O_WRONLY | os.O_NONBLOCK, _MODE)
    os.set_blocking(fd, True)
    if is_regular(fd):
        with suppress(OSError):
            readable = os.open(path, _FLAGS | os.O_RDWR, _MODE)
            os.close(fd)
            fd = readable
    return fd

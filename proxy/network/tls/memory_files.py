"""Copies of files in memory, for libraries that take only file names and would block on a FIFO or a slow disk."""

import os
from contextlib import ExitStack
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import TracebackType

from sluicegate.config.files.regular_file import read_file

_MOST_BYTES = 16 << 20


class MemoryFiles:
    """A context manager; its end removes the copies. Systems without memfd_create get temporary files."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> "MemoryFiles":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def copy_of(self, file: str) -> str:
        """Copy a regular file and return the name of the copy; blocks for some seconds at most. Raises OSError."""
        content = read_file(Path(file), _MOST_BYTES)
        if len(content) > _MOST_BYTES:
            raise OSError(f"{file} has more than {_MOST_BYTES >> 20} MiB")
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("sluicegate")
            self._stack.callback(os.close, descriptor)
            with open(descriptor, "wb", closefd=False) as copy:
                copy.write(content)
            return f"/proc/self/fd/{descriptor}"
        temporary = self._stack.enter_context(NamedTemporaryFile())  # noqa: SIM115  # mode 0600
        temporary.write(content)
        temporary.flush()
        return temporary.name

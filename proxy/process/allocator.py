"""What the C library does with memory that is free again: here it goes back to the system.

By itself glibc learns from large buffers that come and go to keep tens of megabytes for the next ones, in each thread's
arena. Where it is another C library nothing is changed.
"""

import ctypes
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from sluicegate.protocol.records.scan import is_compiled

object_memory: ModuleType | None = None
if is_compiled():
    with suppress(ImportError):
        from sluicegate.proxy.process import object_memory

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
# Buffers from this size on are mapped, and unmapped when they are free.
_MAPPED_FROM_BYTES = 256 * 1024
_KEPT_AT_THE_TOP_BYTES = 1 << 20
_ARENAS = 2
# So much more than after the best time is worth the look for what can go back.
_WORTH_A_LOOK_BYTES = 8 << 20
_STATM = Path("/proc/self/statm")


class Allocator:
    """The C library's, of this process."""

    def __init__(self) -> None:
        self._library = _glibc()
        self._least_after: int | None = None

    def set_up(self) -> None:
        """Keep little of what is free. Before threads start."""
        if self._library is not None:
            self._library.mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)
            self._library.mallopt(_M_TRIM_THRESHOLD, _KEPT_AT_THE_TOP_BYTES)
            self._library.mallopt(_M_ARENA_MAX, _ARENAS)
            if object_memory is not None and not _has_debug_hooks():
                object_memory.use_the_c_library()

    @property
    def has_grown(self) -> bool:
        """Whether there is so much more than a `trim` has left at best that another is worth its time: what was in use
        at one time may be free at the next.
        """
        if self._library is None:
            return False
        return self._least_after is None or _resident_bytes() > self._least_after + _WORTH_A_LOOK_BYTES

    def trim(self) -> None:
        """Give back what is free; takes milliseconds for each gigabyte, without holding the interpreter."""
        if self._library is not None:
            self._library.malloc_trim(0)
            now = _resident_bytes()
            self._least_after = now if self._least_after is None else min(self._least_after, now)


def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def _has_debug_hooks() -> bool:
    """Whether objects have marks around them (`-X dev`, PYTHONMALLOC=debug) that CPython looks for when they go."""
    return sys.flags.dev_mode or "debug" in os.environ.get("PYTHONMALLOC", "") or hasattr(sys, "gettotalrefcount")


def _resident_bytes() -> int:
    return int(_STATM.read_text().split()[1]) * resource.getpagesize()

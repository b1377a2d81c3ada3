"""The resident memory and the file descriptors of this process."""

import fcntl
import os
import resource
from pathlib import Path

_STATUS = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return the number of resident bytes, including shared memory, or 0 if the system does not report it (macOS)."""
    try:
        return int(_STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


_MANY = 1 << 20
# A table of this size takes half a megabyte in the kernel, and is enough for 32,000 clients and their broker
# connections.
_RESERVED = 1 << 16


def raise_descriptor_limit() -> None:
    """Raise the soft limit on descriptors to the highest value that needs no additional privileges."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY if hard == resource.RLIM_INFINITY else min(hard, _MANY)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def reserve_descriptors() -> None:
    """Grow the table of descriptors now, before clients connect.

    Linux doubles the table when it is full. In a process with threads, the call that needs an entry waits until all
    other CPUs have passed a quiescent state (`synchronize_rcu` in `expand_fdtable`). This blocks accept() or socket()
    on the event loop for 20 to 60 ms, at 64, 128, ... 8,192 descriptors. The table never shrinks and is not inherited,
    so each process calls this function.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _RESERVED if soft == resource.RLIM_INFINITY else min(soft, _RESERVED)
    some = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.close(fcntl.fcntl(some, fcntl.F_DUPFD_CLOEXEC, most - 1))
    except OSError:  # the last descriptor is in use, so the table is already large enough
        pass
    finally:
        os.close(some)

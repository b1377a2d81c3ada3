"""How much memory a process has, and how much it may have."""

import resource
from contextlib import suppress
from pathlib import Path

_STATM = Path("/proc/self/statm")
_PAGE_BYTES = resource.getpagesize()


def own_bytes() -> int:
    """Bytes of this process that are resident and stand for no file; 0 where the system does not say."""
    _, resident, of_files = _pages()
    return (resident - of_files) * _PAGE_BYTES


def limit_growth(size: int) -> None:
    """Let this process map `size` bytes more than it has now, for good; nothing where the system does not say."""
    mapped = _pages()[0] * _PAGE_BYTES
    if mapped:
        with suppress(ValueError, OSError):  # there is a lower limit already
            resource.setrlimit(resource.RLIMIT_AS, (mapped + size, mapped + size))


def _pages() -> tuple[int, int, int]:
    try:
        mapped, resident, of_files = map(int, _STATM.read_bytes().split(maxsplit=3)[:3])
    except OSError:
        return 0, 0, 0
    return mapped, resident, of_files

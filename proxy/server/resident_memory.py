"""How much memory this process has."""

import os
from pathlib import Path

_STATUS = Path("/proc/self/statm")


def resident_bytes() -> int:
    """What is in memory now, what it shares with others included; 0 where the system does not tell (macOS)."""
    try:
        return int(_STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0

"""The descriptor table is large enough at the start, because growing it under load would delay all clients."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

_TABLE = "import re; print(re.search(r'FDSize:\\s+(\\d+)', open('/proc/self/status').read())[1])"
_LIMIT = """
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
setrlimit(RLIMIT_NOFILE, ({limit}, getrlimit(RLIMIT_NOFILE)[1]))
"""
_RESERVE = "from sluicegate.proxy.server.process_resources import reserve_descriptors; reserve_descriptors()"
_OPEN = "import os; print(len(os.listdir('/proc/self/fd')))"

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux reports the size of the table")


def _said(*statements: str) -> list[int]:
    """Run statements in a separate process and return the printed numbers."""
    done = subprocess.run([sys.executable, "-c", "\n".join(statements)], capture_output=True, text=True, check=True)
    return [int(number) for number in re.findall(r"\d+", done.stdout)]


def test_reserving_enlarges_the_descriptor_table_without_opening_descriptors() -> None:
    before, opened_before, after, opened_after = _said(
        _LIMIT.format(limit=4096), _TABLE, _OPEN, _RESERVE, _TABLE, _OPEN
    )

    assert before < 4096
    assert after >= 4096
    assert opened_after == opened_before


def test_the_reserved_descriptor_table_stays_within_the_process_limit() -> None:
    # A new process has a descriptor table that is large enough for its parent's descriptors.
    before, after = _said(_LIMIT.format(limit=200), _TABLE, _RESERVE, _TABLE)

    assert after <= max(256, before)

"""What the system says a thread has waited for a processor is what its own clocks say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluicegate.proxy.network.native_sockets import HAS_NATIVE_SOCKETS
from tests.oracle.kafka_java import ROOT
from tests.proxy.network.one_processor import numbers_told_beside_a_busy_one

pytestmark = [
    pytest.mark.skipif(not HAS_NATIVE_SOCKETS, reason="nothing is compiled, so there are no native sockets"),
    pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="the system does not count it"),
]

# Nothing here sleeps: what is no time of the processor's was waited for one (or taken by the machine's other guests).
_BUSY = """
import time
from sluicegate.proxy.network.run_delay import RunDelay

delay = RunDelay()
waited, ran, began = delay.nanoseconds(), time.thread_time_ns(), time.monotonic_ns()
while time.thread_time_ns() - ran < 100_000_000:
    pass
print(delay.nanoseconds() - waited, time.monotonic_ns() - began - (time.thread_time_ns() - ran))
"""


def test_it_is_what_a_busy_thread_did_not_run_for_beside_another_on_its_processor() -> None:
    delay, not_run = numbers_told_beside_a_busy_one(_BUSY)

    assert not_run > 20_000_000
    assert 0.3 * not_run < delay < 1.1 * not_run


def test_whoever_may_not_ask_is_told_nothing() -> None:
    nowhere = "import os; from tests.broker.confined import deny_calls; deny_calls([257, 2]); "  # openat, open
    text = f"from sluicegate.proxy.network.run_delay import RunDelay; {nowhere}print(RunDelay().nanoseconds())"
    if os.uname().machine != "x86_64":
        pytest.skip("the calls' numbers are x86-64's")
    told = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (told.stdout, told.stderr) == ("0\n", "")

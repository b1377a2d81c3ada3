"""A thread that is busy without an end lets others run, in small portions, and only where that costs it little."""

import platform
import re
import subprocess
import sys
import threading
import time

import pytest

from sluicegate.proxy.network.native_sockets import HAS_NATIVE_SOCKETS
from tests.oracle.kafka_java import ROOT
from tests.proxy.network.one_processor import numbers_told_beside_a_busy_one

if HAS_NATIVE_SOCKETS:
    from sluicegate.proxy.network.giving_way import GivingWay

pytestmark = pytest.mark.skipif(not HAS_NATIVE_SOCKETS, reason="nothing is compiled, so there are no native sockets")

_SLICE_SECONDS = 0.0001
_RUN_SECONDS = 0.01


def _has_own_slices() -> bool:
    release = [int(number) for number in re.findall(r"\d+", platform.release())[:2]]
    return platform.system() == "Linux" and release >= [6, 12]


needs_slices = pytest.mark.skipif(not _has_own_slices(), reason="Linux has slices of one's own since 6.12")


@needs_slices
def test_the_slice_is_the_least_that_there_is() -> None:
    told: list[int] = []
    thread = threading.Thread(target=lambda: told.append(GivingWay().slice_ns))
    thread.start()
    thread.join()
    assert told == [100_000]


@needs_slices
@pytest.mark.parametrize("read_bytes", [1, 4096, 1 << 20])
def test_whoever_has_run_for_a_slice_lets_others_run(read_bytes: int) -> None:
    giving_way = GivingWay()
    began = time.thread_time()
    while (ran := time.thread_time() - began) < _RUN_SECONDS:
        giving_way.has_taken(read_bytes)
    assert 1 <= giving_way.times <= ran / _SLICE_SECONDS


@needs_slices
def test_whoever_has_not_run_for_so_long_goes_on() -> None:
    giving_way = GivingWay()
    giving_way.has_taken(1)
    assert giving_way.times == 0


@needs_slices
def test_whoever_waits_in_between_leaves_others_time_enough() -> None:
    giving_way = GivingWay()
    for _ in range(50):
        giving_way.has_taken(1 << 20)
        time.sleep(0.002)  # this is what it waits
    assert giving_way.times == 0


# A thread that is busy with one client and now and then with another, beside another process on the same processor.
_BUSY = """
import sys
import time
from sluicegate.proxy.network.giving_way import ClientShare, GivingWay

giving_way = GivingWay()
loud, other = ClientShare(giving_way), ClientShare(giving_way)
ran, since = time.thread_time(), time.monotonic()
while time.thread_time() - ran < 0.3:
    loud.has_taken(1 << 20)
    if time.monotonic() - since > 0.01:
        other.has_given(int(sys.argv[2]))
        other.has_taken(int(sys.argv[1]))
        since = time.monotonic()
print(giving_way.times, giving_way.naps)
"""


def _gives_way(read_bytes: int, sent_bytes: int) -> tuple[int, int]:
    """How often, and how often of these by sleeping, where of the other client so much is read and sent every 10 ms."""
    times, naps = numbers_told_beside_a_busy_one(_BUSY, str(read_bytes), str(sent_bytes))
    return times, naps


@needs_slices
def test_who_is_wanted_out_of_the_way_sleeps_while_somebody_small_asks() -> None:
    times, naps = _gives_way(read_bytes=100, sent_bytes=100)
    assert times / 4 < naps <= times


@needs_slices
@pytest.mark.parametrize(("read_bytes", "sent_bytes"), [(100_000, 100), (100, 100_000)], ids=["producer", "consumer"])
def test_nobody_sleeps_where_all_are_large(read_bytes: int, sent_bytes: int) -> None:
    times, naps = _gives_way(read_bytes, sent_bytes)
    assert times > 0
    assert naps == 0


_WHERE_IT_IS_FORBIDDEN = """
import time
from tests.broker.confined import deny_calls, drop_capabilities
from sluicegate.proxy.network.giving_way import GivingWay

drop_capabilities()
deny_calls([314])  # sched_setattr, on x86-64
giving_way = GivingWay()
end = time.thread_time() + 0.01
while time.thread_time() < end:
    giving_way.has_taken(1 << 20)
print(giving_way.slice_ns, giving_way.times)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the call's number is x86-64's")
def test_nobody_gives_way_where_a_filter_forbids_short_slices() -> None:
    command = [sys.executable, "-c", _WHERE_IT_IS_FORBIDDEN]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (told.stdout.split(), told.stderr) == (["0", "0"], "")

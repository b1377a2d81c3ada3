"""What is free goes back to the system, whatever small things are left among it."""

import os
import subprocess
import sys

import pytest

from sluicegate.proxy.process.allocator import object_memory

_THOUSANDS_COME_AND_GO = """
import resource
from pathlib import Path
from sluicegate.proxy.process.allocator import Allocator

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

allocator = Allocator()
allocator.set_up()
begun = resident()
come = [[bytes(100)] for _ in range(300_000)]
left_of_them = come[::1000]
peak = resident()
del come
allocator.trim()
print(peak - begun, resident() - begun)
"""


@pytest.mark.skipif(object_memory is None, reason="it was not compiled: CPython's own allocator is used")
def test_what_thousands_of_objects_took_goes_back_though_one_of_a_thousand_stays() -> None:
    said = subprocess.run([sys.executable, "-c", _THOUSANDS_COME_AND_GO], capture_output=True, text=True, check=True)

    grew, kept = map(int, said.stdout.split())
    assert grew > 40 << 20
    assert kept < grew / 8


@pytest.mark.parametrize("options", [["-X", "dev"], []], ids=["dev mode", "debug hooks"])
def test_objects_that_are_marked_for_debugging_stay_where_they_are(options: list[str]) -> None:
    marked = os.environ | {"PYTHONMALLOC": "debug"} if not options else os.environ

    said = subprocess.run(
        [sys.executable, *options, "-c", _THOUSANDS_COME_AND_GO],
        capture_output=True,
        text=True,
        env=marked,
        check=False,
    )

    assert said.returncode == 0, said.stderr

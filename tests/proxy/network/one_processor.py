"""Runs a program beside one that is busy without an end, both on one processor."""

import os
import subprocess
import sys

from tests.oracle.kafka_java import ROOT

_LONGEST_SECONDS = 60


def numbers_told_beside_a_busy_one(text: str, *arguments: str) -> list[int]:
    """What the program `text` prints. Raises CalledProcessError or TimeoutExpired; the other is ended in any case."""
    pinned = ["taskset", "-c", str(min(os.sched_getaffinity(0))), sys.executable, "-c"]
    with subprocess.Popen([*pinned, "while True: pass"]) as other:
        try:
            told = subprocess.run(
                [*pinned, text, *arguments],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
                timeout=_LONGEST_SECONDS,
            )
        finally:
            other.kill()
    return [int(number) for number in told.stdout.split()]

"""Runs a small number of mutated batches; `make fuzz` runs ten million. SLUICEGATE_FUZZ_SEED and _BATCHES configure the
run."""

import os
import random
import subprocess
import sys

import pytest

from tests.fuzz import sanitized
from tests.fuzz.recorded.streams import STREAMS
from tests.oracle.kafka_java import ROOT

THOROUGH = "SLUICEGATE_THOROUGH" in os.environ
SEED = int(os.environ.get("SLUICEGATE_FUZZ_SEED") or random.SystemRandom().randrange(1 << 31))
BATCHES = int(os.environ.get("SLUICEGATE_FUZZ_BATCHES") or (10_000_000 if THOROUGH else 100_000))


def test_mutated_batches_cause_no_fault_in_the_compiled_code() -> None:
    """In a process of its own, for an exact memory measurement."""
    drawn = ("--batches", str(min(BATCHES, 100_000)), "--seed", str(SEED))

    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.in_process", *drawn], cwd=ROOT, capture_output=True, text=True, check=False
    )

    print(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_tree_with_sanitizers_has_the_recorded_streams() -> None:
    copied = set(sanitized.sources_in(ROOT / "tests"))

    assert STREAMS in copied
    assert not any(file.suffix == ".so" for file in sanitized.sources_in(ROOT / "protocol"))


@pytest.mark.timeout(7200)
@pytest.mark.skipif(sanitized.sanitizer_library() is None, reason="requires gcc and its AddressSanitizer")
@pytest.mark.skipif(not THOROUGH, reason="recompiles the tree: make fuzz")
def test_mutated_batches_cause_no_fault_under_sanitizers() -> None:
    sanitized.build_with_sanitizers()

    assert sanitized.run(BATCHES, os.cpu_count() or 1, SEED) == 0

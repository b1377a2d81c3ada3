"""The built-in extractors of the job `extract` work on whole columns."""

import sys

import numpy as np
import pytest

from sluicegate.pipeline.jobs.extract.built_in import NAMES, BuiltInExtractor
from sluicegate.pipeline.kafka.cluster import TopicPartition

NOW = 1_795_000_000_000
RECORDS = 100_000


@pytest.mark.parametrize("name", NAMES)
def test_built_in_extraction_calls_no_python_per_record(name: str) -> None:
    """Python code for each record would cost more than everything else."""
    times = np.arange(NOW, NOW + RECORDS)
    if name != "fail":
        times[1::7] = -1
    calls = 0

    def count_call(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count_call)
    try:
        found = BuiltInExtractor(name).event_times(TopicPartition("t", 0), np.arange(RECORDS), times, -1, NOW)
    finally:
        sys.setprofile(None)

    assert len(found) == RECORDS
    assert calls < 100

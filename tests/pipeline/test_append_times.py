"""The estimated append times include the true append times."""

import numpy as np
import pyarrow as pa
import pytest

from sluicegate.pipeline.jobs.profile.append_times import AppendTimes, append_times
from sluicegate.pipeline.jobs.profile.invalid_timestamps import POSSIBLE_CODES, assess_timestamps
from sluicegate.pipeline.jobs.profile.timestamp_counts import DoubtsOf, TimestampCounts
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source.decoding import BatchDecoder
from sluicegate.protocol.records.record_batch import RecordBatch
from tests.pipeline.appended import BATCH, HOUR, KINDS, MINUTE, stamped_records
from tests.wire.batches import LZ4, Rec, batch

NOW = 1_795_000_000_000
RECORDS = 3_000
LOG_APPEND_TIME = 8


class BatchTimes:
    """A partition of batches with these times. `by_broker`: append times that the broker has stored, by offset."""

    def __init__(self, times: list[int], by_broker: dict[int, int] | None = None) -> None:
        self._times = times
        self._by_broker = by_broker or {}
        self.rows = self.read()

    def read(self, doubts_of: DoubtsOf | None = None) -> pa.Table:
        whole = OffsetRange(TopicPartition("t", 0), 0, len(self._times))
        counts, decoder = TimestampCounts(whole, NOW, None, doubts_of), BatchDecoder()
        for offset in range(0, len(self._times), BATCH):
            records = [Rec(t) for t in self._times[offset : offset + BATCH]]
            stamp = self._by_broker.get(offset)
            stamps = {} if stamp is None else {"attributes": LOG_APPEND_TIME | LZ4, "max_timestamp": stamp}
            data = memoryview(batch(records, LZ4, base_offset=offset, **stamps))
            stored = StoredBatch(data, 0, len(data), offset, offset + len(records) - 1, RecordBatch(data, 0, len(data)))
            counts.enter(stored.last_offset)
            counts.add(decoder.decode(stored), 0, len(self._times))
        return counts.table()

    def damage(self, after_max_ms: int, before_max_ms: int) -> dict[str, tuple[int, int]]:
        """Return the least and the largest number of records with each damage."""
        times = append_times(self.rows, NOW)
        rows = assess_timestamps(
            self.rows, times, after_max_ms, before_max_ms, lambda _start, _end, its: self.read(its)
        )
        counts: dict[str, int] = {}
        for row in rows.to_pylist():
            counts[row["damage"]] = counts.get(row["damage"], 0) + row["records"]
        assert sum(counts.values()) == len(self._times)
        return {
            name: (counts.get(name, 0), sum(counts.get(code, 0) for code in POSSIBLE_CODES[name]))
            for name in POSSIBLE_CODES
        }

    def dated_hours(self) -> set[int]:
        """Return the hours in which the records were appended according to the estimate."""
        rows = assess_timestamps(self.rows, append_times(self.rows, NOW), HOUR, None)
        return {row["hour"] for row in rows.to_pylist() if row["hour"] == row["hour_until"]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bound_ms", [HOUR, 2 * HOUR, 90 * MINUTE + 1])
def test_the_true_counts_are_within_the_estimated_range(kind: str, bound_ms: int) -> None:
    written = stamped_records(kind, RECORDS, NOW)
    partition = BatchTimes(written.times)

    found = partition.damage(bound_ms, bound_ms)

    for damage, truth in (("future", written.count_in_future(bound_ms)), ("past", written.count_too_old(bound_ms))):
        least, most = found[damage]
        assert least <= truth <= most
    if kind not in ("shuffled", "most ahead"):  # otherwise the first wrong times would look valid
        earliest = append_times(partition.rows, NOW).earliest(np.arange(RECORDS))
        assert (earliest <= np.array(written.appended)).all()


@pytest.mark.parametrize("kind", ["valid", "constant", "repeated", "mirrored"])
def test_consistent_timestamps_are_never_counted_as_future(kind: str) -> None:
    assert BatchTimes(stamped_records(kind, RECORDS, NOW).times).damage(HOUR, HOUR)["future"] == (0, 0)


@pytest.mark.parametrize("kind", ["constant", "repeated", "shuffled", "jittered"])
def test_constant_or_shuffled_timestamps_yield_no_append_hour(kind: str) -> None:
    assert BatchTimes(stamped_records(kind, RECORDS, NOW).times).dated_hours() == set()


def test_valid_timestamps_are_assigned_to_their_append_hours() -> None:
    written = stamped_records("valid", RECORDS, NOW)

    assert BatchTimes(written.times).dated_hours() == {time // HOUR * HOUR for time in written.appended}


def test_backfill_does_not_affect_append_times_of_live_records() -> None:
    written = stamped_records("backfilled", RECORDS, NOW)

    assert BatchTimes(written.times).dated_hours() <= {time // HOUR * HOUR for time in written.appended}


def test_timestamps_far_after_the_time_of_reading_are_counted_exactly() -> None:
    written = stamped_records("valid", RECORDS, NOW)
    ahead = [time + 48 * HOUR if i % 7 == 0 else time for i, time in enumerate(written.times)]

    truth = len(range(0, RECORDS, 7))
    assert BatchTimes(ahead).damage(HOUR, HOUR)["future"] == (truth, truth)


def test_one_future_timestamp_at_the_end_leaves_other_counts_exact() -> None:
    written = stamped_records("valid", RECORDS, NOW)

    assert BatchTimes([*written.times[:-1], NOW + 48 * HOUR]).damage(HOUR, HOUR)["future"] == (1, 1)


def test_log_append_times_bound_the_append_times_of_their_neighbours() -> None:
    """If the topic's timestamp type changes, a stored append time is an upper bound for all earlier records."""
    written = stamped_records("a tenth ahead", RECORDS, NOW)
    by_broker = {offset: written.appended[offset] for offset in range(0, RECORDS, 4 * BATCH)}

    found = BatchTimes(written.times, by_broker).damage(HOUR, HOUR)

    assert found["future"] == (written.count_in_future(HOUR),) * 2
    assert found["past"] == (0, 0)


def test_watch_batches_narrow_the_estimated_append_times() -> None:
    places = np.arange(3)
    shown = AppendTimes.between(0, NOW)

    found = shown.within(NOW - 5 * MINUTE, NOW - MINUTE)

    assert found.earliest(places).tolist() == [NOW - 5 * MINUTE] * 3
    assert found.latest(places).tolist() == [NOW - MINUTE] * 3
    assert found.doubts(np.array([NOW, NOW + 2 * HOUR, NOW - 2 * HOUR]), places, HOUR, HOUR).tolist() == [0, 1, 2]

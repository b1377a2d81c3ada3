"""A repair's rules select the timestamps to rewrite in one partition's records, without a broker."""

import numpy as np
import pytest
from numpy.typing import NDArray

from sluicegate.pipeline.jobs.profile.append_times import append_times
from sluicegate.pipeline.jobs.profile.invalid_timestamps import assess_timestamps, partition_clock
from sluicegate.pipeline.jobs.profile.timestamp_counts import TimestampCounts
from sluicegate.pipeline.jobs.repair.correction import NAMES, Corrections, Rules, correct_timestamps
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source.decoding import BatchDecoder
from sluicegate.protocol.records.record_batch import RecordBatch
from tests.wire.batches import LZ4, Rec, batch

NOW = 1_795_000_000_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
YEAR = 365 * DAY
BATCH = 20


class RepairedBatches:
    """A partition of records with these times, in batches of 20."""

    def __init__(self, *times: int, epoch_ms: int | None = None) -> None:
        self.times = np.array(times, np.int64)
        whole = OffsetRange(TopicPartition("t", 0), 0, len(times))
        counts, decoder = TimestampCounts(whole, NOW, epoch_ms), BatchDecoder()
        for offset in range(0, len(times), BATCH):
            records = [Rec(t) for t in times[offset : offset + BATCH]]
            data = memoryview(batch(records, LZ4, base_offset=offset))
            header = RecordBatch(data, 0, len(data))
            stored = StoredBatch(data, 0, len(data), offset, offset + len(records) - 1, header)
            counts.enter(stored.last_offset)
            counts.add(decoder.decode(stored), 0, len(times))
        self._rows, self._epoch = counts.table(), epoch_ms
        self.clock = partition_clock(self._rows, NOW)
        self.appended = append_times(self._rows, NOW)

    def correct_times(self, **rules: object) -> Corrections:
        given = Rules(NOW, HOUR, epoch_ms=self._epoch, **rules)
        return correct_timestamps(self.times, np.arange(len(self.times)), self.clock, self.appended, given)

    def damage(self) -> dict[str, int]:
        rows = (
            assess_timestamps(self._rows, self.appended, HOUR, None)
            .group_by("damage")
            .aggregate([("records", "sum")])
            .to_pylist()
        )
        return {row["damage"]: row["records_sum"] for row in rows}

    def hours(self) -> dict[int, int]:
        rows = (
            assess_timestamps(self._rows, self.appended, HOUR, None)
            .group_by("hour")
            .aggregate([("records", "sum")])
            .to_pylist()
        )
        return {row["hour"]: row["records_sum"] for row in rows}


def live_times(count: int, begin: int, every: int = 10_000) -> list[int]:
    return [begin + i * every for i in range(count)]


def changed_count(found: Corrections, times: NDArray[np.int64]) -> int:
    return int((found.after != times).sum())


@pytest.mark.parametrize("per_ms", [1_000_000, 1000, None])
def test_invalid_timestamps_up_to_the_end_of_a_log_are_repaired(per_ms: int | None) -> None:
    """A producer has written in another unit for the last five hours, and no valid record follows."""
    true = [*live_times(1000, NOW - 8 * HOUR), *live_times(3000, NOW - 5 * HOUR, 6000)]
    written = true[:1000] + [t * per_ms if per_ms else t // 1000 for t in true[1000:]]

    partition = RepairedBatches(*written)
    found = partition.correct_times()

    assert found.solved.sum() == 3000
    assert max(abs(a - b) for a, b in zip(found.after.tolist(), true, strict=True)) < (1 if per_ms else 1000)
    assert len([hour for hour, records in partition.hours().items() if hour > NOW - 5 * HOUR and records > 500]) >= 4


def test_zero_timestamps_are_estimated_from_neighbours_in_another_unit() -> None:
    true = live_times(2000, NOW - 6 * HOUR)
    written = [t if i < 500 else 0 if i % 10 == 3 else t * 1_000_000 for i, t in enumerate(true)]

    found = RepairedBatches(*written).correct_times()

    assert max(abs(a - b) for a, b in zip(found.after.tolist(), true, strict=True)) < 2 * MINUTE


@pytest.mark.parametrize(
    "parts", ["live old live", "old live", "live old", "live old live old", "live old old", "live live old old old old"]
)
def test_a_backfill_leaves_valid_timestamps_unchanged(parts: str) -> None:
    times: list[int] = []
    for number, part in enumerate(parts.split()):
        times += live_times(960, (NOW - 8 * YEAR if part == "old" else NOW - 20 * HOUR) + number * 3 * HOUR, 10_000)

    found = RepairedBatches(*times).correct_times()

    assert changed_count(found, np.array(times)) == 0
    assert not found.solved.any()


def test_times_ahead_of_only_the_clock_are_rewritten_if_option_names_them() -> None:
    times = live_times(3000, NOW - 9 * DAY)
    times[1000:1040] = [t + 2 * DAY for t in times[1000:1040]]
    partition = RepairedBatches(*times)

    left, asked = partition.correct_times(), partition.correct_times(rewrite=frozenset({"future"}))

    assert changed_count(left, np.array(times)) == 0
    assert (left.may_be_valid.sum(), left.solved.sum()) == (40, 0)
    assert {NAMES[kind] for kind in left.kinds[1000:1040]} == {"maybe_future"}
    assert asked.solved.sum() == 40
    assert abs(int(asked.after[1020]) - (times[1020] - 2 * DAY)) < 10 * MINUTE


def test_times_after_the_moment_of_reading_are_rewritten_by_default() -> None:
    times = live_times(3000, NOW - 10 * HOUR)
    times[1000:1040] = [t + 2 * DAY for t in times[1000:1040]]

    found = RepairedBatches(*times).correct_times()

    assert (found.solved.sum(), found.may_be_valid.sum()) == (40, 0)
    assert abs(int(found.after[1020]) - (times[1020] - 2 * DAY)) < 10 * MINUTE


IMPLAUSIBLE = {
    "Excel's days": 46_300,
    "days": 20_700,
    "seconds × 10": NOW // 100,
    "seconds of 2001": 1_000_000_000,
    "YYYYMMDD": 20_261_121,
    "uptime": 5_000_000,
    "milliseconds of 2010": 1_280_000_000_000,
    "microseconds of 2010": 1_280_000_000_000_000,
    "nanoseconds of 2010": 1_280_000_000_000_000_000,
}


@pytest.mark.parametrize("odd", IMPLAUSIBLE.values(), ids=IMPLAUSIBLE.keys())
@pytest.mark.parametrize("place", [0, 500, 999])
def test_times_before_the_epoch_are_implausible_and_do_not_move_the_clock(odd: int, place: int) -> None:
    times = live_times(1000, NOW - 5 * HOUR)
    true = list(times)
    for i in range(20, 40):
        times[i] = 0
    times[place] = odd
    partition = RepairedBatches(*times)

    found = partition.correct_times()

    assert max(abs(int(found.after[i]) - true[i]) for i in range(20, 40)) < 10 * MINUTE
    assert partition.damage() == {"implausible": 1, "zero": 20, "none": 979}
    assert found.after[place] == odd
    assert partition.correct_times(rewrite=frozenset({"implausible"})).solved[place]


@pytest.mark.parametrize("odd", IMPLAUSIBLE.values(), ids=IMPLAUSIBLE.keys())
def test_zero_timestamps_after_implausible_start_are_estimated_from_later_records(odd: int) -> None:
    true = live_times(2000, NOW - 6 * HOUR)

    found = RepairedBatches(odd, *[0] * 399, *true[400:]).correct_times()

    assert max(abs(after - time) for after, time in zip(found.after[1:].tolist(), true[1:], strict=True)) < 2 * HOUR


def test_an_earlier_epoch_makes_old_timestamps_valid_and_their_units_known() -> None:
    begin = 1_280_000_000_000
    times = [t * (1, 1000, 1_000_000)[i % 3] for i, t in enumerate(live_times(300, begin))]

    archive, by_default = RepairedBatches(*times, epoch_ms=begin - DAY), RepairedBatches(*times)

    assert archive.damage() == {"none": 100, "microseconds": 100, "nanoseconds": 100}
    assert archive.correct_times().after.tolist() == live_times(300, begin)
    assert by_default.damage() == {"implausible": 300}
    assert changed_count(by_default.correct_times(), np.array(times)) == 0


def test_a_partition_with_only_zero_timestamps_is_not_repaired() -> None:
    found = RepairedBatches(*[0] * 40).correct_times()

    assert not found.solved.any()
    assert not found.after.any()

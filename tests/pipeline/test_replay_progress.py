"""A replay continues from the offsets that an earlier replay committed."""

import pytest

from sluicegate.pipeline.jobs.replay.progress import RemainingRanges, _remaining_of
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic

OF = TopicPartition("dead-letters", 0)


def test_dead_letters_that_retention_deleted_between_two_replays_are_reported() -> None:
    remaining = _remaining_of([OffsetRange(OF, 30, 50)], {OF: 10}, is_whole=True)

    missing = (
        "dead-letters-0 was replayed up to offset 10, and begins at offset 30: dead letters at offsets 10 to 29 are "
        "gone (retention or deleted records)"
    )
    assert remaining == RemainingRanges([OffsetRange(OF, 30, 50)], (missing,))


@pytest.mark.parametrize(("reached", "start"), [({}, 30), ({OF: 30}, 30), ({OF: 40}, 40), ({OF: 50}, 50)])
def test_a_replay_continues_after_its_progress(reached: dict[TopicPartition, int], start: int) -> None:
    assert _remaining_of([OffsetRange(OF, 30, 50)], reached, is_whole=True) == RemainingRanges(
        [OffsetRange(OF, start, 50)]
    )


def test_a_log_that_ends_before_the_progress_is_an_error() -> None:
    with pytest.raises(CannotWriteTopic, match="dead-letters-0 was replayed up to offset 60, but ends at offset 50"):
        _remaining_of([OffsetRange(OF, 0, 50)], {OF: 60}, is_whole=True)


def test_the_listed_records_of_a_later_audit_may_begin_after_the_progress() -> None:
    assert _remaining_of([OffsetRange(OF, 30, 50)], {OF: 10}, is_whole=False).missing == ()

"""An extraction is divided into batches, and its progress records each of them."""

from sluicegate.pipeline.jobs.extract.progress import ExtractProgress, PartitionProgress
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.source.losses import LogStates

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_batch_size_is_divided_among_partitions_by_unread_offsets() -> None:
    there, progress, sizes = [OffsetRange(A, 10, 110), OffsetRange(B, 0, 900)], ExtractProgress(), []

    while wanted := progress.next_ranges(there, 300):
        sizes.append({each.of: (each.start, each.end) for each in wanted})
        progress = progress.after({each.of: PartitionProgress(each.end, 7, each.size, 0) for each in wanted})

    assert sizes[0] == {A: (10, 40), B: (0, 270)}
    assert [sum(end - start for start, end in its.values()) for its in sizes] == [300, 300, 300, 100]
    assert progress.of == {A: PartitionProgress(110, 7, 100, 0), B: PartitionProgress(900, 7, 900, 0)}
    assert progress.number == 3


def test_a_new_partition_starts_at_its_log_start() -> None:
    progress = ExtractProgress().after({A: PartitionProgress(5, 1, 5, 0)})

    assert progress.next_ranges([OffsetRange(A, 0, 5), OffsetRange(B, 3, 9)], 100) == [OffsetRange(B, 3, 9)]


def test_the_highest_extracted_time_never_decreases() -> None:
    progress = ExtractProgress().after({A: PartitionProgress(5, 9, 4, 1)}).after({A: PartitionProgress(8, 2, 3, 0)})

    assert progress.of[A] == PartitionProgress(8, 9, 7, 1)


def test_records_deleted_since_the_last_run_are_reported_once_and_skipped() -> None:
    progress = ExtractProgress(of={A: PartitionProgress(50, 9, 50), B: PartitionProgress(70, 3, 70)}, ids={"t": "x"})

    same, lost = progress.resumed(LogStates({A: 0, B: 0}, {A: 60, B: 70}, {"t": "x"}))
    assert (same.of, lost) == (progress.of, [])

    later, lost = progress.resumed(LogStates({A: 55, B: 80}, {A: 60, B: 80}, {"t": "x"}))
    assert [sentence[:45] for sentence in lost] == [
        "t-0: was read up to offset 50, and begins at ",
        "t-1: was read up to offset 70, and begins at ",
    ]
    assert later.of == {A: PartitionProgress(55, 9, 50), B: PartitionProgress(80, 3, 70)}

    again, lost = progress.resumed(LogStates({A: 0}, {A: 90}, {"t": "y"}))
    assert "the topic has since been recreated (its id changed) and has offsets 0 to 89" in lost[0]
    assert lost[1].startswith("t-1: was read up to offset 70, and the partition no longer exists")
    assert again.of[A] == PartitionProgress(0, 9, 50)
    assert again.ids == {"t": "y"}
    assert again.missing == tuple(lost)
    assert again.resumed(LogStates({A: 0}, {A: 90}, {"t": "y"}))[1] == []  # the loss was already reported

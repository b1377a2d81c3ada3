"""A folder records the replays that were written from it."""

import pytest

from sluicegate.pipeline.jobs.replay.progress import next_run
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.runs.results import Results

GROUPS = {"dead": "replay.dead.1"}


class FolderInMemory(Results):
    """A folder in memory."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def has(self, name: str) -> bool:
        return name in self._texts

    def write_text(self, name: str, text: str) -> None:
        self._texts[name] = text

    def read_text(self, name: str) -> str:
        return self._texts[name]


def offset_ranges(*spans: tuple[int, int]) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("dead", p), start, end) for p, (start, end) in enumerate(spans)]


def test_the_run_number_increases_when_a_run_begins() -> None:
    folder = FolderInMemory()
    assert [next_run(folder).number, next_run(folder).number] == [0, 0]

    next_run(folder).begin(offset_ranges((0, 5)), GROUPS)

    assert next_run(folder).number == 1


@pytest.mark.parametrize(
    ("message", "remaining"),
    [
        ((0, 9), (5, 9)),  # the broker has lost the offsets
        ((5, 9), (5, 9)),
        ((7, 9), (7, 9)),  # a replay from another folder has continued
        ((0, 3), (3, 3)),
    ],
)
def test_an_ended_run_overrides_the_committed_offsets_of_the_broker(
    message: tuple[int, int], remaining: tuple[int, int]
) -> None:
    folder = FolderInMemory()
    run = next_run(folder)
    run.begin(offset_ranges((0, 5), (0, 2)), GROUPS)
    run.end(offset_ranges((0, 5), (0, 2)), GROUPS)

    assert next_run(folder).unfinished_ranges(offset_ranges(message, (2, 2)), GROUPS) == offset_ranges(
        remaining, (2, 2)
    )


def test_killed_run_does_not_advance_progress() -> None:
    folder = FolderInMemory()
    next_run(folder).begin(offset_ranges((0, 5)), GROUPS)

    assert next_run(folder).unfinished_ranges(offset_ranges((2, 5)), GROUPS) == offset_ranges((2, 5))


def test_a_recreated_topic_is_replayed_from_its_beginning() -> None:
    folder = FolderInMemory()
    run = next_run(folder)
    run.begin(offset_ranges((0, 5)), GROUPS)
    run.end(offset_ranges((0, 5)), GROUPS)

    assert next_run(folder).unfinished_ranges(offset_ranges((0, 5)), {"dead": "replay.dead.2"}) == offset_ranges((0, 5))

"""A repair's progress is parsed from librdkafka's results."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from confluent_kafka import Consumer

from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.writing.progress import WriteProgress, progress_in

OF = TopicPartition("orders", 0)
STORED = WriteProgress(7, 3, "plan").committed(OF).metadata


@dataclass
class FoundOffset:
    """A committed offset as librdkafka returns it. If `text` is None, the metadata cannot be decoded."""

    text: str | None
    topic: str = OF.topic
    partition: int = OF.partition
    offset: int = 7
    error: None = None

    @property
    def metadata(self) -> str:
        if self.text is None:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        return self.text


@dataclass
class CommittedOffsets:
    """A consumer that returns these metadata, one after the other."""

    texts: list[str | None]
    asked: int = field(default=0)

    def committed(self, _partitions: Sequence[Any], **_options: float) -> list[FoundOffset]:
        self.asked += 1
        return [FoundOffset(self.texts.pop(0))]


@pytest.mark.parametrize("after", ["", "st0", "}", '{"plan": "another"}', " \x01", "0"])
def test_progress_is_read_although_surplus_bytes_follow_the_metadata(after: str) -> None:
    """librdkafka copies metadata without a terminating zero, which the Python client expects."""
    consumer = CommittedOffsets([STORED + after])

    assert progress_in(cast(Consumer, consumer), [OF]) == {OF: WriteProgress(7, 3, "plan")}


def test_undecodable_progress_metadata_is_read_again() -> None:
    consumer = CommittedOffsets([None, None, STORED])

    assert progress_in(cast(Consumer, consumer), [OF]) == {OF: WriteProgress(7, 3, "plan")}
    assert consumer.asked == 3

"""Lists the decision about every dead letter in some ranges before anything is written."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter
from sluicegate.pipeline.jobs.replay.decisions import RemainingLetter, ReplayDecider, Replayed, Validation
from sluicegate.pipeline.jobs.replay.letters import LetterSource
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.source.tasks import map_in_tasks

DDL = (
    "topic string, partition int, offset bigint, to_topic string, to_partition int, kept_for string, before bigint, "
    "after bigint, corrected boolean, reason string, reported string"
)
"""`reason` and `reported` are null for records that are written back. `before` and `after` are times in ms. `kept_for`
is the reason for which the proxy rejected the record.
"""
_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "boolean": pa.bool_()}
_SCHEMA = pa.schema([(name, _TYPES[kind]) for name, kind in (field.split() for field in DDL.split(", "))])


def decide_letters(
    spark: SparkSession, letters: LetterSource, ranges: Sequence[OffsetRange], validation: Validation
) -> DataFrame:
    """Return a row for each record. The frame's tasks raise FunctionFails and CannotBeValidated."""

    def decide_letters_of_range(wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
        decider = ReplayDecider(validation)
        for some in letters.within(wanted):
            rows = [_row(wanted, offset, found, decider) for offset, found in some.records]
            yield pa.RecordBatch.from_pylist(rows, _SCHEMA)

    return map_in_tasks(spark, ranges, lambda wanted: wanted.size, decide_letters_of_range, DDL)


def _row(
    wanted: OffsetRange, offset: int, found: DeadLetter | RemainingLetter, decider: ReplayDecider
) -> dict[str, Any]:
    place = {"topic": wanted.of.topic, "partition": wanted.of.partition, "offset": offset}
    if isinstance(found, RemainingLetter):
        return place | {"corrected": False, "reason": str(found.reason), "reported": found.message}
    about = {
        "to_topic": found.topic,
        "to_partition": found.partition,
        "kept_for": f"rule {', '.join(found.rules)}" if found.rules else found.reason,
        "before": found.record.timestamp,
    }
    match decider.decide(found):
        case RemainingLetter(reason, message):
            return place | about | {"corrected": False, "reason": str(reason), "reported": message}
        case Replayed(record, corrected):
            return place | about | {"corrected": corrected, "after": record.timestamp}

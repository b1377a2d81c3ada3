"""What a repair will do, written down before it does anything, so that one that is resumed decides as it began."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from pipeline.kafka.cluster import OffsetRange, TopicPartition
from pipeline.profile.cells import tally_of
from pipeline.profile.clock import Clock, simplified
from pipeline.profile.damage import partition_clock
from pipeline.profile.tally import MINUTE_MS
from pipeline.repair.correction import Rules, clock_as_plan, clock_from
from pipeline.source.options import source_options
from pipeline.source.tasks import over
from pipeline.topics import Topics

_SURVEY_DDL = "topic string, partition int, codec string, offsets array<bigint>, times array<bigint>"
_SURVEY = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("codec", pa.string()),
        ("offsets", pa.list_(pa.int64())),
        ("times", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """Copy a range of offsets to the partition of the same number in the topic `to`; `codec` compresses there."""

    source: OffsetRange
    to: str
    codec: str
    clock: Clock | None
    rules: Rules


@dataclass(frozen=True, slots=True)
class Plan:
    """`targets`: source topic to clean topic. `begun`: something may have been written by it."""

    targets: dict[str, str]
    partitions: tuple[PartitionPlan, ...]
    rules: Rules
    begun: bool = False

    def as_json(self) -> str:
        """To be read by `plan_from`."""
        return json.dumps(
            {
                "targets": self.targets,
                "now_ms": self.rules.now_ms,
                "after_max_ms": self.rules.after_max_ms,
                "keep": sorted(self.rules.keep),
                "assume_ms": self.rules.assume_ms,
                "begun": self.begun,
                "partitions": [
                    {
                        "topic": each.source.of.topic,
                        "partition": each.source.of.partition,
                        "start": each.source.start,
                        "end": each.source.end,
                        "codec": each.codec,
                        "clock": clock_as_plan(each.clock),
                    }
                    for each in self.partitions
                ],
            }
        )


def plan_from(text: str) -> Plan:
    """What `as_json` wrote."""
    value = json.loads(text)
    rules = Rules(value["now_ms"], value["after_max_ms"], frozenset(value["keep"]), value["assume_ms"])
    partitions = tuple(
        PartitionPlan(
            OffsetRange(TopicPartition(each["topic"], each["partition"]), each["start"], each["end"]),
            value["targets"][each["topic"]],
            each["codec"],
            clock_from(each["clock"]),
            rules,
        )
        for each in value["partitions"]
    )
    return Plan(value["targets"], partitions, rules, value["begun"])


@dataclass(frozen=True, slots=True)
class Survey:
    """What a plan has to know of a partition: its clock, where it has one, and the codec of most of its records."""

    clock: Clock | None
    codec: str


def survey(
    spark: SparkSession, topics: Topics, ranges: Sequence[OffsetRange], now_ms: int
) -> dict[TopicPartition, Survey]:
    """Of each range's partition."""
    options = source_options(topics.options)

    def of_partition(wanted: OffsetRange) -> pa.Table:
        rows = tally_of(options, wanted, now_ms)
        if not len(rows):
            return pa.table({name: [] for name in _SURVEY.names}, schema=_SURVEY)
        clock = partition_clock(rows, now_ms)
        plan = clock_as_plan(None if clock is None else simplified(clock, MINUTE_MS)) or {}
        by_codec = rows.group_by("codec").aggregate([("records", "sum")]).sort_by([("records_sum", "descending")])
        found = {"topic": wanted.of.topic, "partition": wanted.of.partition, "codec": by_codec["codec"][0].as_py()}
        return pa.Table.from_pylist([found | plan], schema=_SURVEY)

    rows = over(spark, ranges, of_partition, _SURVEY_DDL).collect()
    return {
        TopicPartition(row.topic, row.partition): Survey(
            clock_from(None if row.offsets is None else row.asDict()), row.codec
        )
        for row in rows
    }


def make_plan(
    ranges: Iterable[OffsetRange],
    targets: dict[str, str],
    surveys: dict[TopicPartition, Survey],
    rules: Rules,
) -> Plan:
    """For the ranges, by what was found in them."""
    unknown = Survey(None, "none")
    assumed = None if rules.assume_ms is None else Clock.standing_at(rules.assume_ms)
    partitions = []
    for each in ranges:
        found = surveys.get(each.of, unknown)
        clock = found.clock if found.clock is not None else assumed
        partitions.append(PartitionPlan(each, targets[each.of.topic], found.codec, clock, rules))
    return Plan(targets, tuple(partitions), rules)

"""What a repair will do, written down before it does anything, so that one that is resumed decides as it began."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from pipeline.kafka.cluster import OffsetRange, TopicPartition
from pipeline.profile.clock import Clock
from pipeline.profile.damage import partition_clock
from pipeline.repair.correction import Rules, clock_as_plan, clock_from

_MOST_CLOCK_POINTS = 5_000
_CLOCK_DDL = "topic string, partition int, offsets array<bigint>, times array<bigint>"


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
                "begun": self.begun,
                "partitions": [
                    {
                        "topic": each.source.of.topic,
                        "partition": each.source.of.partition,
                        "start": each.source.start,
                        "end": each.source.end,
                        "codec": each.codec,
                        "clock": clock_as_plan(each.clock, _MOST_CLOCK_POINTS),
                    }
                    for each in self.partitions
                ],
            }
        )


def plan_from(text: str) -> Plan:
    """What `as_json` wrote."""
    value = json.loads(text)
    rules = Rules(value["now_ms"], value["after_max_ms"], frozenset(value["keep"]))
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


def clocks_of(tally: DataFrame, now_ms: int) -> dict[TopicPartition, Clock]:
    """The clock of each partition that has one, from its tally."""

    def of_partition(rows: pa.Table) -> pa.Table:
        clock = clock_as_plan(partition_clock(rows, now_ms), _MOST_CLOCK_POINTS)
        kept = [] if clock is None else [clock]
        return pa.table(
            {
                "topic": pa.array([rows["topic"][0].as_py()] * len(kept), pa.string()),
                "partition": pa.array([rows["partition"][0].as_py()] * len(kept), pa.int32()),
                "offsets": pa.array([each["offsets"] for each in kept], pa.list_(pa.int64())),
                "times": pa.array([each["times"] for each in kept], pa.list_(pa.int64())),
            }
        )

    rows = tally.groupBy("topic", "partition").applyInArrow(of_partition, _CLOCK_DDL).collect()
    return {TopicPartition(row.topic, row.partition): _clock(row) for row in rows}


def _clock(row: Any) -> Clock:
    found = clock_from({"offsets": row.offsets, "times": row.times})
    assert found is not None
    return found


def make_plan(
    ranges: Iterable[OffsetRange],
    targets: dict[str, str],
    codecs: dict[str, str],
    clocks: dict[TopicPartition, Clock],
    rules: Rules,
) -> Plan:
    """`codecs`: that of most records of each topic."""
    partitions = tuple(
        PartitionPlan(each, targets[each.of.topic], codecs.get(each.of.topic, "none"), clocks.get(each.of), rules)
        for each in ranges
    )
    return Plan(targets, partitions, rules)

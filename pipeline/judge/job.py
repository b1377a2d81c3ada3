"""`sluicegate-spark judge`: the proxy's own policies over what is stored.

A partition is judged by one task, in its order, and added up there: what passes through Spark is some rows an hour.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.config.model import Config
from sluicegate.pipeline.judge.append_times import MomentOf, always, when_appended
from sluicegate.pipeline.judge.findings import DDL, Findings, What
from sluicegate.pipeline.judge.judging import PartitionJudge
from sluicegate.pipeline.judge.policies import Policies, left_out
from sluicegate.pipeline.judge.summary import topic_summary
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.kafka.emptiness import DataLoss
from sluicegate.pipeline.kafka.fetching import StoredBatch, stored_batches
from sluicegate.pipeline.kafka.kept_clusters import kept_cluster
from sluicegate.pipeline.profile.cells import tally_of
from sluicegate.pipeline.profile.clock import Clock
from sluicegate.pipeline.profile.damage import partition_clock
from sluicegate.pipeline.repair.settings import settings_of
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.source.options import SourceOptions, source_options
from sluicegate.pipeline.source.tasks import over
from sluicegate.pipeline.topics import Topics
from sluicegate.validation.cluster_settings import KEYS, ClusterSettings, settings_from

_ALL = "cells"
_COLUMNS = {
    What.BATCHES: "topic, partition, hour, producer_id, codec, verdict, batches, records, bad_records",
    What.FINDINGS: (
        "topic, partition, hour, producer_id, codec, verdict, reason, rule, batches, records, bad_records, "
        "first_offset, last_offset"
    ),
    What.REHEARSED: "topic, partition, hour, producer_id, codec, key, max_ms, batches, records, bad_records",
    What.SAMPLES: (
        "topic, partition, first_offset AS offset, timestamp, appended_ms, verdict, reason, rule, diagnosis"
    ),
    What.GONE: "topic, partition, first_offset, last_offset",
}
_SUMS = ("batches", "records", "bad_records")
_MOST_SAMPLES = 200
"""Of those that the summary shows; the table has all."""


def cluster_settings(topics: Topics) -> tuple[dict[str, ClusterSettings], list[str]]:
    """What brokers hold topics to, as the proxy reads it; and a sentence for each that may not be read."""
    admin = AdminClient(topics.for_librdkafka)
    found, warnings = {}, []
    for name in topics.names:
        try:
            values = settings_of(admin, name).values
            found[name] = settings_from({key: values.get(key) for key in KEYS})
        except (KafkaException, ValueError) as error:
            told = error.args[0].str() if isinstance(error, KafkaException) else str(error)
            warnings.append(f"{name}: its settings cannot be read ({told}), so the file alone holds")
    return found, warnings


def judge(
    spark: SparkSession,
    topics: Topics,
    results: Results,
    config: Config,
    policies: Policies,
    now_ms: int,
    as_of_ms: int | None,
    samples: int,
) -> dict[str, Any]:
    """Write the tables and return the summary, which is not written yet. `as_of_ms`: the one moment that all is judged
    by; None: each batch by when it was appended.
    """
    results.forget_summary()
    options = source_options(topics.options)
    work = _of_partition(options, policies, now_ms, as_of_ms, samples)
    cells = results.write_table(_ALL, over(spark, topics.ranges(), lambda wanted: wanted.size, work, DDL))
    tables = {
        what: results.write_table(what.value, cells.where(f.col("what") == what.value).selectExpr(*_split(columns)))
        for what, columns in _COLUMNS.items()
    }
    results.remove(_ALL)
    rows = {what: _added_up(tables[what], what) for what in (What.BATCHES, What.FINDINGS, What.REHEARSED)}
    rows[What.GONE] = [row.asDict() for row in tables[What.GONE].collect()]
    shown = tables[What.SAMPLES].orderBy("topic", "verdict", "reason", "rule", "partition", "offset")
    return {
        "job": "judge",
        "read_at_ms": now_ms,
        "as_of_ms": as_of_ms,
        "not_judged": left_out(config),
        "topics": {
            name: topic_summary({what: [row for row in its if row["topic"] == name] for what, its in rows.items()})
            for name in topics.names
        },
        "samples": [row.asDict() for row in shown.limit(_MOST_SAMPLES).collect()],
    }


def _of_partition(
    options: SourceOptions, policies: Policies, now_ms: int, as_of_ms: int | None, samples: int
) -> Callable[[OffsetRange], list[pa.RecordBatch]]:
    def work(wanted: OffsetRange) -> list[pa.RecordBatch]:
        moment_of = always(as_of_ms) if as_of_ms is not None else _clock(options, wanted, now_ms)
        judge = PartitionJudge(wanted.of, policies.rulebook(), policies.limits)
        findings = Findings(wanted.of, samples)

        def take(batch: StoredBatch) -> None:
            moment = moment_of(batch)
            findings.add(batch, judge.judge(batch, moment), moment)

        found: list[pa.RecordBatch] = findings.table(_read(options, wanted, take)).to_batches()
        return found

    return work


def _clock(options: SourceOptions, wanted: OffsetRange, now_ms: int) -> MomentOf:
    """Of a first reading of the whole partition: what comes later tells of what came before."""
    clock = partition_clock(tally_of(options, wanted, now_ms).rows, now_ms)
    return when_appended(clock if clock is not None else Clock.standing_at(now_ms))


def _read(options: SourceOptions, wanted: OffsetRange, take: Callable[[StoredBatch], None]) -> list[OffsetRange]:
    """Every batch of a range in its order; returns what was gone before it could be read."""
    gone: list[OffsetRange] = []
    rest = wanted
    with kept_cluster(options.bootstrap, options.settings) as cluster:
        while True:
            try:
                for batch in stored_batches(cluster, rest, options.committed):
                    take(batch)
                return gone
            except DataLoss as loss:
                gone.append(OffsetRange(wanted.of, loss.first, loss.found))
                rest = OffsetRange(wanted.of, loss.found, wanted.end)


def _added_up(table: DataFrame, what: What) -> list[dict[str, Any]]:
    """Over partitions; findings over hours too, with the first and the last."""
    left = {"partition", "hour", "first_offset", "last_offset", *_SUMS}
    keys = [name for name in _split(_COLUMNS[what]) if name not in left]
    sums = [f.sum(name).alias(name) for name in _SUMS]
    hours = [f.min("hour").alias("first_hour"), f.max("hour").alias("last_hour")]
    return [row.asDict() for row in table.groupBy(*keys).agg(*sums, *hours).collect()]


def _split(columns: str) -> list[str]:
    return [column.strip() for column in columns.split(",")]

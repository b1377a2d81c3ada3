"""Runs `sluicegate-spark audit`: applies the proxy's policies to stored records.

Executors validate the records and aggregate the results, so only a few rows per hour pass through Spark. For the clock
of a large partition, executors also send a row per minute and producer.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from sluicegate.config.model import Config
from sluicegate.config.values.contract import TopicContract
from sluicegate.pipeline.commands.policy_file import owners_of
from sluicegate.pipeline.jobs.audit import report
from sluicegate.pipeline.jobs.audit.contract_checks import check_contracts
from sluicegate.pipeline.jobs.audit.findings import ENCRYPTED, RowKind
from sluicegate.pipeline.jobs.audit.partitions import validated_rows
from sluicegate.pipeline.jobs.audit.policies import Policies, parts_left_out, policies_of
from sluicegate.pipeline.jobs.audit.summary import topic_summary
from sluicegate.pipeline.jobs.repair.settings import settings_of
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.notebook import NotebookResult
from sluicegate.pipeline.report.wording import Conclusion
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.runs.tables import Tables, day_of
from sluicegate.pipeline.runs.violation_events import event_of_line, is_of_this_version
from sluicegate.pipeline.source.chunks import join_ranges
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.topic_ids import keep_topic_ids, topic_ids
from sluicegate.pipeline.source.topics import Topics
from sluicegate.validation.cluster_settings import KEYS, ClusterSettings, settings_from
from sluicegate.validation.outcome import Outcome

_ALL = "cells"
_COLUMNS = {
    RowKind.BATCHES: "topic, partition, hour, hour_until, producer_id, codec, verdict, batches, records, bad_records",
    RowKind.FINDINGS: (
        "topic, partition, hour, hour_until, producer_id, codec, verdict, reason, rule, batches, records, bad_records, "
        "first_offset, last_offset"
    ),
    RowKind.REHEARSED: (
        "topic, partition, hour, hour_until, producer_id, codec, key, max_ms, batches, records, bad_records"
    ),
    RowKind.SAMPLES: (
        "topic, partition, first_offset AS offset, timestamp, appended_ms, verdict, reason, rule, diagnosis"
    ),
    RowKind.MISSING: "topic, partition, first_offset, last_offset",
}
_SUMS = ("batches", "records", "bad_records")
_SPAN = {"first_offset": f.min, "last_offset": f.max}
_MOST_SAMPLES = 200
"""The maximum number of samples in the summary; the table contains all samples."""


def cluster_settings(topics: Topics) -> tuple[dict[str, ClusterSettings], list[str]]:
    """Return the topics' settings on the brokers, in the proxy's form.

    Also return a warning for each topic whose settings are unreadable.
    """
    admin = AdminClient(topics.for_librdkafka)
    found, warnings = {}, []
    for name in topics.names:
        try:
            values = settings_of(admin, name).values
            found[name] = settings_from({key: values.get(key) for key in KEYS})
        except (KafkaException, ValueError) as error:
            details = error.args[0].str() if isinstance(error, KafkaException) else str(error)
            warnings.append(f"{name}: its settings cannot be read ({details}), so only the file's policies apply")
    return found, warnings


def audit(
    spark: SparkSession,
    topics: Topics,
    results: Results,
    config: Config,
    policies: Policies,
    now_ms: int,
    as_of_ms: int | None,
    samples: int | None,
) -> dict[str, Any]:
    """Write the tables and return the summary, which the caller completes and writes.

    `as_of_ms` is the time against which everything is validated; None means each batch's append time. `samples` is the
    number of bad records to keep per kind and partition; None keeps all of them, which a replay requires.
    """
    results.forget_summary()
    options = source_options(topics.options)
    rows_of_chunks = validated_rows(spark, options, topics.ranges(), policies, now_ms, as_of_ms, samples)
    cells = results.write_table(_ALL, rows_of_chunks)
    rows, encrypted = _kept(results, cells, samples), _encrypted(cells)
    results.remove(_ALL)
    return {
        "job": "audit",
        "left_out": list(topics.left_out),
        "read_at_ms": now_ms,
        "as_of_ms": as_of_ms,
        "not_validated": parts_left_out(config),
        "lists_all": samples is None,
        "topics": {
            name: topic_summary({what: [row for row in its if row["topic"] == name] for what, its in rows.items()})
            | {"encrypted": encrypted.get(name, [])}
            for name in topics.names
        },
        "samples": rows[RowKind.SAMPLES],
    }


def _kept(results: Results, cells: DataFrame, samples: int | None) -> dict[RowKind, list[dict[str, Any]]]:
    """Write each table and return its part of the summary. These short jobs mostly wait, so they run in parallel."""

    def keep(what: RowKind) -> list[dict[str, Any]]:
        rows = _put_together(cells.where(f.col("what") == what.value), what, samples)
        return _summed_up(results.write_table(what.value, rows), what)

    with ThreadPoolExecutor(len(RowKind)) as writers:
        return dict(zip(RowKind, writers.map(keep, RowKind), strict=True))


def _encrypted(cells: DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return, by topic, the numbers of records that serializers encrypted, by registry and encrypted part."""
    rows = cells.where(f.col("what") == ENCRYPTED).groupBy("topic", "key", "reason").agg(f.sum("records"))
    found: dict[str, list[dict[str, Any]]] = {}
    for topic, registry, part, records in sorted(rows.collect()):
        found.setdefault(topic, []).append({"registry": registry, "part": part, "records": records})
    return found


def _put_together(rows: DataFrame, what: RowKind, samples: int | None) -> DataFrame:
    """Combine the rows of a partition's chunks, so that they look as if one task had validated the partition."""
    names = _split(_COLUMNS[what])
    if what is RowKind.SAMPLES:
        if samples is None:
            return rows.selectExpr(*names)
        alike = Window.partitionBy("topic", "partition", "verdict", "reason", "rule").orderBy("first_offset")
        first_ones = rows.withColumn("place", f.row_number().over(alike)).where(f.col("place") <= samples)
        return first_ones.selectExpr(*names)
    if what is RowKind.MISSING:
        return _joined(rows)
    keys = [name for name in names if name not in (*_SUMS, *_SPAN)]
    sums = [f.sum(name).alias(name) for name in _SUMS]
    span = [choose(name).alias(name) for name, choose in _SPAN.items() if name in names]
    return rows.groupBy(*keys).agg(*sums, *span)


def _joined(rows: DataFrame) -> DataFrame:
    """Join deleted ranges that span several chunks."""
    names = _split(_COLUMNS[RowKind.MISSING])
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for row in rows.orderBy(*names).collect():
        found.setdefault((row.topic, row.partition), []).append((row.first_offset, row.last_offset + 1))
    missing = [(*place, first, end - 1) for place, its in found.items() for first, end in join_ranges(its)]
    return rows.sparkSession.createDataFrame(missing, rows.select(*names).schema)


def _summed_up(table: DataFrame, what: RowKind) -> list[dict[str, Any]]:
    """Return the first samples, or all deleted ranges.

    For other rows, return sums over all partitions, with the first and the last hour.
    """
    if what is RowKind.SAMPLES:
        shown = table.orderBy("topic", "verdict", "reason", "rule", "partition", "offset").limit(_MOST_SAMPLES)
        return [row.asDict() for row in shown.collect()]
    if what is RowKind.MISSING:
        return [row.asDict() for row in table.collect()]
    left = {"partition", "hour", "hour_until", "first_offset", "last_offset", *_SUMS}
    keys = [name for name in _split(_COLUMNS[what]) if name not in left]
    sums = [f.sum(name).alias(name) for name in _SUMS]
    hours = [f.min("hour").alias("first_hour"), f.max("hour_until").alias("last_hour")]
    return [row.asDict() for row in table.groupBy(*keys).agg(*sums, *hours).collect()]


def _split(columns: str) -> list[str]:
    return [column.strip() for column in columns.split(",")]


_KEYS = ("topic", "client_id", "mode", "outcome", "reason", "rule")


def clients_of(spark: SparkSession, path: str, topics: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """Return the numbers of batches and bad records, by topic, then by client, mode, reason and rule, largest first.

    `path` names the files with events (a file, a folder or a glob). Kafka does not store clients' names with records,
    so only the proxy's violation events contain them. Events of accepted batches describe stored records. Events of
    rejected batches do not, and are marked. A batch that was sent again has another event. Raises Spark's own
    exceptions if the files cannot be read.
    """
    events = (
        spark.read.text(path)
        .select(event_of_line("value").alias("event"))
        .where(is_of_this_version("event") & f.col("event.topic").isin(*topics))
        .where(f.col("event.mode") != "rehearse")
        .where(f.col("event.outcome") != Outcome.RESEND.value)  # the batch is sent again and has another event
    )
    by_rule = events.select("event.*", f.explode_outer("event.rules").alias("broken")).select(
        "topic",
        "client_id",
        "mode",
        "outcome",
        "reason",
        f.col("broken.rule").alias("rule"),
        f.coalesce("broken.bad_records", "bad_records").alias("bad_records"),
        "records",
    )
    sums = (f.count("*").alias("batches"), f.sum("records").alias("records"), f.sum("bad_records").alias("bad_records"))
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in topics}
    for row in by_rule.groupBy(*_KEYS).agg(*sums).collect():
        details = row.asDict()
        found[details.pop("topic")].append(details | {"is_stored": details.pop("outcome") != Outcome.REJECTED.value})
    for its in found.values():
        its.sort(key=lambda row: (-row["records"], *(str(row[key]) for key in _KEYS[1:] if key != "outcome")))
    return found


@dataclass(frozen=True, slots=True, repr=False)
class Audit(NotebookResult):
    """The results of an audit.

    `summary` is the content of summary.json. `batches`, `findings` and `rehearsed` contain counts by topic, partition,
    hour (ms) and producer. `samples` contains bad records. `missing` contains offsets that retention deleted before the
    audit could read them. `warnings` contains a sentence for each omission.
    """

    summary: dict[str, Any]
    batches: DataFrame
    findings: DataFrame
    rehearsed: DataFrame
    samples: DataFrame
    missing: DataFrame
    warnings: tuple[str, ...]

    def conclusion(self) -> Conclusion:
        """Return the conclusion (see `NotebookResult`)."""
        return report.conclusion(self.summary)

    def table(self) -> ConsoleTable:
        """Return the table (see `NotebookResult`)."""
        return report.console_table(self.summary)


def run_audit(
    spark: SparkSession,
    topics: Topics,
    results: Results,
    config: Config,
    contracts: Mapping[str, TopicContract],
    now_ms: int,
    as_of_ms: int | None,
    samples: int | None,
    events: str | None,
    tables: Tables | None,
) -> Audit:
    """Audit the topics with the file's policies and the cluster's settings, and write all results.

    `contracts`, by topic, are checked over all records. `events` are files with the proxy's violation events, which add
    clients' names; None adds none. If `tables` is not None, the tables are also kept there.
    """
    settings, warnings = cluster_settings(topics) if config.upstream.topic_settings else ({}, [])
    policies = policies_of(config, settings)
    if samples is None:
        policies = policies.describing_all()
    ids = topic_ids(topics)
    summary = audit(spark, topics, results, config, policies, now_ms, as_of_ms, samples)
    keep_topic_ids(results, ids)
    if events is not None:
        for name, clients in clients_of(spark, events, topics.names).items():
            summary["topics"][name]["clients"] = clients
    for name, checked in check_contracts(spark, topics, contracts, policies, now_ms).items():
        summary["topics"][name]["contract"] = checked
    for name, owner in owners_of(config, topics.names).items():
        summary["topics"][name]["owner"] = owner
    report.write_report(results, summary)
    found = {what.value: results.read_table(what.value) for what in RowKind}
    if tables is not None:
        keep_audit(tables, found, topics.names, now_ms)
    results.write_summary(summary)
    return Audit(summary, **found, warnings=(*warnings, *report.remarks(summary)))


def keep_audit(tables: Tables, found: Mapping[str, DataFrame], topics: Sequence[str], read_at_ms: int) -> None:
    """Keep the tables as `audit_batches` and so on. Deleted ranges are stored under the day of the audit."""
    days = {"samples": f.col("appended_ms"), "missing": f.lit(read_at_ms)}
    for name, its in found.items():
        rows = its.drop("hour_until")
        tables.replace(f"audit_{name}", rows.withColumn("day", day_of(days.get(name, f.col("hour")))), "topic", topics)

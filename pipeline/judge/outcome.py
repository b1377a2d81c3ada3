"""A whole judgement of what is stored: its tables, its page and its summary written, and handed on."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.config.model import Config
from sluicegate.pipeline.judge import job, report
from sluicegate.pipeline.judge.findings import What
from sluicegate.pipeline.judge.policies import policies_of
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.tables.of_jobs import keep_judgement
from sluicegate.pipeline.tables.tables import Tables
from sluicegate.pipeline.topics import Topics

_EVENT = (
    "version int, time string, client_id string, topic string, partition int, mode string, reason string, "
    "records bigint, bad_records bigint, rules array<struct<rule: string, bad_records: bigint>>"
)
_FORWARDED = ("observe", "fix")
_KEYS = ("topic", "client_id", "mode", "reason", "rule")


def clients_of(spark: SparkSession, path: str, topics: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """By topic, from files of events (a file, a folder, a glob): batches and bad records by client, mode, reason and
    rule, those with most first. Raises Spark's own exceptions where the files cannot be read.
    """
    event = f.from_json("value", _EVENT).alias("event")
    events = (
        spark.read.text(path)
        .select(event)
        .where((f.col("event.version") == 1) & f.col("event.topic").isin(*topics))
        .where(f.col("event.mode").isin("reject", "quarantine", *_FORWARDED))
    )
    by_rule = events.select("event.*", f.explode_outer("event.rules").alias("broken")).select(
        "topic",
        "client_id",
        "mode",
        "reason",
        f.col("broken.rule").alias("rule"),
        f.coalesce("broken.bad_records", "bad_records").alias("bad_records"),
        "records",
    )
    sums = (f.count("*").alias("batches"), f.sum("records").alias("records"), f.sum("bad_records").alias("bad_records"))
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in topics}
    for row in by_rule.groupBy(*_KEYS).agg(*sums).collect():
        told = row.asDict()
        found[told.pop("topic")].append(told | {"is_stored": told["mode"] in _FORWARDED})
    for its in found.values():
        its.sort(key=lambda row: (-row["records"], *(str(row[key]) for key in _KEYS[1:])))
    return found


@dataclass(frozen=True, slots=True)
class Judgement:
    """`summary`: what summary.json holds; the others are the tables of their names. `batches`, `findings` and
    `rehearsed` count by topic, partition, hour (ms) and producer; `samples` are bad records, `gone` are offsets that
    retention took before they were read. `warnings`: a sentence for each thing that was left out.
    """

    summary: dict[str, Any]
    batches: DataFrame
    findings: DataFrame
    rehearsed: DataFrame
    samples: DataFrame
    gone: DataFrame
    warnings: tuple[str, ...]


def judged(
    spark: SparkSession,
    topics: Topics,
    results: Results,
    config: Config,
    now_ms: int,
    as_of_ms: int | None,
    samples: int | None,
    events: str | None,
    tables: Tables | None,
) -> Judgement:
    """As `sluicegate.pipeline.judge.job.judge`, by the file's policies and the cluster's settings, with everything
    written. `events`: files of the proxy's violation events, of which clients' names are added.
    `tables`: where they are kept as well.
    """
    settings, warnings = job.cluster_settings(topics) if config.upstream.topic_settings else ({}, [])
    policies = policies_of(config, settings)
    if samples is None:
        policies = policies.that_describe_all()
    summary = job.judge(spark, topics, results, config, policies, now_ms, as_of_ms, samples)
    if events is not None:
        for name, clients in clients_of(spark, events, topics.names).items():
            summary["topics"][name]["clients"] = clients
    report.write_report(results, summary)
    found = {what.value: results.read_table(what.value) for what in What}
    if tables is not None:
        keep_judgement(tables, found, topics.names, now_ms)
    results.write_summary(summary)
    return Judgement(summary, **found, warnings=(*warnings, *report.remarks(summary)))

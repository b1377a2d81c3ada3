"""A whole validation of what is stored: its tables, its page and its summary written, and handed on."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluicegate.config.model import Config
from sluicegate.pipeline.jobs.audit import job, report
from sluicegate.pipeline.jobs.audit.clients import clients_of
from sluicegate.pipeline.jobs.audit.findings import What
from sluicegate.pipeline.jobs.audit.policies import policies_of
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.tables.of_jobs import keep_validation
from sluicegate.pipeline.tables.tables import Tables
from sluicegate.pipeline.topics import Topics


@dataclass(frozen=True, slots=True)
class Validation:
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


def validated(
    spark: SparkSession,
    topics: Topics,
    results: Results,
    config: Config,
    now_ms: int,
    as_of_ms: int | None,
    samples: int | None,
    events: str | None,
    tables: Tables | None,
) -> Validation:
    """As `sluicegate.pipeline.jobs.audit.job.audit`, by the file's policies and the cluster's settings, with everything
    written. `events`: files of the proxy's violation events, of which clients' names are added.
    `tables`: where they are kept as well.
    """
    settings, warnings = job.cluster_settings(topics) if config.upstream.topic_settings else ({}, [])
    policies = policies_of(config, settings)
    if samples is None:
        policies = policies.that_describe_all()
    summary = job.audit(spark, topics, results, config, policies, now_ms, as_of_ms, samples)
    if events is not None:
        for name, clients in clients_of(spark, events, topics.names).items():
            summary["topics"][name]["clients"] = clients
    report.write_report(results, summary)
    found = {what.value: results.read_table(what.value) for what in What}
    if tables is not None:
        keep_validation(tables, found, topics.names, now_ms)
    results.write_summary(summary)
    return Validation(summary, **found, warnings=(*warnings, *report.remarks(summary)))

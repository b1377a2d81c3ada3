"""Runs a watch until it has processed all existing records, and returns its results."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluicegate.config.model import Config
from sluicegate.pipeline.jobs.audit.job import cluster_settings
from sluicegate.pipeline.jobs.audit.policies import Policies, policies_of
from sluicegate.pipeline.jobs.watch import findings, report
from sluicegate.pipeline.jobs.watch.job import FINDINGS, Watch, WatchSubject
from sluicegate.pipeline.jobs.watch.progress import stream_id
from sluicegate.pipeline.jobs.watch.reading import COLUMNS, DDL, HOURS, MISSING, VIOLATIONS
from sluicegate.pipeline.jobs.watch.webhook import Webhook
from sluicegate.pipeline.report.notebook import NotebookResult
from sluicegate.pipeline.report.wording import Conclusion
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.runs.tables import TableLocation, Tables, tables_in
from sluicegate.pipeline.source.topics import Topics


@dataclass(frozen=True, slots=True, repr=False)
class Watched(NotebookResult):
    """The results of a watch.

    `summary` is the content of summary.json. `new` contains the findings of this call, as rows. The other fields are
    the tables of all batches; sum their counts by topic and hour. `warnings` contains a sentence for each omission.
    """

    summary: dict[str, Any]
    new: tuple[dict[str, Any], ...]
    hours: DataFrame
    violations: DataFrame
    findings: DataFrame
    missing: DataFrame
    warnings: tuple[str, ...]

    def conclusion(self) -> Conclusion:
        """Return the conclusion (see `NotebookResult`)."""
        return report.conclusion(self.summary)


def policies_for(topics: Topics, config: Config | None) -> tuple[Policies | None, list[str]]:
    """Return the policies for a configuration file and the cluster's current settings; None if there is no file.

    Also returns warnings about unreadable settings.
    """
    if config is None:
        return None, []
    settings, warnings = cluster_settings(topics) if config.upstream.topic_settings else ({}, [])
    return policies_of(config, settings), warnings


def watch_in(
    spark: SparkSession, watching: WatchSubject, results: Results, kept: TableLocation, webhook: Webhook | None
) -> tuple[Watch, Tables]:
    """Return a folder's watch and its tables. Raises DifferentWatch and BadTables."""
    tables = tables_in(spark, kept)
    stream = stream_id(results, {"tables": kept.where, "format": kept.format.value})
    return Watch(spark, watching, results, tables, stream, webhook), tables


def watch_existing(watch: Watch, tables: Tables, warnings: list[str]) -> Watched:
    """Process all existing records, and return the results."""
    new: list[dict[str, Any]] = []
    while (found := watch.batch()) is not None:
        new += found
    trouble = watch.send_findings()
    messages = [*warnings, *watch.take_notices(), *([trouble] if trouble is not None else [])]
    frames = {what: tables.read(f"watch_{what}", schema_of(what)) for what in (HOURS, VIOLATIONS, FINDINGS, MISSING)}
    return Watched(watch.summary(), tuple(new), **frames, warnings=tuple(messages))


def schema_of(what: str) -> str:
    """Return a table's schema as Spark DDL."""
    if what == FINDINGS:
        return f"{findings.DDL}, day date"
    kinds = dict(field.split() for field in DDL.split(", "))
    return ", ".join(f"{name} {kinds[name]}" for name in COLUMNS[what].split(", ")) + ", day date, batch string"

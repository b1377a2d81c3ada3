"""What a program gets of a watch that has taken what there was."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sluicegate.config.model import Config
from sluicegate.pipeline.jobs.audit.job import cluster_settings
from sluicegate.pipeline.jobs.audit.policies import Policies, policies_of
from sluicegate.pipeline.jobs.watch import findings
from sluicegate.pipeline.jobs.watch.job import FINDINGS, Watch, Watching
from sluicegate.pipeline.jobs.watch.progress import stream_id
from sluicegate.pipeline.jobs.watch.reading import COLUMNS, DDL, GONE, HOURS, VIOLATIONS
from sluicegate.pipeline.jobs.watch.webhook import Webhook
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.tables.formats import Kept
from sluicegate.pipeline.tables.tables import Tables, tables_in
from sluicegate.pipeline.topics import Topics


@dataclass(frozen=True, slots=True)
class Watched:
    """`summary`: what summary.json holds. `new` are the findings of this call, as rows. The others are the tables of
    their names, of all batches: add up what they count by topic and hour. `warnings`: a sentence for each thing that
    was left out.
    """

    summary: dict[str, Any]
    new: tuple[dict[str, Any], ...]
    hours: DataFrame
    violations: DataFrame
    findings: DataFrame
    gone: DataFrame
    warnings: tuple[str, ...]


def policies_for(topics: Topics, config: Config | None) -> tuple[Policies | None, list[str]]:
    """Of a configuration file and the cluster's settings as they are now, with what cannot be read; None: no file."""
    if config is None:
        return None, []
    settings, warnings = cluster_settings(topics) if config.upstream.topic_settings else ({}, [])
    return policies_of(config, settings), warnings


def watch_in(
    spark: SparkSession, watching: Watching, results: Results, kept: Kept, webhook: Webhook | None
) -> tuple[Watch, Tables]:
    """The watch of a folder, and its tables. Raises OtherWatch and BadTables."""
    tables = tables_in(spark, kept)
    stream = stream_id(results, {"tables": kept.where, "format": kept.format.value})
    return Watch(spark, watching, results, tables, stream, webhook), tables


def watched(watch: Watch, tables: Tables, warnings: list[str]) -> Watched:
    """Everything that is there now, taken."""
    new: list[dict[str, Any]] = []
    while (found := watch.batch()) is not None:
        new += found
    trouble = watch.tell()
    told = [*warnings, *watch.take_notices(), *([trouble] if trouble is not None else [])]
    frames = {what: tables.read(f"watch_{what}", schema_of(what)) for what in (HOURS, VIOLATIONS, FINDINGS, GONE)}
    return Watched(watch.summary(), tuple(new), **frames, warnings=tuple(told))


def schema_of(what: str) -> str:
    """Of one of the tables, as Spark's DDL."""
    if what == FINDINGS:
        return f"{findings.DDL}, day date"
    kinds = dict(field.split() for field in DDL.split(", "))
    return ", ".join(f"{name} {kinds[name]}" for name in COLUMNS[what].split(", ")) + ", day date, batch string"

"""Converts the functions' arguments to those of the jobs: topics, tables, rules and the folder for results."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from sluicegate.pipeline.commands.running import now_in_ms
from sluicegate.pipeline.commands.spark import check_driver
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.repair.settings import Retention
from sluicegate.pipeline.jobs.replay.request import FixTimes, ReplayRequest, replay_request
from sluicegate.pipeline.jobs.replay.writing import Headers
from sluicegate.pipeline.runs.folder_lock import lock_folder
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.runs.tables import Tables, format_named, table_location, tables_in
from sluicegate.pipeline.source.datasource import TopicSource
from sluicegate.pipeline.source.progress_line import shown_in_notebook
from sluicegate.pipeline.source.topics import Topics, only_names


def topics_or_patterns(bootstrap: str, names: str | Sequence[str], settings: Mapping[str, str] | None) -> Topics:
    """Return the topics with these names or patterns."""
    given = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    return Topics(bootstrap, given, dict(settings or {}))


def topics_without_patterns(bootstrap: str, names: str | Sequence[str], settings: Mapping[str, str] | None) -> Topics:
    """Return the topics with these names, for jobs that write or compare topics. Raises BadSelection for a pattern."""
    found = topics_or_patterns(bootstrap, names, settings)
    return replace(found, names=only_names(found.names).names)


def kept_tables(spark: SparkSession, where: str | Path | None, form: str) -> Tables | None:
    """Return the tables that `where` keeps between runs; None if `where` is None."""
    return None if where is None else tables_in(spark, table_location(str(where), format_named(form)))


def request_for_replay(
    policies: str | Path, fix: str | None, by: str | None, headers: Headers, findings: str | Path | None
) -> ReplayRequest:
    """Return the request for a replay with the configuration file `policies`."""
    fixing = None if fix is None else FixTimes(fix)
    return replay_request(Path(policies), fixing, by, headers, now_in_ms(), None if findings is None else str(findings))


def repair_rules(
    after_max_ms: int,
    keep: Collection[str],
    rewrite: Collection[str],
    epoch_ms: int | None,
    retention: Retention,
    assume_ms: int | None,
    *skips: bool,
) -> Rules:
    """Return the rules of a repair that begins now. `skips` are `skip_unreadable` and `skip_unwritable`."""
    by_kind = (frozenset(keep), assume_ms, frozenset(rewrite))
    return Rules(now_in_ms(), after_max_ms, *by_kind, epoch_ms, retention, *skips)


@contextmanager
def opened_results(spark: SparkSession, out: str | Path, job: str) -> Iterator[Results]:
    """Create the folder for results, lock it for this run, and register the data source."""
    check_driver(spark)
    spark.dataSource.register(TopicSource)
    results = Results(spark, str(out))
    results.make()
    with lock_folder(results, job), shown_in_notebook(spark, job):
        yield results

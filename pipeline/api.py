"""The jobs as functions, for programs and notebooks that have their own Spark session.

Each function runs the same code as the command of its name. It writes the same files into `out` (tables as Parquet,
report.html, and summary.json last) and returns them as DataFrames and a dict. `warnings` holds the warnings that the
command prints.

`bootstrap` is host:port of one or several brokers, separated by commas. `topics` is one name or several; `profile`,
`audit` and `watch` also accept patterns: `orders-*`, `/orders-[0-9]+/`, or `*` for all topics that are not internal.
`out` is a folder on any file system that Spark can write to; results of an earlier run are replaced. `settings` are
librdkafka's names and values for TLS and SASL. Executors need sluicegate, installed or as the zip that `make executors`
builds.

Words that the command takes are accepted too: a word of an enumeration, `append` or a date for `as_of_ms`, `10y` or a
date for `epoch_ms`, `all` for `samples`.

Before any work begins, every function may raise BadParameter for an argument that it does not take, BadOption and
BadSetting for invalid options, BadSelection if no topic matches, TopicTrouble, BrokerUnreachable, ClusterLoginRejected,
NoSession for a session of Spark Connect, BadFolder for `out`, and FolderInUse if another run uses `out`. Spark's own
exceptions pass through.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from sluicegate.config.loading import load_file
from sluicegate.pipeline.commands.arguments import AFTER_MAX_MS
from sluicegate.pipeline.commands.policy_file import owners_of
from sluicegate.pipeline.commands.running import now_in_ms
from sluicegate.pipeline.commands.spark import check_driver
from sluicegate.pipeline.jobs.audit.job import Audit, run_audit
from sluicegate.pipeline.jobs.parameters import checked
from sluicegate.pipeline.jobs.profile.job import Profile, run_profile
from sluicegate.pipeline.jobs.repair import job as repairing
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.repair.job import Repair, propose_repair, write_repair
from sluicegate.pipeline.jobs.repair.settings import CLEAN, Retention
from sluicegate.pipeline.jobs.replay.job import Replay, propose_replay, write_replay
from sluicegate.pipeline.jobs.replay.request import FixTimes, ReplayRequest, replay_request
from sluicegate.pipeline.jobs.replay.writing import Headers
from sluicegate.pipeline.jobs.verify import job as verifying
from sluicegate.pipeline.jobs.verify.job import Verification, run_verify
from sluicegate.pipeline.jobs.watch.denied import DeniedTopics
from sluicegate.pipeline.jobs.watch.job import OFFSETS_A_BATCH, Watching
from sluicegate.pipeline.jobs.watch.outcome import Watched, policies_for, watch_in, watched
from sluicegate.pipeline.jobs.watch.reading import WatchBounds
from sluicegate.pipeline.jobs.watch.webhook import webhook_at
from sluicegate.pipeline.runs.argument_checks import BadParameter
from sluicegate.pipeline.runs.folder_lock import lock_folder
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.runs.tables import Tables, format_named, table_location, tables_in
from sluicegate.pipeline.source.datasource import TopicSource
from sluicegate.pipeline.source.progress_line import shown_in_notebook
from sluicegate.pipeline.source.topics import Topics, left_out_warnings, only_names

_HOUR_MS = 3_600_000


@checked
def profile(
    spark: SparkSession,
    bootstrap: str,
    topics: str | Sequence[str],
    out: str | Path,
    *,
    settings: Mapping[str, str] | None = None,
    after_max_ms: int = AFTER_MAX_MS,
    before_max_ms: int | None = None,
    epoch_ms: int | None = None,
    tables: str | Path | None = None,
    tables_format: str = "parquet",
) -> Profile:
    """Count what topics hold and classify their timestamps, by topic, partition, hour and producer.

    `after_max_ms`: a time further ahead of its append (ms) is future. `before_max_ms`: a time further behind is past;
    None: no time is past. `epoch_ms`: earlier times are implausible; None: ten years before now. `tables`: where tables
    are kept between runs, in `tables_format` (parquet, delta or iceberg). Raises BadTables for these two.
    """
    selected = _topics(bootstrap, topics, settings).selected()
    warnings = (*left_out_warnings(selected.left_out), *selected.open_transactions())
    kept = _kept(spark, tables, tables_format)
    with _results(spark, out, "profile") as results:
        found = run_profile(spark, selected, results, now_in_ms(), after_max_ms, before_max_ms, epoch_ms, kept)
    return replace(found, warnings=(*warnings, *found.warnings))


@checked
def audit(
    spark: SparkSession,
    bootstrap: str,
    topics: str | Sequence[str],
    out: str | Path,
    policies: str | Path,
    *,
    settings: Mapping[str, str] | None = None,
    as_of_ms: int | None = None,
    events: str | None = None,
    samples: int | None = 5,
    tables: str | Path | None = None,
    tables_format: str = "parquet",
) -> Audit:
    """Validate stored records by the proxy's configuration file `policies`.

    `as_of_ms`: validate all times as of this moment (ms since 1970); None: as of the estimated append of each batch.
    `events`: files of the proxy's violation events, which name clients. `samples`: bad records kept for each kind and
    partition; None: all, as a replay needs. `tables` and `tables_format`: see `profile`. Raises ConfigError for the
    file, RuleUnusable for a rule that cannot be built, and CannotBeValidated if a registry does not respond.
    """
    loaded = load_file(Path(policies), os.environ)
    config, contracts = loaded.config, loaded.source.contracts
    selected = _topics(bootstrap, topics, settings).selected()
    warnings = (*left_out_warnings(selected.left_out), *selected.open_transactions())
    kept = _kept(spark, tables, tables_format)
    with _results(spark, out, "audit") as results:
        found = run_audit(spark, selected, results, config, contracts, now_in_ms(), as_of_ms, samples, events, kept)
    return replace(found, warnings=(*warnings, *found.warnings))


@checked
def plan_repair(
    spark: SparkSession,
    bootstrap: str,
    topics: str | Sequence[str],
    out: str | Path,
    *,
    settings: Mapping[str, str] | None = None,
    to: str = CLEAN,
    after_max_ms: int = AFTER_MAX_MS,
    keep: Collection[str] = (),
    rewrite: Collection[str] = (),
    epoch_ms: int | None = None,
    retention: Retention = Retention.KEEP,
    assume_ms: int | None = None,
    skip_unreadable: bool = False,
    skip_unwritable: bool = False,
) -> Repair:
    """Propose corrections of invalid timestamps, as `sluicegate-spark repair` does without --apply. Writes no topic.

    `to`: name of the clean topic; {topic} stands for the source. `keep`: kinds of invalid timestamps that stay.
    `rewrite`: `future` or `implausible`, rewritten although such times may be valid. `assume_ms`: append time (ms since
    1970) for partitions without any usable time. `skip_unreadable`: leave unreadable batches out of the clean topic;
    the table `unreadable` keeps their bytes. `skip_unwritable`: leave out records with header names that client
    libraries cannot write. `after_max_ms` and `epoch_ms`: see `profile`. Raises CannotWriteTopic for an invalid name of
    a clean topic, and RepairBegun if a repair was begun in `out`.
    """
    rules = _rules(after_max_ms, keep, rewrite, epoch_ms, retention, assume_ms, skip_unreadable, skip_unwritable)
    return _repaired(propose_repair, spark, _named(bootstrap, topics, settings), out, to, rules)


@checked
def repair(
    spark: SparkSession,
    bootstrap: str,
    topics: str | Sequence[str],
    out: str | Path,
    *,
    settings: Mapping[str, str] | None = None,
    to: str = CLEAN,
    after_max_ms: int = AFTER_MAX_MS,
    keep: Collection[str] = (),
    rewrite: Collection[str] = (),
    epoch_ms: int | None = None,
    retention: Retention = Retention.KEEP,
    assume_ms: int | None = None,
    skip_unreadable: bool = False,
    skip_unwritable: bool = False,
) -> Repair:
    """Write the clean topics exactly once, as `sluicegate-spark repair --apply` does.

    Uses the plan that `plan_repair` left in `out` for the same arguments, or makes a new one. A run that was killed
    resumes after its last committed transaction. Arguments: see `plan_repair`. Raises the same errors, and
    CannotWriteTopic, which names all obstacles, before anything is written.
    """
    rules = _rules(after_max_ms, keep, rewrite, epoch_ms, retention, assume_ms, skip_unreadable, skip_unwritable)
    return _repaired(write_repair, spark, _named(bootstrap, topics, settings), out, to, rules)


@checked
def plan_replay(
    spark: SparkSession,
    bootstrap: str,
    topics: str | Sequence[str],
    out: str | Path,
    policies: str | Path,
    *,
    settings: Mapping[str, str] | None = None,
    fix: str | None = None,
    by: str | None = None,
    headers: Headers = Headers.OWN,
    findings: str | Path | None = None,
) -> Replay:
    """Decide what happens to dead letters, as `sluicegate-spark replay` does without --apply. Writes no topic.

    `topics` hold dead letters. With `findings`, the folder of an audit made with `samples=None`, they are the topics
    that were audited. `fix`: now, clamp, previous or unit; overrides the file's `fix` for bad times. `by`: your
    function as `module:function`, importable on executors. Raises ConfigError,
    RuleUnusable and NoFunction for invalid arguments; NoFindings for `findings`; FunctionFails and CannotBeValidated if
    a record cannot be decided.
    """
    request = _request(policies, fix, by, headers, findings)
    return _replayed(propose_replay, spark, _named(bootstrap, topics, settings), out, request)


@checked
def replay(
    spark: SparkSession,
    bootstrap: str,
    topics: str | Sequence[str],
    out: str | Path,
    policies: str | Path,
    *,
    settings: Mapping[str, str] | None = None,
    fix: str | None = None,
    by: str | None = None,
    headers: Headers = Headers.OWN,
    findings: str | Path | None = None,
) -> Replay:
    """Write back the records that `plan_replay` lists, exactly once, as `sluicegate-spark replay --apply` does.

    A run that was killed resumes after its last committed transaction. Arguments: see `plan_replay`. Raises the same
    errors, and CannotWriteTopic.
    """
    request = _request(policies, fix, by, headers, findings)
    return _replayed(write_replay, spark, _named(bootstrap, topics, settings), out, request)


@checked
def verify(
    spark: SparkSession,
    bootstrap: str,
    source: str,
    target: str,
    out: str | Path,
    *,
    settings: Mapping[str, str] | None = None,
    plan: str | Path | None = None,
    skip_unreadable: bool = False,
) -> Verification:
    """Compare two topics, ignoring the repairs that `target` declares.

    `plan`: folder of the repair that wrote `target`; the comparison ends where its plan ends and applies its rules.
    `skip_unreadable`: skip batches that cannot be read. Raises PlanMismatch
    if `plan` is about other topics or missing.
    """
    if source == target:
        raise BadParameter(f"target: expected another topic than source, found {target!r} for both")
    warnings = _named(bootstrap, (source, target), settings).open_transactions()
    with _results(spark, out, "verify") as results:
        made_by = verifying.plan_in(Results(spark, str(plan)), source, target) if plan is not None else None
        source_topic = replace(_named(bootstrap, source, settings), skip_unreadable=skip_unreadable)
        found = run_verify(spark, source_topic, target, results, now_in_ms(), made_by)
    return replace(found, warnings=tuple(warnings))


@checked
def watch(
    spark: SparkSession,
    bootstrap: str,
    topics: str | Sequence[str],
    out: str | Path,
    *,
    settings: Mapping[str, str] | None = None,
    policies: str | Path | None = None,
    after_max_ms: int = AFTER_MAX_MS,
    before_max_ms: int | None = None,
    epoch_ms: int | None = None,
    quiet_hours: int = 6,
    offsets_a_batch: int = OFFSETS_A_BATCH,
    webhook: str | None = None,
    tables: str | Path | None = None,
    tables_format: str = "parquet",
) -> Watched:
    """Process the records that arrived since the last call with the same `out`, and return, as `sluicegate-spark watch
    --once` does.

    `policies`: the proxy's configuration file, by which new records are validated. `quiet_hours`: a kind of invalid
    timestamp has ended when its producer has written for so long without it. `webhook`: address that findings are
    posted to. `tables`: where tables are kept; None: in `out`. Other arguments: see `profile`. Raises BadWebhook, the
    errors of `audit` for `policies`, DifferentWatch if `out` belongs to another watch, and TopicChanged if a topic lost
    records that were read.
    """
    config = load_file(Path(policies), os.environ).config if policies is not None else None
    address = webhook_at(webhook) if webhook is not None else None
    kept = table_location(str(tables if tables is not None else out), format_named(tables_format))
    selected = _topics(bootstrap, topics, settings).selected()
    selected = replace(selected, owners=owners_of(config, selected.names))
    warnings = [*left_out_warnings(selected.left_out), *DeniedTopics(selected).checked().open_transactions()]
    with _results(spark, out, "watch") as results:
        validated_by, unread = policies_for(selected, config)
        bounds = WatchBounds(after_max_ms, before_max_ms, epoch_ms)
        watching = Watching(selected, bounds, validated_by, quiet_hours * _HOUR_MS, offsets_a_batch)
        found, its_tables = watch_in(spark, watching, results, kept, address)
        return watched(found, its_tables, [*warnings, *unread])


def _repaired(
    work: Callable[[SparkSession, Topics, Results, dict[str, str], Rules], Repair],
    spark: SparkSession,
    topics: Topics,
    out: str | Path,
    to: str,
    rules: Rules,
) -> Repair:
    targets, warnings = repairing.targets_of(topics, to), topics.open_transactions()
    with _results(spark, out, "repair") as results:
        found = work(spark, topics, results, targets, rules)
    return replace(found, warnings=(*warnings, *found.warnings))


def _request(
    policies: str | Path, fix: str | None, by: str | None, headers: Headers, findings: str | Path | None
) -> ReplayRequest:
    fixing = None if fix is None else FixTimes(fix)
    return replay_request(Path(policies), fixing, by, headers, now_in_ms(), None if findings is None else str(findings))


def _replayed(
    work: Callable[[SparkSession, Topics, Results, ReplayRequest], Replay],
    spark: SparkSession,
    topics: Topics,
    out: str | Path,
    request: ReplayRequest,
) -> Replay:
    warnings = topics.open_transactions()
    with _results(spark, out, "replay") as results:
        found = work(spark, topics, results, request)
    return replace(found, warnings=(*warnings, *found.warnings))


def _rules(
    after_max_ms: int,
    keep: Collection[str],
    rewrite: Collection[str],
    epoch_ms: int | None,
    retention: Retention,
    assume_ms: int | None,
    *skips: bool,
) -> Rules:
    by_kind = (frozenset(keep), assume_ms, frozenset(rewrite))
    return Rules(now_in_ms(), after_max_ms, *by_kind, epoch_ms, retention, *skips)


def _kept(spark: SparkSession, where: str | Path | None, form: str) -> Tables | None:
    return None if where is None else tables_in(spark, table_location(str(where), format_named(form)))


def _topics(bootstrap: str, names: str | Sequence[str], settings: Mapping[str, str] | None) -> Topics:
    given = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    return Topics(bootstrap, given, dict(settings or {}))


def _named(bootstrap: str, names: str | Sequence[str], settings: Mapping[str, str] | None) -> Topics:
    """Return topics without patterns, for jobs that write or compare. Raises BadSelection."""
    found = _topics(bootstrap, names, settings)
    return replace(found, names=only_names(found.names).names)


@contextmanager
def _results(spark: SparkSession, out: str | Path, job: str) -> Iterator[Results]:
    """Create the folder, lock it for this run, and register the data source."""
    check_driver(spark)
    spark.dataSource.register(TopicSource)
    results = Results(spark, str(out))
    results.make()
    with lock_folder(results, job), shown_in_notebook(spark, job):
        yield results

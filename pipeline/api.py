"""Offers the jobs as functions, for programs and notebooks that have their own Spark session.

Each function runs the same code as the command with the same name. It writes the same files into `out` (tables as
Parquet, report.html, and summary.json last), and returns the tables as DataFrames and the summary as a dict. `warnings`
contains the warnings that the command prints.

`bootstrap` is host:port of one or more brokers, separated by commas. `topics` is one name or several. `profile`,
`audit` and `watch` also accept patterns: `orders-*`, `/orders-[0-9]+/`, or `*` for all topics that are not internal.
`out` is a folder on any file system that Spark can write to; a run replaces the results of earlier runs. `settings`
maps librdkafka's option names for TLS and SASL to their values. Sluicegate must be available on the executors, either
installed or as the zip that `make executors` builds.

Arguments may also be the words that the command accepts: the name of an enumeration's value, `append` or a date for
`as_of_ms`, `10y` or a date for `epoch_ms`, and `all` for `samples`.

Before any work begins, every function may raise BadParameter for an invalid argument, BadOption and BadSetting for
invalid options, BadSelection if no topic matches, TopicTrouble, BrokerUnreachable, ClusterLoginRejected, NoSession for
a Spark Connect session, BadFolder for `out`, and FolderInUse if another run uses `out`. Spark's own exceptions pass
through.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from sluicegate.config.loading import load_file
from sluicegate.pipeline.call_arguments import (
    kept_tables,
    opened_results,
    repair_rules,
    request_for_replay,
    topics_or_patterns,
    topics_without_patterns,
)
from sluicegate.pipeline.commands.arguments import AFTER_MAX_MS
from sluicegate.pipeline.commands.policy_file import owners_of
from sluicegate.pipeline.commands.running import now_in_ms
from sluicegate.pipeline.jobs.audit.job import Audit, run_audit
from sluicegate.pipeline.jobs.parameters import check_arguments
from sluicegate.pipeline.jobs.profile.job import Profile, run_profile
from sluicegate.pipeline.jobs.repair import job as repairing
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.repair.job import Repair, propose_repair, write_repair
from sluicegate.pipeline.jobs.repair.settings import CLEAN, Retention
from sluicegate.pipeline.jobs.replay.job import Replay, propose_replay, write_replay
from sluicegate.pipeline.jobs.replay.request import ReplayRequest
from sluicegate.pipeline.jobs.replay.writing import Headers
from sluicegate.pipeline.jobs.verify import job as verifying
from sluicegate.pipeline.jobs.verify.job import Verification, run_verify
from sluicegate.pipeline.jobs.watch.denied import DeniedTopics
from sluicegate.pipeline.jobs.watch.job import OFFSETS_A_BATCH, WatchSubject
from sluicegate.pipeline.jobs.watch.outcome import Watched, policies_for, watch_existing, watch_in
from sluicegate.pipeline.jobs.watch.reading import WatchBounds
from sluicegate.pipeline.jobs.watch.webhook import webhook_at
from sluicegate.pipeline.runs.argument_checks import BadParameter
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.runs.tables import format_named, table_location
from sluicegate.pipeline.source.topics import Topics, left_out_warnings

_HOUR_MS = 3_600_000


@check_arguments
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
    """Count the topics' records and classify their timestamps, by topic, partition, hour and producer.

    A time is a future time if it is more than `after_max_ms` (ms) later than its append, and a past time if it is more
    than `before_max_ms` earlier; with None, no time is past. Times before `epoch_ms` are implausible; None means ten
    years before now. If `tables` is set, the function also keeps its tables there between runs, in `tables_format`
    (parquet, delta or iceberg). Raises BadTables for these two arguments.
    """
    selected = topics_or_patterns(bootstrap, topics, settings).selected()
    warnings = (*left_out_warnings(selected.left_out), *selected.open_transactions())
    kept = kept_tables(spark, tables, tables_format)
    with opened_results(spark, out, "profile") as results:
        found = run_profile(spark, selected, results, now_in_ms(), after_max_ms, before_max_ms, epoch_ms, kept)
    return replace(found, warnings=(*warnings, *found.warnings))


@check_arguments
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
    """Validate stored records with the policies in `policies`, a configuration file of the proxy.

    `as_of_ms` is the time (ms since 1970) against which all timestamps are validated; None means the estimated append
    time of each batch. `events` are files with the proxy's violation events, which name the clients. `samples` is the
    number of bad records to keep per kind and partition; None keeps all of them, which a replay requires. For `tables`
    and `tables_format` see `profile`. Raises ConfigError for an invalid file, RuleUnusable for a rule that cannot be
    built, and CannotBeValidated if a registry does not respond.
    """
    loaded = load_file(Path(policies), os.environ)
    config, contracts = loaded.config, loaded.source.contracts
    selected = topics_or_patterns(bootstrap, topics, settings).selected()
    warnings = (*left_out_warnings(selected.left_out), *selected.open_transactions())
    kept = kept_tables(spark, tables, tables_format)
    with opened_results(spark, out, "audit") as results:
        found = run_audit(spark, selected, results, config, contracts, now_in_ms(), as_of_ms, samples, events, kept)
    return replace(found, warnings=(*warnings, *found.warnings))


@check_arguments
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

    - `to`: the name of the clean topic; {topic} stands for the source topic's name.
    - `keep`: kinds of invalid timestamps that stay unchanged.
    - `rewrite`: `future` or `implausible`, to rewrite such times even though they may be valid.
    - `assume_ms`: the append time (ms since 1970) for partitions without any usable time.
    - `skip_unreadable`: do not copy unreadable batches to the clean topic; the table `unreadable` keeps their bytes.
    - `skip_unwritable`: do not copy records with header names that client libraries cannot write.

    For `after_max_ms` and `epoch_ms` see `profile`. Raises CannotWriteTopic if the clean topic's name is invalid, and
    RepairBegun if a repair has already begun in `out`.
    """
    rules = repair_rules(after_max_ms, keep, rewrite, epoch_ms, retention, assume_ms, skip_unreadable, skip_unwritable)
    return _repaired(propose_repair, spark, topics_without_patterns(bootstrap, topics, settings), out, to, rules)


@check_arguments
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

    Uses the plan that `plan_repair` wrote to `out` with the same arguments, or makes a new one. A killed run resumes
    after its last committed transaction. The arguments and errors are those of `plan_repair`. Also raises
    CannotWriteTopic, with all obstacles, before it writes anything.
    """
    rules = repair_rules(after_max_ms, keep, rewrite, epoch_ms, retention, assume_ms, skip_unreadable, skip_unwritable)
    return _repaired(write_repair, spark, topics_without_patterns(bootstrap, topics, settings), out, to, rules)


@check_arguments
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
    """Decide for each dead letter whether to write it back, as `sluicegate-spark replay` does without --apply.

    Writes no topic. `topics` are dead-letter topics. With `findings`, which is the folder of an audit with
    `samples=None`, they are the audited topics. `fix` (now, clamp, previous or unit) replaces the file's `fix` for bad
    times. `by` names a function as `module:function`, which executors must be able to import. Raises ConfigError,
    RuleUnusable and NoFunction for invalid arguments, NoFindings for `findings`, and FunctionFails and
    CannotBeValidated if no decision about a record is possible.
    """
    request = request_for_replay(policies, fix, by, headers, findings)
    return _replayed(propose_replay, spark, topics_without_patterns(bootstrap, topics, settings), out, request)


@check_arguments
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

    A killed run resumes after its last committed transaction. The arguments and errors are those of `plan_replay`. Also
    raises CannotWriteTopic.
    """
    request = request_for_replay(policies, fix, by, headers, findings)
    return _replayed(write_replay, spark, topics_without_patterns(bootstrap, topics, settings), out, request)


@check_arguments
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

    `plan` is the folder of the repair that wrote `target`. If it is set, the comparison ends where the repair's plan
    ends, and applies the plan's rules. `skip_unreadable` skips unreadable batches. Raises PlanMismatch if there is no
    plan in `plan`, or if the plan is about other topics.
    """
    if source == target:
        raise BadParameter(f"target: expected another topic than source, found {target!r} for both")
    warnings = topics_without_patterns(bootstrap, (source, target), settings).open_transactions()
    with opened_results(spark, out, "verify") as results:
        made_by = verifying.plan_in(Results(spark, str(plan)), source, target) if plan is not None else None
        source_topic = replace(topics_without_patterns(bootstrap, source, settings), skip_unreadable=skip_unreadable)
        found = run_verify(spark, source_topic, target, results, now_in_ms(), made_by)
    return replace(found, warnings=tuple(warnings))


@check_arguments
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
    """Process the records since the last call with the same `out`, and return, as `sluicegate-spark watch --once` does.

    `policies` is the proxy's configuration file, with whose policies new records are validated; None disables
    validation. A producer's invalid timestamps of one kind have ended when the producer has written for `quiet_hours`
    without any. The function posts its findings to the address `webhook`. The tables are kept in `tables`, or in `out`
    if it is None. For other arguments see `profile`. Raises BadWebhook, the errors of `audit` for `policies`,
    DifferentWatch if `out` belongs to another watch, and TopicChanged if a topic lost records that the watch had read.
    """
    config = load_file(Path(policies), os.environ).config if policies is not None else None
    address = webhook_at(webhook) if webhook is not None else None
    kept = table_location(str(tables if tables is not None else out), format_named(tables_format))
    selected = topics_or_patterns(bootstrap, topics, settings).selected()
    selected = replace(selected, owners=owners_of(config, selected.names))
    warnings = [*left_out_warnings(selected.left_out), *DeniedTopics(selected).readable_topics().open_transactions()]
    with opened_results(spark, out, "watch") as results:
        validated_by, unread = policies_for(selected, config)
        bounds = WatchBounds(after_max_ms, before_max_ms, epoch_ms)
        watching = WatchSubject(selected, bounds, validated_by, quiet_hours * _HOUR_MS, offsets_a_batch)
        found, its_tables = watch_in(spark, watching, results, kept, address)
        return watch_existing(found, its_tables, [*warnings, *unread])


def _repaired(
    work: Callable[[SparkSession, Topics, Results, dict[str, str], Rules], Repair],
    spark: SparkSession,
    topics: Topics,
    out: str | Path,
    to: str,
    rules: Rules,
) -> Repair:
    targets, warnings = repairing.targets_of(topics, to), topics.open_transactions()
    with opened_results(spark, out, "repair") as results:
        found = work(spark, topics, results, targets, rules)
    return replace(found, warnings=(*warnings, *found.warnings))


def _replayed(
    work: Callable[[SparkSession, Topics, Results, ReplayRequest], Replay],
    spark: SparkSession,
    topics: Topics,
    out: str | Path,
    request: ReplayRequest,
) -> Replay:
    warnings = topics.open_transactions()
    with opened_results(spark, out, "replay") as results:
        found = work(spark, topics, results, request)
    return replace(found, warnings=(*warnings, *found.warnings))

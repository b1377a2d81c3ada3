"""The jobs as functions, for programs and notebooks that have a Spark session of their own.

Each does what the command of its name does, by the same code: it writes the same files into `out` (tables as
Parquet, report.html, and summary.json last), and returns them as DataFrames and a dict. What a command prints as
warnings is in `warnings`; what is said of records behind a transaction that is still open comes first.

`bootstrap` is host:port of a broker, or several with commas. `topics` is one, or several; `profile`, `audit` and
`watch` take patterns too, as `orders-*`, `/orders-[0-9]+/`, or `*` for all but internal ones. `out` is a folder on
any file system that Spark can write to; what an earlier run has left there is replaced. `settings` are librdkafka's
names and values, for TLS and SASL. Executors need sluicegate, installed or as the zip that `make executors` packs.

All raise BadOption and BadSetting for what cannot be, BadSelection where no topic matches, TopicTrouble,
BrokerUnreachable and LoginRejected before any work begins, NoSession for a session of Spark Connect, BadFolder for
`out`, FolderInUse where another run works there, and Spark's own exceptions.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from sluicegate.config.loading import load_file
from sluicegate.pipeline.arguments import AFTER_MAX_MS
from sluicegate.pipeline.folder_lock import held
from sluicegate.pipeline.jobs.audit.job import Audit, run_audit
from sluicegate.pipeline.jobs.profile.job import Profile, run_profile
from sluicegate.pipeline.jobs.repair import job as repairing
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.pipeline.jobs.repair.job import Repair, check_damages, propose_repair, write_repair
from sluicegate.pipeline.jobs.repair.settings import CLEAN, Retention
from sluicegate.pipeline.jobs.replay.job import Replay, propose_replay, write_replay
from sluicegate.pipeline.jobs.replay.request import FixTimes, ReplayRequest, replay_request
from sluicegate.pipeline.jobs.replay.writing import Headers
from sluicegate.pipeline.jobs.verify import job as verifying
from sluicegate.pipeline.jobs.verify.job import Verification, run_verify
from sluicegate.pipeline.jobs.watch.job import OFFSETS_A_BATCH, Watching
from sluicegate.pipeline.jobs.watch.outcome import Watched, policies_for, watch_in, watched
from sluicegate.pipeline.jobs.watch.reading import Bounds
from sluicegate.pipeline.jobs.watch.webhook import webhook_at
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.running import now_in_ms
from sluicegate.pipeline.selection import in_a_sentence
from sluicegate.pipeline.source.datasource import TopicSource
from sluicegate.pipeline.spark import check_driver
from sluicegate.pipeline.tables.formats import format_named, kept_at
from sluicegate.pipeline.tables.tables import Tables, tables_in
from sluicegate.pipeline.topics import Topics

_HOUR_MS = 3_600_000


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
    """Count what topics hold, and what is wrong with their timestamps, by topic, partition, hour and producer.

    `after_max_ms`: further ahead of append than this (ms) is future. `before_max_ms`: further behind is past; None:
    nothing is. `epoch_ms`: times before this moment are implausible; None: those of more than ten years ago. `tables`:
    where tables are kept from run to run, in `tables_format`: parquet, delta or iceberg. Raises BadTables for these.
    """
    asked = _topics(bootstrap, topics, settings).selected()
    warnings = (*in_a_sentence(asked.left_out), *asked.held_back())
    kept = _kept(spark, tables, tables_format)
    with _results(spark, out, "profile") as results:
        found = run_profile(spark, asked, results, now_in_ms(), after_max_ms, before_max_ms, epoch_ms, kept)
    return replace(found, warnings=(*warnings, *found.warnings))


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
    """What a proxy with the configuration file `policies` would have made of the records that are stored.

    `as_of_ms`: the one moment (ms since 1970) that times are validated by; None: when each batch was appended, as
    estimated. `events`: files of the proxy's violation events, which name clients. `samples`: bad records that are kept
    of each kind and partition; None: all, for a replay that goes by them. `tables` and `tables_format` as for
    `profile`. Raises ConfigError for the file, RuleUnusable for a rule in it that cannot be made, and CannotBeValidated
    where a registry does not answer.
    """
    config = load_file(Path(policies), os.environ).config
    asked = _topics(bootstrap, topics, settings).selected()
    warnings = (*in_a_sentence(asked.left_out), *asked.held_back())
    kept = _kept(spark, tables, tables_format)
    with _results(spark, out, "audit") as results:
        found = run_audit(spark, asked, results, config, now_in_ms(), as_of_ms, samples, events, kept)
    return replace(found, warnings=(*warnings, *found.warnings))


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
) -> Repair:
    """Propose corrections of damaged timestamps: the dry run of `sluicegate-spark repair`, which writes no topic.

    `to` names the clean topic; {topic} in it is the polluted one. `keep`: damages that are left alone. `rewrite`:
    `future` or `implausible`, rewritten though they may be sound. `assume_ms`: the time of append (ms since 1970) in
    partitions where nothing tells of one. `skip_unreadable`: batches that cannot be read, which the table
    `unreadable` has the bytes of, are left out of the clean topic. `after_max_ms` and `epoch_ms` as for `profile`.
    Raises NoSuchDamage, CannotWrite where a clean topic's name cannot be, and RepairBegun where one was begun in
    `out`.
    """
    rules = _rules(after_max_ms, keep, rewrite, epoch_ms, retention, assume_ms, skip_unreadable)
    return _repaired(propose_repair, spark, _topics(bootstrap, topics, settings), out, to, rules)


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
) -> Repair:
    """Write the clean topics, exactly once: `sluicegate-spark repair --apply`, by the plan that `plan_repair` has left
    in `out` for the same arguments, else by a new one. One that was killed goes on where its last transaction ended.

    Arguments as for `plan_repair`. Raises what that does, and CannotWrite, which names all obstacles, before anything
    is written.
    """
    rules = _rules(after_max_ms, keep, rewrite, epoch_ms, retention, assume_ms, skip_unreadable)
    return _repaired(write_repair, spark, _topics(bootstrap, topics, settings), out, to, rules)


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
    """What would become of dead letters: the dry run of `sluicegate-spark replay`, which writes no topic.

    `topics` hold dead letters; with `findings`, the folder of a validation that was made with `samples=None`, they are
    those that were validated. `fix`: now, clamp, previous or unit, for bad times, whatever the file says. `by`: a
    function
    of yours as `module:function`, importable on executors. Raises ValueError for a `fix` that is none, ConfigError,
    RuleUnusable and NoFunction for what is given, NoFindings for `findings`, FunctionFails and CannotBeValidated
    where a
    record cannot be decided.
    """
    asked = _asked(policies, fix, by, headers, findings)
    return _replayed(propose_replay, spark, _topics(bootstrap, topics, settings), out, asked)


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
    """Write back what `plan_replay` shows, exactly once: `sluicegate-spark replay --apply`. One that was killed goes on
    where its last transaction ended.

    Arguments as for `plan_replay`. Raises what that does, and CannotWrite.
    """
    asked = _asked(policies, fix, by, headers, findings)
    return _replayed(write_replay, spark, _topics(bootstrap, topics, settings), out, asked)


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
    """Compare two topics, repairs that `target` declares aside.

    `plan`: the folder of the repair that wrote `target`; the comparison then goes as far as its plan, and by its rules.
    `skip_unreadable`: batches that cannot be read are passed over.
    Raises ValueError where the topics are one, and NotThePlan where `plan` is about others or holds none.
    """
    if source == target:
        raise ValueError(f"verify compares two topics, and both are {source}")
    warnings = _topics(bootstrap, (source, target), settings).held_back()
    with _results(spark, out, "verify") as results:
        made_by = verifying.plan_in(Results(spark, str(plan)), source, target) if plan is not None else None
        asked = replace(_topics(bootstrap, source, settings), skip_unreadable=skip_unreadable)
        found = run_verify(spark, asked, target, results, now_in_ms(), made_by)
    return replace(found, warnings=tuple(warnings))


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
    """Take what has come since the last call with the same `out`, and return: `sluicegate-spark watch --once`.

    `policies`: the proxy's configuration file, by which what came is validated. `quiet_hours`: for so long a
    producer must
    write without a damage for it to have ended. `webhook`: an address that findings are posted to. `tables`: where they
    are kept, `out` itself where it is None; the others as for `profile`. Raises BadWebhook, what `audit` raises for
    `policies`, OtherWatch where `out` is another watch's, and TopicChanged where a topic has lost what was read of it.
    """
    config = load_file(Path(policies), os.environ).config if policies is not None else None
    address = webhook_at(webhook) if webhook is not None else None
    kept = kept_at(str(tables if tables is not None else out), format_named(tables_format))
    asked = _topics(bootstrap, topics, settings).selected()
    warnings = [*in_a_sentence(asked.left_out), *asked.held_back()]
    with _results(spark, out, "watch") as results:
        validated_by, unread = policies_for(asked, config)
        bounds = Bounds(after_max_ms, before_max_ms, epoch_ms)
        watching = Watching(asked, bounds, validated_by, quiet_hours * _HOUR_MS, offsets_a_batch)
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
    targets, warnings = repairing.targets_of(topics, to), topics.held_back()
    with _results(spark, out, "repair") as results:
        found = work(spark, topics, results, targets, rules)
    return replace(found, warnings=(*warnings, *found.warnings))


def _asked(
    policies: str | Path, fix: str | None, by: str | None, headers: Headers, findings: str | Path | None
) -> ReplayRequest:
    fixing = None if fix is None else FixTimes(fix)
    return replay_request(Path(policies), fixing, by, headers, now_in_ms(), None if findings is None else str(findings))


def _replayed(
    work: Callable[[SparkSession, Topics, Results, ReplayRequest], Replay],
    spark: SparkSession,
    topics: Topics,
    out: str | Path,
    asked: ReplayRequest,
) -> Replay:
    warnings = topics.held_back()
    with _results(spark, out, "replay") as results:
        found = work(spark, topics, results, asked)
    return replace(found, warnings=(*warnings, *found.warnings))


def _rules(
    after_max_ms: int,
    keep: Collection[str],
    rewrite: Collection[str],
    epoch_ms: int | None,
    retention: Retention,
    assume_ms: int | None,
    skip_unreadable: bool,
) -> Rules:
    check_damages(keep, rewrite)
    asked = (frozenset(keep), assume_ms, frozenset(rewrite), epoch_ms, retention, skip_unreadable)
    return Rules(now_in_ms(), after_max_ms, *asked)


def _kept(spark: SparkSession, where: str | Path | None, form: str) -> Tables | None:
    return None if where is None else tables_in(spark, kept_at(str(where), format_named(form)))


def _topics(bootstrap: str, names: str | Sequence[str], settings: Mapping[str, str] | None) -> Topics:
    given = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    return Topics(bootstrap, given, dict(settings or {}))


@contextmanager
def _results(spark: SparkSession, out: str | Path, job: str) -> Iterator[Results]:
    """The folder, made, and used by no other run meanwhile; and the session knows the format that jobs read."""
    check_driver(spark)
    spark.dataSource.register(TopicSource)
    results = Results(spark, str(out))
    results.make()
    with held(results, job):
        yield results

"""The command `sluicegate-spark watch`."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sluicegate.pipeline.commands.arguments import (
    AFTER_MAX_MS,
    EPOCH,
    AfterMax,
    AllTopics,
    Bootstrap,
    ConfigFile,
    Epoch,
    Format,
    Master,
    Out,
    SparkLog,
    TablesAt,
    TopicPatterns,
    epoch_ms_of,
    table_location_or_folder,
)
from sluicegate.pipeline.commands.policy_file import owners_of
from sluicegate.pipeline.commands.running import (
    SparkAt,
    exit_with_reason,
    now_in_ms,
    selected_topics,
    session_for,
    show_json,
)
from sluicegate.pipeline.report.wording import count_text

if TYPE_CHECKING:
    from sluicegate.pipeline.jobs.watch.job import Watch

Emit = Callable[[dict[str, Any]], None]
"""Outputs a finding."""
_HOUR_MS = 3_600_000
_FAILURES = 10
_RESUME = "complete batches stay. Run the same command again to continue after them"


def watch(
    bootstrap: Bootstrap,
    out: Out,
    topic: TopicPatterns = None,
    all_topics: AllTopics = False,
    policies: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Configuration file of the proxy. The job reports what the proxy would reject."
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Process the records since the last run, then exit.")] = False,
    every_seconds: Annotated[int, typer.Option(help="Interval between batches (s).", min=1, max=86_400)] = 60,
    batch: Annotated[int, typer.Option(help="Maximum number of offsets in a batch.", min=1)] = 20_000_000,
    webhook: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="SLUICEGATE_WEBHOOK",
            show_envvar=True,
            help="URL to which findings are posted as JSON.",
        ),
    ] = None,
    quiet_hours: Annotated[
        int,
        typer.Option(
            help="A kind of invalid timestamp counts as ended after its producer has written for this "
            "many hours without it.",
            min=1,
        ),
    ] = 6,
    after_max_ms: AfterMax = AFTER_MAX_MS,
    before_max_ms: Annotated[
        int | None,
        typer.Option(
            help="A timestamp counts as past if it is more than this (ms) before its append.",
            min=0,
        ),
    ] = None,
    epoch: Epoch = EPOCH,
    tables: TablesAt = None,
    form: Format = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print each finding as a line of JSON. With --once, print the summary."),
    ] = False,
    config: ConfigFile = None,
    master: Master = None,
    spark_log: SparkLog = None,
) -> None:
    """Keep hourly tables of new records, and report when a producer's invalid timestamps or distance begin or
    change.
    """
    from sluicegate.config.loading import ConfigError, load_file
    from sluicegate.pipeline.jobs.audit.policies import policies_of
    from sluicegate.pipeline.jobs.watch.denied import DeniedTopics
    from sluicegate.pipeline.jobs.watch.job import WatchSubject
    from sluicegate.pipeline.jobs.watch.outcome import policies_for, watch_in
    from sluicegate.pipeline.jobs.watch.reading import WatchBounds
    from sluicegate.pipeline.jobs.watch.webhook import BadWebhook, webhook_at
    from sluicegate.pipeline.runs.errors import PipelineError
    from sluicegate.validation.rules.rule import RuleUnusable

    bounds = WatchBounds(after_max_ms, before_max_ms, epoch_ms_of(epoch, now_in_ms()))
    kept = table_location_or_folder(out, tables, form)
    try:
        configuration = load_file(policies, os.environ).config if policies is not None else None
        if configuration is not None:
            policies_of(configuration, {}).rulebook()  # if a rule cannot be built, this fails before Spark starts
        address = webhook_at(webhook) if webhook is not None else None
    except (ConfigError, RuleUnusable, BadWebhook) as error:
        exit_with_reason(str(error))
    topics = selected_topics(bootstrap, topic, all_topics, config)
    topics = replace(topics, owners=owners_of(configuration, topics.names))
    try:
        readable = DeniedTopics(topics).readable_topics()
    except PipelineError as error:
        exit_with_reason(str(error))
    with session_for("watch", readable, out, SparkAt(master, spark_log), kept, _RESUME) as (spark, results):
        validated_by, warnings = policies_for(topics, configuration)
        for line in warnings:
            typer.echo(f"warning: {line}", err=True)
        watching = WatchSubject(topics, bounds, validated_by, quiet_hours * _HOUR_MS, batch)
        found, _ = watch_in(spark, watching, results, kept, address)
        if not once:
            _until_stopped(found, every_seconds, _as_json if as_json else _in_words)
        elif as_json:
            _until_caught_up(found, _silently)
            show_json(found.summary())
        else:
            _until_caught_up(found, _in_words)


def _until_caught_up(watch: "Watch", emit: Emit) -> None:
    while _next_batch(watch, emit):
        pass
    _send_findings(watch)


def _until_stopped(watch: "Watch", every_seconds: int, emit: Emit) -> None:
    """Retry failures, because nothing is lost. Ten failures in a row end the watch."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from sluicegate.pipeline.commands.running import message_of_failed_task
    from sluicegate.pipeline.kafka.connection import BrokerUnreachable
    from sluicegate.pipeline.runs.interruption import Interrupted

    failures = 0
    while True:
        next_at = time.monotonic() + every_seconds
        try:
            while _next_batch(watch, emit):
                failures = 0
        except (BrokerUnreachable, PySparkException, Py4JJavaError) as error:
            failures += 1
            if failures == _FAILURES or Interrupted.pending() is not None:
                raise
            typer.echo(f"warning: {message_of_failed_task(str(error))}; retrying in {every_seconds} s", err=True)
        _send_findings(watch)
        time.sleep(max(next_at - time.monotonic(), 0))


def _next_batch(watch: "Watch", emit: Emit) -> bool:
    """Process a batch and output its findings; return False if there were no new records."""
    found = watch.batch()
    for notice in watch.take_notices():
        typer.echo(f"warning: {notice}", err=True)
    if found is None:
        return False
    for row in found:
        emit(row)
    records = sum(each["records"] for each in watch.progress.topics.values())
    counts = f"{count_text(records, 'record')} so far, {count_text(len(found), 'finding')}"
    typer.echo(f"batch {watch.progress.number}: {counts}", err=True)
    return True


def _in_words(finding: dict[str, Any]) -> None:
    from sluicegate.pipeline.jobs.watch.findings import finding_line

    typer.echo(finding_line(finding))


def _as_json(finding: dict[str, Any]) -> None:
    typer.echo(json.dumps(finding))


def _silently(_finding: dict[str, Any]) -> None:
    """Output nothing, because findings are part of the summary that is printed at the end."""


def _send_findings(watch: "Watch") -> None:
    trouble = watch.send_findings()
    if trouble is not None:
        typer.echo(f"warning: {trouble}; retrying with the next batch", err=True)

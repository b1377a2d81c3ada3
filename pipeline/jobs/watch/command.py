"""The command `sluicegate-spark watch`."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sluicegate.pipeline.arguments import (
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
    kept_in_or,
)
from sluicegate.pipeline.running import SparkAt, end, now_in_ms, selected_topics, session_for, show_json

if TYPE_CHECKING:
    from sluicegate.pipeline.jobs.watch.job import Watch

Say = Callable[[dict[str, Any]], None]
"""What is done with a finding."""
_HOUR_MS = 3_600_000
_FAILURES = 10
_RESUME = "batches that are whole stay. Give the same command again to continue after them"


def watch(
    bootstrap: Bootstrap,
    out: Out,
    topic: TopicPatterns = None,
    all_topics: AllTopics = False,
    policies: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The proxy's own configuration file: what would it reject?")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Take what has come since the last run, and end.")] = False,
    every_seconds: Annotated[int, typer.Option(help="How often what came is taken.", min=1, max=86_400)] = 60,
    batch: Annotated[int, typer.Option(help="At most so many offsets at once.", min=1)] = 20_000_000,
    webhook: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="SLUICEGATE_WEBHOOK",
            show_envvar=True,
            help="Findings are posted there, as JSON.",
        ),
    ] = None,
    quiet_hours: Annotated[
        int, typer.Option(help="So long a producer writes without a damage for it to have ended.", min=1)
    ] = 6,
    after_max_ms: AfterMax = AFTER_MAX_MS,
    before_max_ms: Annotated[
        int | None, typer.Option(help="Further behind append than this is past; without it nothing is.", min=0)
    ] = None,
    epoch: Epoch = EPOCH,
    tables: TablesAt = None,
    form: Format = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="A line of JSON for each finding; with --once, what summary.json holds instead."),
    ] = False,
    config: ConfigFile = None,
    master: Master = None,
    spark_log: SparkLog = None,
) -> None:
    """Keep tables of what comes up to date by hour, and tell when a producer's damage or distance begins or changes."""
    from sluicegate.config.loading import ConfigError, load_file  # noqa: PLC0415
    from sluicegate.pipeline.jobs.audit.policies import policies_of  # noqa: PLC0415
    from sluicegate.pipeline.jobs.watch.job import Watching  # noqa: PLC0415
    from sluicegate.pipeline.jobs.watch.outcome import policies_for, watch_in  # noqa: PLC0415
    from sluicegate.pipeline.jobs.watch.reading import Bounds  # noqa: PLC0415
    from sluicegate.pipeline.jobs.watch.webhook import BadWebhook, webhook_at  # noqa: PLC0415
    from sluicegate.validation.rules.rule import RuleUnusable  # noqa: PLC0415

    bounds = Bounds(after_max_ms, before_max_ms, epoch_ms_of(epoch, now_in_ms()))
    kept = kept_in_or(out, tables, form)
    try:
        said = load_file(policies, os.environ).config if policies is not None else None
        if said is not None:
            policies_of(said, {}).rulebook()  # what cannot be made is known before anything starts
        address = webhook_at(webhook) if webhook is not None else None
    except (ConfigError, RuleUnusable, BadWebhook) as error:
        end(str(error))
    topics = selected_topics(bootstrap, topic, all_topics, config)
    with session_for("watch", topics, out, SparkAt(master, spark_log), kept, _RESUME) as (spark, results):
        validated_by, warnings = policies_for(topics, said)
        for line in warnings:
            typer.echo(f"warning: {line}", err=True)
        watching = Watching(topics, bounds, validated_by, quiet_hours * _HOUR_MS, batch)
        found, _ = watch_in(spark, watching, results, kept, address)
        if not once:
            _on_and_on(found, every_seconds, _as_json if as_json else _in_words)
        elif as_json:
            _all_there_is(found, _silently)
            show_json(found.summary())
        else:
            _all_there_is(found, _in_words)


def _all_there_is(watch: "Watch", say: Say) -> None:
    while _a_batch(watch, say):
        pass
    _tell(watch)


def _on_and_on(watch: "Watch", every_seconds: int, say: Say) -> None:
    """What fails is tried again, because nothing is lost by it; what fails ten times in a row ends the watch."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from sluicegate.pipeline.kafka.connection import BrokerUnreachable  # noqa: PLC0415
    from sluicegate.pipeline.running import reason  # noqa: PLC0415

    failures = 0
    while True:
        next_at = time.monotonic() + every_seconds
        try:
            while _a_batch(watch, say):
                failures = 0
        except (BrokerUnreachable, PySparkException, Py4JJavaError) as error:
            failures += 1
            if failures == _FAILURES:
                raise
            typer.echo(f"warning: {reason(str(error))}; trying again in {every_seconds} s", err=True)
        _tell(watch)
        time.sleep(max(next_at - time.monotonic(), 0))


def _a_batch(watch: "Watch", say: Say) -> bool:
    """Whether there was one; its findings are said."""
    found = watch.batch()
    for notice in watch.take_notices():
        typer.echo(f"warning: {notice}", err=True)
    if found is None:
        return False
    for row in found:
        say(row)
    records = sum(each["records"] for each in watch.progress.topics.values())
    typer.echo(f"batch {watch.progress.number}: {records} records in all, {len(found)} findings", err=True)
    return True


def _in_words(finding: dict[str, Any]) -> None:
    from sluicegate.pipeline.jobs.watch.findings import in_a_line  # noqa: PLC0415

    typer.echo(in_a_line(finding))


def _as_json(finding: dict[str, Any]) -> None:
    typer.echo(json.dumps(finding))


def _silently(_finding: dict[str, Any]) -> None:
    """They are in what is printed in the end."""


def _tell(watch: "Watch") -> None:
    trouble = watch.tell()
    if trouble is not None:
        typer.echo(f"warning: {trouble}; it is told again with the next batch", err=True)

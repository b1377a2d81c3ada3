"""The command `sluicegate-spark profile`."""

from dataclasses import replace
from typing import Annotated

import typer

from sluicegate.pipeline.commands.arguments import (
    AFTER_MAX_MS,
    EPOCH,
    AfterMax,
    AllTopics,
    AsJson,
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
    table_location_option,
)
from sluicegate.pipeline.commands.policy_file import PolicyFile, configuration_in, owners_of
from sluicegate.pipeline.commands.running import (
    SparkAt,
    now_in_ms,
    print_table,
    selected_topics,
    session_for,
    show_json,
)


def profile(
    bootstrap: Bootstrap,
    out: Out,
    topic: TopicPatterns = None,
    all_topics: AllTopics = False,
    after_max_ms: AfterMax = AFTER_MAX_MS,
    before_max_ms: Annotated[
        int | None,
        typer.Option(
            help="A timestamp counts as past if it is more than this (ms) before its append.",
            min=0,
        ),
    ] = None,
    epoch: Epoch = EPOCH,
    as_json: AsJson = False,
    tables: TablesAt = None,
    form: Format = None,
    policies: PolicyFile = None,
    config: ConfigFile = None,
    master: Master = None,
    spark_log: SparkLog = None,
) -> None:
    """Count what topics hold and classify their timestamps, by topic, partition, hour and producer."""
    from sluicegate.pipeline.jobs.profile import report
    from sluicegate.pipeline.jobs.profile.job import run_profile
    from sluicegate.pipeline.jobs.profile.report import conclusion
    from sluicegate.pipeline.runs.tables import tables_in

    now_ms = now_in_ms()
    kept = table_location_option(tables, form)
    epoch_ms = epoch_ms_of(epoch, now_ms)
    configuration = configuration_in(policies)
    topics = selected_topics(bootstrap, topic, all_topics, config)
    topics = replace(topics, owners=owners_of(configuration, topics.names))
    with session_for("profile", topics, out, SparkAt(master, spark_log), kept) as (spark, results):
        keeper = tables_in(spark, kept) if kept is not None else None
        found = run_profile(spark, topics, results, now_ms, after_max_ms, before_max_ms, epoch_ms, keeper)
        for line in found.warnings:
            typer.echo(f"warning: {line}", err=True)
        if as_json:
            show_json(found.summary)
            return
        typer.echo(conclusion(found.summary))
        print_table(report.console_table(found.summary), out)
        for line in report.odd_unit_sentences(found.summary):
            typer.echo(line)

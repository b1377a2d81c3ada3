"""The command `sluicegate-spark audit`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from sluicegate.pipeline.commands.arguments import (
    AllTopics,
    AsJson,
    Bootstrap,
    ConfigFile,
    Format,
    Master,
    Out,
    SparkLog,
    TablesAt,
    TopicPatterns,
    table_location_option,
)
from sluicegate.pipeline.commands.running import (
    SparkAt,
    exit_with_reason,
    now_in_ms,
    print_table,
    selected_topics,
    session_for,
    show_json,
)
from sluicegate.pipeline.runs.moments import APPEND, BadMoment, moment_from


def audit(
    bootstrap: Bootstrap,
    out: Out,
    policies: Annotated[Path, typer.Option(metavar="FILE", help="Configuration file of the proxy.")],
    topic: TopicPatterns = None,
    all_topics: AllTopics = False,
    as_of: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="Time as of which records are validated: append (estimated), now, or a time such as "
            "2026-11-30T12:00:00Z.",
        ),
    ] = APPEND,
    events: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Files with the proxy's violation events, from which the job takes the names of clients.",
        ),
    ] = None,
    samples: Annotated[
        str,
        typer.Option(
            metavar="COUNT|all",
            help="Number of bad records to list for each kind and partition. A replay requires `all`.",
        ),
    ] = "5",
    as_json: AsJson = False,
    tables: TablesAt = None,
    form: Format = None,
    config: ConfigFile = None,
    master: Master = None,
    spark_log: SparkLog = None,
) -> None:
    """Show which stored records the proxy would have rejected, fixed, quarantined or reported."""
    from sluicegate.config.loading import ConfigError, load_file
    from sluicegate.pipeline.jobs.audit import report
    from sluicegate.pipeline.jobs.audit.job import run_audit
    from sluicegate.pipeline.jobs.audit.policies import policies_of
    from sluicegate.pipeline.jobs.parameters import samples_from
    from sluicegate.pipeline.runs.argument_checks import UnfitValue
    from sluicegate.pipeline.runs.tables import tables_in
    from sluicegate.validation.rules.rule import RuleUnusable

    now_ms = now_in_ms()
    kept = table_location_option(tables, form)
    try:
        as_of_ms = None if as_of == APPEND else moment_from(as_of, now_ms)
        loaded = load_file(policies, os.environ)
        configuration, contracts = loaded.config, loaded.source.contracts
        try:
            kept_samples = samples_from(samples)
        except UnfitValue as error:
            exit_with_reason(f"--samples {samples}: expected {error}")
        policies_of(configuration, {}).rulebook()  # if a rule cannot be built, this fails before Spark starts
    except (BadMoment, ConfigError, RuleUnusable) as error:
        exit_with_reason(str(error))
    topics = selected_topics(bootstrap, topic, all_topics, config)
    with session_for("audit", topics, out, SparkAt(master, spark_log), kept) as (spark, results):
        keeper = tables_in(spark, kept) if kept is not None else None
        found = run_audit(
            spark, topics, results, configuration, contracts, now_ms, as_of_ms, kept_samples, events, keeper
        )
        summary = found.summary
        for line in found.warnings:
            typer.echo(f"warning: {line}", err=True)
        if as_json:
            show_json(summary)
            return
        typer.echo(report.conclusion(summary))
        print_table(report.console_table(summary), out)

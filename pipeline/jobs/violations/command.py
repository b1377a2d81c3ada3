"""The command `sluicegate-spark violations`."""

from typing import Annotated, cast

import typer

from sluicegate.pipeline.commands.arguments import (
    AsJson,
    ConfigFile,
    Format,
    Master,
    Out,
    SparkLog,
    TablesAt,
    table_location_option,
)
from sluicegate.pipeline.commands.running import (
    SparkAt,
    exit_with_reason,
    now_in_ms,
    print_table,
    session_for,
    show_json,
    topics_of,
)
from sluicegate.pipeline.source.topics import Topics

_FILES_A_BATCH, _OFFSETS_A_BATCH = 100, 200_000
_RESUME = "complete batches stay. Run the same command again to continue after them"


def violations(
    out: Out,
    events: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Folder or glob of complete event files. Alternative: --bootstrap and --topic."
        ),
    ] = None,
    bootstrap: Annotated[
        str | None, typer.Option(metavar="HOST:PORT[,…]", help="Addresses of brokers to bootstrap from.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Name of the topic that contains the events.")
    ] = None,
    window: Annotated[str, typer.Option(help="Length of a time window.")] = "5 minutes",
    late_after_seconds: Annotated[
        int,
        typer.Option(help="An event counts as late if it is more than this (s) older than the latest event.", min=0),
    ] = 600,
    batch: Annotated[
        int | None, typer.Option(help="Maximum number of files, or of a topic's offsets, in a batch.", min=1)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Continue with new events until stopped.")] = False,
    every_seconds: Annotated[int, typer.Option(help="With --follow: interval between batches (s).", min=1)] = 30,
    as_json: AsJson = False,
    tables: TablesAt = None,
    form: Format = None,
    config: ConfigFile = None,
    master: Master = None,
    spark_log: SparkLog = None,
) -> None:
    """Aggregate the proxy's violation events in windows, by client, topic and reason; resumes after the last run."""
    from sluicegate.pipeline.jobs.violations import job, report
    from sluicegate.pipeline.jobs.violations.batches import ViolationTotals
    from sluicegate.pipeline.jobs.violations.events import (
        ReadFiles,
        events_from_files,
        events_from_topic,
    )
    from sluicegate.pipeline.jobs.violations.report import conclusion
    from sluicegate.pipeline.runs.tables import tables_in

    if (events is None) == (bootstrap is None or not topic):
        exit_with_reason("no events: use --events PATH, or --bootstrap and --topic")
    kept = table_location_option(tables, form)
    topics = topics_of(bootstrap, topic, config) if bootstrap is not None and topic else None
    with session_for("violations", topics, out, SparkAt(master, spark_log), kept, _RESUME) as (spark, results):
        keeper = tables_in(spark, kept) if kept is not None else None
        stream = (
            events_from_files(spark, events, batch or _FILES_A_BATCH)
            if events is not None
            else events_from_topic(spark, cast(Topics, topics), batch or _OFFSETS_A_BATCH)
        )

        read_files = None if events is None else ReadFiles(spark, events, results)

        def report_totals(totals: ViolationTotals) -> None:
            grown = [] if read_files is None else read_files.grown()
            for file in grown:
                typer.echo(
                    f"warning: {file} has grown since it was read, and the new lines are not counted: move only "
                    f"complete files here, or send events to a topic",
                    err=True,
                )
            summary = job.summary_of(totals) | {"grown_files": grown}
            report.write_report(results, summary, now_in_ms())
            results.write_summary(summary)

        job.run(
            stream,
            results,
            window,
            late_after_seconds,
            follow=follow,
            every_seconds=every_seconds,
            after_batch=report_totals,
            tables=keeper,
        )
        report_totals(ViolationTotals.of_batches_before(results, None))
        summary = results.read_summary()
        if as_json:
            show_json(summary)
            return
        typer.echo(conclusion(summary))
        print_table(report.console_table(summary), out)

"""The command `sluicegate-spark extract`."""

from dataclasses import replace
from typing import Annotated

import typer

from sluicegate.pipeline.commands.arguments import (
    AllTopics,
    AsJson,
    Bootstrap,
    ConfigFile,
    Master,
    Out,
    SkipUnreadable,
    SparkLog,
    TopicPatterns,
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
from sluicegate.pipeline.jobs.extract.extractors import TooLate

_OFFSETS_A_BATCH = 4_000_000
_RESUME = "complete batches stay. Run the same command again to continue after them"


def extract(
    bootstrap: Bootstrap,
    out: Out,
    topic: TopicPatterns = None,
    all_topics: AllTopics = False,
    extractor: Annotated[
        str,
        typer.Option(
            help="Handling of a record without a valid timestamp: fail, skip, previous or wallclock (KIP-93)."
        ),
    ] = "fail",
    too_late: Annotated[
        TooLate,
        typer.Option(
            help="Handling of a time after Spark's latest one: fail, skip the record, or keep the record "
            "without an event time."
        ),
    ] = TooLate.FAIL,
    batch: Annotated[int, typer.Option(help="Maximum number of offsets in a batch.", min=1)] = _OFFSETS_A_BATCH,
    skip_unreadable: SkipUnreadable = False,
    skip_missing: Annotated[
        bool,
        typer.Option(
            "--skip-missing", help="Continue if records since the last run are missing, and list the missing offsets."
        ),
    ] = False,
    as_json: AsJson = False,
    config: ConfigFile = None,
    master: Master = None,
    spark_log: SparkLog = None,
) -> None:
    """Write records with their event time; resumes after the last run."""
    from sluicegate.pipeline.jobs.extract import job, report
    from sluicegate.pipeline.jobs.extract.built_in import NAMES, BuiltInExtractor
    from sluicegate.pipeline.jobs.extract.report import conclusion

    if extractor not in NAMES:
        exit_with_reason(f"unknown extractor {extractor!r}; expected one of {', '.join(NAMES)}")
    topics = selected_topics(bootstrap, topic, all_topics, config)
    with session_for("extract", topics, out, SparkAt(master, spark_log), resume=_RESUME) as (spark, results):
        asked = replace(topics, skip_unreadable=skip_unreadable, skip_missing=skip_missing)
        job.run(spark, asked, results, BuiltInExtractor(extractor, too_late), batch)
        summary = job.summary_of(topics, results)
        report.write_report(results, summary, extractor, now_in_ms())
        results.write_summary(summary)
        if as_json:
            show_json(summary)
            return
        for sentence in summary["missing"]:
            typer.echo(f"warning: {sentence}", err=True)
        typer.echo(conclusion(summary, extractor))
        print_table(report.console_table(summary), out)

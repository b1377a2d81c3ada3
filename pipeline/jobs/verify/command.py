"""The command `sluicegate-spark verify`."""

from typing import Annotated

import typer

from sluicegate.pipeline.commands.arguments import AsJson, Bootstrap, ConfigFile, Master, Out, SkipUnreadable, SparkLog
from sluicegate.pipeline.commands.running import (
    SparkAt,
    exit_with_reason,
    now_in_ms,
    print_table,
    session_for,
    show_json,
    topics_of,
)
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics


def verify(
    bootstrap: Bootstrap,
    topic: Annotated[
        list[str],
        typer.Option(
            "--topic",
            metavar="NAME",
            help="Name of a topic. Use the option twice: first for the source topic, then for the clean topic.",
        ),
    ],
    out: Out,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Results folder of the repair. The topics are compared up to the end of the repair's "
            "plan, by its rules.",
        ),
    ] = None,
    skip_unreadable: SkipUnreadable = False,
    as_json: AsJson = False,
    config: ConfigFile = None,
    master: Master = None,
    spark_log: SparkLog = None,
) -> None:
    """Compare two topics, ignoring declared repairs; exit status 1 if they differ."""
    from sluicegate.pipeline.jobs.verify import job, report
    from sluicegate.pipeline.jobs.verify.job import run_verify
    from sluicegate.pipeline.jobs.verify.report import conclusion

    if len(topic) != 2 or topic[0] == topic[1]:
        exit_with_reason("verify compares two topics: use --topic twice")
    topics = topics_of(bootstrap, topic, config)
    with session_for("verify", topics, out, SparkAt(master, spark_log)) as (spark, results):
        source = Topics(bootstrap, (topic[0],), topics.settings, skip_unreadable=skip_unreadable)
        made_by = job.plan_in(Results(spark, plan), *topic) if plan is not None else None
        found = run_verify(spark, source, topic[1], results, now_in_ms(), made_by)
        if as_json:
            show_json(found.summary)
        else:
            typer.echo(conclusion(found.summary))
            print_table(report.console_table(found.summary), out)
    if not found.is_same:
        raise typer.Exit(1)

"""The command `sluicegate-spark replay`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sluicegate.pipeline.commands.arguments import (
    AsJson,
    Bootstrap,
    ConfigFile,
    Master,
    Out,
    SkipUnreadable,
    SparkLog,
    Topic,
)
from sluicegate.pipeline.commands.running import (
    START_AGAIN,
    SparkAt,
    exit_with_reason,
    now_in_ms,
    print_table,
    session_for,
    show_json,
    topics_of,
)
from sluicegate.pipeline.jobs.replay.request import FixTimes
from sluicegate.pipeline.jobs.replay.writing import Headers

_RESUME = (
    "committed records stay, and readers with isolation.level=read_committed see only them. Run the same command again "
    "to continue from there"
)


def replay(
    bootstrap: Bootstrap,
    topic: Topic,
    out: Out,
    policies: Annotated[Path, typer.Option(metavar="FILE", help="Configuration file of the proxy.")],
    apply: Annotated[bool, typer.Option("--apply", help="Write the records back. Default: a dry run.")] = False,
    fix: Annotated[
        FixTimes | None, typer.Option(help="Correction of bad timestamps. Overrides `fix` in the file.")
    ] = None,
    from_findings: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Results folder of an audit with --samples all. Replays the records that the audit lists.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION", help="Python function that corrects each dead letter before it is validated."
        ),
    ] = None,
    headers: Annotated[
        Headers, typer.Option(help="Headers to write: only the record's own, or also those that the proxy added.")
    ] = Headers.OWN,
    skip_unreadable: SkipUnreadable = False,
    as_json: AsJson = False,
    config: ConfigFile = None,
    master: Master = None,
    spark_log: SparkLog = None,
) -> None:
    """Correct dead letters or records listed by an audit, validate them again, and write the good ones to
    their topics.
    """
    from sluicegate.config.loading import ConfigError
    from sluicegate.pipeline.jobs.replay import report
    from sluicegate.pipeline.jobs.replay.decisions import NoFunction
    from sluicegate.pipeline.jobs.replay.job import propose_replay, write_replay
    from sluicegate.pipeline.jobs.replay.report import conclusion
    from sluicegate.pipeline.jobs.replay.request import replay_request
    from sluicegate.validation.rules.rule import RuleUnusable

    try:
        request = replay_request(policies, fix, by, headers, now_in_ms(), from_findings)
    except (ConfigError, RuleUnusable, NoFunction) as error:
        exit_with_reason(str(error))
    topics = replace(topics_of(bootstrap, topic, config), skip_unreadable=skip_unreadable)
    with session_for("replay", topics, out, SparkAt(master, spark_log), resume=_RESUME if apply else START_AGAIN) as (
        spark,
        results,
    ):
        found = (write_replay if apply else propose_replay)(spark, topics, results, request)
        summary = found.summary
        for warning in found.warnings:
            typer.echo(f"warning: {warning}", err=True)
        if as_json:
            show_json(summary)
            return
        typer.echo("\n".join([*report.first_lines(summary), conclusion(summary).to_do]))
        print_table(report.console_table(summary), out)

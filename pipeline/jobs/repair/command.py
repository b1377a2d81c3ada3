"""The command `sluicegate-spark repair`."""

from dataclasses import replace
from typing import Annotated

import typer

from sluicegate.pipeline.commands.arguments import (
    AFTER_MAX_MS,
    EPOCH,
    AfterMax,
    AsJson,
    Bootstrap,
    ConfigFile,
    Epoch,
    Master,
    Out,
    SkipUnreadable,
    SparkLog,
    Topic,
    epoch_ms_of,
)
from sluicegate.pipeline.commands.policy_file import PolicyFile, configuration_in, owners_of
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
from sluicegate.pipeline.jobs.repair.settings import CLEAN, Retention
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic

_RESUME = (
    "committed records stay in the clean topic, and readers with isolation.level=read_committed see only them. Run the "
    "same command again to continue from there"
)


def repair(
    bootstrap: Bootstrap,
    topic: Topic,
    out: Out,
    to: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the clean topic; {topic} stands for the source topic.")
    ] = CLEAN,
    apply: Annotated[bool, typer.Option("--apply", help="Write the clean topic. Default: a dry run.")] = False,
    after_max_ms: AfterMax = AFTER_MAX_MS,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="Kind of timestamp to leave uncorrected. May be repeated.")
    ] = None,
    rewrite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Kind of timestamp to correct as well, although it may be valid: future or implausible.",
        ),
    ] = None,
    epoch: Epoch = EPOCH,
    retention: Annotated[
        Retention, typer.Option(help="Retention of the clean topic: no deletion, or that of the source topic.")
    ] = Retention.KEEP,
    assume_ms: Annotated[
        int | None,
        typer.Option(
            metavar="MS", help="Append time (ms) to assume for partitions without any usable timestamp.", min=1
        ),
    ] = None,
    skip_unreadable: SkipUnreadable = False,
    skip_unwritable: Annotated[
        bool,
        typer.Option(
            "--skip-unwritable", help="Leave out records with a header name that is not UTF-8 or has a zero byte."
        ),
    ] = False,
    as_json: AsJson = False,
    policies: PolicyFile = None,
    config: ConfigFile = None,
    master: Master = None,
    spark_log: SparkLog = None,
) -> None:
    """Propose corrections of invalid timestamps, and write the corrected records to a clean topic, exactly once."""
    from sluicegate.pipeline.jobs.repair import job, report
    from sluicegate.pipeline.jobs.repair.correction import Rules
    from sluicegate.pipeline.jobs.repair.job import (
        UnknownTimestampKind,
        check_timestamp_kinds,
        propose_repair,
        write_repair,
    )
    from sluicegate.pipeline.jobs.repair.report import conclusion, first_lines

    try:
        check_timestamp_kinds(keep or (), rewrite or ())
    except UnknownTimestampKind as error:
        exit_with_reason(str(error))
    now_ms = now_in_ms()
    epoch_ms = epoch_ms_of(epoch, now_ms)
    configuration = configuration_in(policies)
    topics = topics_of(bootstrap, topic, config)
    topics = replace(topics, owners=owners_of(configuration, topics.names))
    try:
        targets = job.targets_of(topics, to)
    except CannotWriteTopic as error:
        exit_with_reason(str(error))
    with session_for("repair", topics, out, SparkAt(master, spark_log), resume=_RESUME if apply else START_AGAIN) as (
        spark,
        results,
    ):
        by_kind = (frozenset(keep or ()), assume_ms, frozenset(rewrite or ()))
        rules = Rules(now_ms, after_max_ms, *by_kind, epoch_ms, retention, skip_unreadable, skip_unwritable)
        found = (write_repair if apply else propose_repair)(spark, topics, results, targets, rules)
        if as_json:
            show_json(found.summary)
        else:
            typer.echo("\n".join([*first_lines(found.summary), conclusion(found.summary).to_do]))
            print_table(report.console_table(found.summary["changes"], found.summary["applied"]), out)
        if found.obstacles:
            raise typer.Exit(1)

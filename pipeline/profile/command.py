"""The command `sluicegate-spark profile`."""

from typing import Annotated

import typer

from sluicegate.pipeline.arguments import (
    AFTER_MAX_MS,
    EPOCH,
    AfterMax,
    Bootstrap,
    ConfigFile,
    Epoch,
    Master,
    Out,
    Topic,
)
from sluicegate.pipeline.running import epoch_ms_of, now_in_ms, session_for, show, topics_of


def profile(
    bootstrap: Bootstrap,
    topic: Topic,
    out: Out,
    after_max_ms: AfterMax = AFTER_MAX_MS,
    before_max_ms: Annotated[
        int | None, typer.Option(help="Further behind append than this is past; without it nothing is.", min=0)
    ] = None,
    epoch: Epoch = EPOCH,
    config: ConfigFile = None,
    master: Master = None,
) -> None:
    """Count what topics hold, and what is wrong with their timestamps, by topic, partition, hour and producer."""
    from sluicegate.pipeline.profile import report  # noqa: PLC0415
    from sluicegate.pipeline.profile.outcome import profiled  # noqa: PLC0415

    now_ms = now_in_ms()
    epoch_ms = epoch_ms_of(epoch, now_ms)
    topics = topics_of(bootstrap, topic, config)
    with session_for("profile", topics, out, master) as (spark, results):
        found = profiled(spark, topics, results, now_ms, after_max_ms, before_max_ms, epoch_ms)
        for line in found.warnings:
            typer.echo(f"warning: {line}", err=True)
        show(report.console_table(found.summary), out)
        for line in report.odd_units(found.summary):
            typer.echo(line)

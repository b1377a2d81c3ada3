"""Command-line options that several jobs share, and their parsing."""

from pathlib import Path
from typing import Annotated

import typer

from sluicegate.pipeline.commands.running import exit_with_reason
from sluicegate.pipeline.runs.moments import DEFAULT_EPOCH, BadEpoch, epoch_ms_from
from sluicegate.pipeline.runs.tables import (
    BadTables,
    TableFormat,
    TableLocation,
    format_named,
    table_location,
    table_location_from,
)

Bootstrap = Annotated[
    str, typer.Option("--bootstrap", metavar="HOST:PORT[,…]", help="Addresses of brokers to bootstrap from.")
]
Topic = Annotated[list[str], typer.Option("--topic", metavar="NAME", help="Name of a topic. May be repeated.")]
TopicPatterns = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="NAME|PATTERN",
        help="Name of a topic, a glob such as orders-*, or a pattern /RE2/. May be repeated.",
    ),
]
AllTopics = Annotated[bool, typer.Option("--all-topics", help="Select all topics of the cluster except internal ones.")]
Out = Annotated[
    str, typer.Option("--out", metavar="DIR", help="Folder for results. On a cluster, a path that all nodes can reach.")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="File of client settings (TLS, SASL), with one line name=value for each setting.",
    ),
]
Master = Annotated[
    str | None, typer.Option("--master", help="Address of Spark's master. Default: all cores of this machine.")
]
SparkLog = Annotated[
    Path | None,
    typer.Option(
        "--spark-log",
        metavar="FILE",
        help="File to which Spark's own log lines are appended. Default: the lines are dropped.",
    ),
]
Epoch = Annotated[
    str,
    typer.Option(
        "--epoch",
        metavar="WHEN",
        help="Limit for timestamps, as an age (10y, 3650d) or a date (2016, 2016-11-30). Earlier "
        "timestamps count as implausible.",
    ),
]
AfterMax = Annotated[
    int,
    typer.Option(
        "--after-max-ms",
        help="A timestamp counts as future if it is more than this (ms) after its append.",
        min=0,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
SkipUnreadable = Annotated[
    bool,
    typer.Option("--skip-unreadable", help="Skip batches that cannot be read, such as those with a wrong CRC."),
]
AFTER_MAX_MS, EPOCH = 3_600_000, DEFAULT_EPOCH


def epoch_ms_of(text: str, now_ms: int) -> int | None:
    """Return --epoch in ms since 1970; None for the default. An invalid value ends the command."""
    try:
        return epoch_ms_from(text, now_ms)
    except BadEpoch as error:
        exit_with_reason(str(error))


TablesAt = Annotated[
    str | None,
    typer.Option(
        "--tables",
        metavar="DIR",
        help="Location of the tables that are kept between runs: a folder, or catalog:NAME.NAMESPACE for Iceberg.",
    ),
]
Format = Annotated[
    str | None, typer.Option("--format", metavar="FORMAT", help="Table format: parquet (default), delta or iceberg.")
]


def table_location_option(tables: str | None, form: str | None) -> TableLocation | None:
    """Return where tables are kept; None if they are not. An invalid option ends the command."""
    try:
        return table_location_from(tables, form)
    except BadTables as error:
        exit_with_reason(str(error))


def table_location_or_folder(out: str, tables: str | None, form: str | None) -> TableLocation:
    """Return where tables are kept, for a job that always keeps them. The default is `out`."""
    try:
        return table_location(tables or out, format_named(form or TableFormat.PARQUET))
    except BadTables as error:
        exit_with_reason(str(error))

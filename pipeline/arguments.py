"""What the jobs' commands have in common on their command lines."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from sluicegate.pipeline.running import end
from sluicegate.pipeline.tables.formats import BadTables, Kept, TableFormat, format_named, kept_at, kept_in

Bootstrap = Annotated[str, typer.Option("--bootstrap", metavar="HOST:PORT[,…]", help="Brokers to start from.")]
Topic = Annotated[list[str], typer.Option("--topic", metavar="NAME", help="A topic; may be repeated.")]
TopicPatterns = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", metavar="NAME|PATTERN", help="A topic, a glob such as orders-*, or /RE2/; may be repeated."
    ),
]
AllTopics = Annotated[bool, typer.Option("--all-topics", help="All topics of the cluster but its internal ones.")]
Out = Annotated[str, typer.Option("--out", metavar="DIR", help="Where results go; on a cluster, a path all can reach.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Client settings (TLS, SASL): name=value lines.")
]
Master = Annotated[str | None, typer.Option("--master", help="Spark's master; without it, this machine's cores.")]
SparkLog = Annotated[
    Path | None,
    typer.Option("--spark-log", metavar="FILE", help="Add Spark's own log lines to this file; without it, drop them."),
]
Epoch = Annotated[
    str, typer.Option("--epoch", metavar="WHEN", help="Times before are implausible: 10y, 3650d, 2016 or 2016-11-30.")
]
AfterMax = Annotated[int, typer.Option("--after-max-ms", help="Further ahead of append than this is future.", min=0)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON instead, for scripts.")]
SkipUnreadable = Annotated[
    bool,
    typer.Option("--skip-unreadable", help="Pass over batches that cannot be read, such as those with a wrong CRC."),
]
AFTER_MAX_MS, EPOCH = 3_600_000, "10y"


_DAY_MS = 86_400_000
_DAYS = {"y": 365, "d": 1}
_BACK = re.compile(r"(\d{1,5})([yd])")
_DATES = ("%Y", "%Y-%m", "%Y-%m-%d")
_LEAST_MS = 31 * _DAY_MS
_DEFAULT = "10y"


class BadEpoch(ValueError):
    """What was given is no such time; the text says what is."""


def epoch_ms_from(text: str, now_ms: int) -> int | None:
    """In ms since 1970; None for the default, ten years before whatever moment is now. Raises BadEpoch."""
    if text == _DEFAULT:
        return None
    found = _moment(text, now_ms)
    if found is None or not _LEAST_MS <= found < now_ms:
        raise BadEpoch(
            f"--epoch: expected how far back (10y, 3650d) or a date (2016, 2016-11-30) between February 1970 and now, "
            f"found {text!r}"
        )
    return found


def _moment(text: str, now_ms: int) -> int | None:
    back = _BACK.fullmatch(text)
    if back is not None:
        return now_ms - int(back[1]) * _DAYS[back[2]] * _DAY_MS
    for form in _DATES:
        try:
            return int(datetime.strptime(text, form).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
    return None


def epoch_ms_of(text: str, now_ms: int) -> int | None:
    """What --epoch says; what it cannot mean ends the command."""
    try:
        return epoch_ms_from(text, now_ms)
    except BadEpoch as error:
        end(str(error))


TablesAt = Annotated[
    str | None,
    typer.Option(
        "--tables",
        metavar="DIR",
        help="Keep tables here from run to run: a folder, or for Iceberg catalog:NAME.NAMESPACE.",
    ),
]
Format = Annotated[
    str | None, typer.Option("--format", metavar="FORMAT", help="Of these tables: parquet (default), delta or iceberg.")
]


def kept_of(tables: str | None, form: str | None) -> Kept | None:
    """What a command line says; what cannot be ends the command."""
    try:
        return kept_in(tables, form)
    except BadTables as error:
        end(str(error))


def kept_in_or(out: str, tables: str | None, form: str | None) -> Kept:
    """The same of a job that always keeps tables: in `out`, where nothing else is said."""
    try:
        return kept_at(tables or out, format_named(form or TableFormat.PARQUET))
    except BadTables as error:
        end(str(error))

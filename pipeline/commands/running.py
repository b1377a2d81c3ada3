"""Runs commands with a Spark session and a folder of results, and reports errors as one line."""

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import typer
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console

from sluicegate.pipeline.commands.spark import session
from sluicegate.pipeline.kafka.settings import read_settings
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.runs.folder_lock import lock_folder
from sluicegate.pipeline.runs.interruption import Interrupted, kept_handlers
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.runs.tables import TableLocation
from sluicegate.pipeline.source.progress_line import progress_shown
from sluicegate.pipeline.source.topics import ALL, Topics, left_out_warnings, only_names

_WIDE = 240
START_AGAIN = (
    "no topic was written, and results are complete only in folders with a summary.json. Run the same command again"
)
"""Message after an interruption of a job that writes only to its folder."""


_PIPELINE = "sluicegate.pipeline."
"""Prefix of our own exceptions in Spark's report of a failed task."""
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
"""Matches a message that one of our own SQL expressions raised."""


@dataclass(frozen=True, slots=True)
class SparkAt:
    """Spark's master and the file for its log lines, as given on the command line. Both may be None."""

    master: str | None
    log: Path | None


@contextmanager
def session_for(
    job: str,
    topics: Topics | None,
    out: str,
    at: SparkAt,
    kept: TableLocation | None = None,
    resume: str = START_AGAIN,
) -> Iterator[tuple[SparkSession, Results]]:
    """Open a Spark session and a locked folder of results for a job.

    `kept` is where the job keeps tables; None if it keeps none. An error becomes one line and exit status 1. A signal
    becomes one line that ends with `resume`, and exit status 128 plus its number. An existing session is used and stays
    open.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # py4j also raises the errors that it logs
    try:
        was_there = SparkSession.getActiveSession() is not None
        if topics is not None:
            topics.partitions()
            for warning in (*left_out_warnings(topics.left_out), *topics.open_transactions()):
                typer.echo(f"warning: {warning}", err=True)
        with kept_handlers():
            spark = session(job, at.master, {} if kept is None else kept.settings(), at.log)
        try:
            results = Results(spark, out)
            results.make()
            with lock_folder(results, job), progress_shown(spark, job):
                yield spark, results
        finally:
            if not was_there:
                _stop(spark)
    except BaseException as error:
        interrupted = Interrupted.pending()
        if interrupted is not None:
            interrupted.is_reported = True
            exit_with_reason(f"interrupted ({interrupted}): {resume}", interrupted.status)
        message = _message_of(error, out)
        if message is None:
            raise
        exit_with_reason(message)


def _message_of(error: BaseException, out: str) -> str | None:
    """Return the message for users; None for an error that is a bug."""
    if isinstance(error, PipelineError):
        return str(error)
    if isinstance(error, PySparkException):
        return message_of_failed_task(str(error))
    if isinstance(error, Py4JJavaError):
        return f"{out}: {error.java_exception.getMessage()}"
    if isinstance(error, Py4JError):
        return f"Spark's Java process does not respond: {error}"
    return None


def _stop(spark: SparkSession) -> None:
    with suppress(Py4JError, OSError):  # a signal to the process group also ends Java
        spark.stop()


def exit_with_reason(reason: str, status: int = 1) -> NoReturn:
    """Print the reason on one line and exit with that status."""
    typer.echo(f"sluicegate-spark: {reason}", err=True)
    raise typer.Exit(status) from None


def message_of_failed_task(text: str) -> str:
    """Return the project's own message from Spark's report of a failed task, or the whole report if there is none."""
    raised = _RAISED.search(text)
    if raised is not None:
        return raised[1]
    ours = [line for line in text.splitlines() if line.startswith(_PIPELINE) and ": " in line]
    return ours[-1].split(": ", 1)[1] if ours else text


def topics_of(bootstrap: str, names: list[str], config: Path | None) -> Topics:
    """Return the topics named on the command line; invalid names or settings end the command."""
    try:
        topics = Topics(bootstrap, only_names(names).names, read_settings(config) if config else {})
        topics.client  # noqa: B018  # checks the settings before Spark starts
    except PipelineError as error:
        exit_with_reason(str(error))
    return topics


def selected_topics(bootstrap: str, patterns: list[str] | None, all_topics: bool, config: Path | None) -> Topics:
    """Return the topics that names and patterns select.

    `all_topics` adds the pattern `*`. If no topic matches, the command ends.
    """
    wanted = (*(patterns or ()), *((ALL,) if all_topics else ()))
    try:
        return Topics(bootstrap, wanted, read_settings(config) if config else {}).selected()
    except PipelineError as error:
        exit_with_reason(str(error))


def now_in_ms() -> int:
    """Return the current time in ms since 1970."""
    return time.time_ns() // 1_000_000


def show_json(summary: Mapping[str, Any]) -> None:
    """Print the summary as JSON."""
    typer.echo(json.dumps(summary, indent=2))


def print_table(table: Any, out: str) -> None:
    """Print a job's table, and the folder of the results."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDE)  # piped output should not break words
    console.print(table)
    typer.echo(f"Results are in {out}: summary.json, report.html", err=True)

"""How every command runs its job: a Spark session, a folder for results, and one line where something goes wrong."""

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

from sluicegate.pipeline.errors import PipelineError
from sluicegate.pipeline.folder_lock import held
from sluicegate.pipeline.interruption import Interrupted, kept_handlers
from sluicegate.pipeline.kafka.settings import read_settings
from sluicegate.pipeline.progress_line import shown
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.selection import ALL, in_a_sentence, only_names
from sluicegate.pipeline.spark import session
from sluicegate.pipeline.tables.formats import Kept
from sluicegate.pipeline.topics import Topics

_WIDE = 240
START_AGAIN = "no topic was written, and results are whole only where summary.json is. Give the same command again"
"""What remains after an interruption of a job that writes to its folder only, and how to continue."""


_ROOM = f"{__name__.rpartition('.')[0]}."
"""How the names of our own exceptions begin, in Spark's account of a task that failed."""
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
"""What one of our own expressions said."""


@dataclass(frozen=True, slots=True)
class SparkAt:
    """What a command line says of Spark: its master, and the file for its own log lines; both may be None."""

    master: str | None
    log: Path | None


@contextmanager
def session_for(
    job: str,
    topics: Topics | None,
    out: str,
    at: SparkAt,
    kept: Kept | None = None,
    resume: str = START_AGAIN,
) -> Iterator[tuple[SparkSession, Results]]:
    """A session, in which tables can be `kept`, and the folder for results, which no other run uses meanwhile.

    What fails becomes one line and exit status 1; a signal, one line that ends with `resume` and 128 plus its number. A
    session that is there already is used, and stays.
    """
    was_there = SparkSession.getActiveSession() is not None
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # what it reports is raised too
    try:
        if topics is not None:
            topics.partitions()
            for told in (*in_a_sentence(topics.left_out), *topics.held_back()):
                typer.echo(f"warning: {told}", err=True)
        with kept_handlers():
            spark = session(job, at.master, {} if kept is None else kept.settings(), at.log)
        try:
            results = Results(spark, out)
            results.make()
            with held(results, job), shown(spark, job):
                yield spark, results
        finally:
            if not was_there:
                _stop(spark)
    except PipelineError as error:
        end(str(error))
    except PySparkException as error:
        end(reason(str(error)))
    except Py4JJavaError as error:
        end(f"{out}: {error.java_exception.getMessage()}")
    except Interrupted as interrupted:
        interrupted.is_reported = True
        end(f"interrupted ({interrupted}): {resume}", interrupted.status)


def _stop(spark: SparkSession) -> None:
    with suppress(Py4JError, OSError):  # a signal to the whole group of processes has ended Java as well
        spark.stop()


def end(reason: str, status: int = 1) -> NoReturn:
    """Print why on one line, and end with that exit status."""
    typer.echo(f"sluicegate-spark: {reason}", err=True)
    raise typer.Exit(status) from None


def reason(text: str) -> str:
    """What our own code said on an executor, out of Spark's account of it; all of that where it did not."""
    raised = _RAISED.search(text)
    if raised is not None:
        return raised[1]
    ours = [line for line in text.splitlines() if line.startswith(_ROOM) and ": " in line]
    return ours[-1].split(": ", 1)[1] if ours else text


def topics_of(bootstrap: str, names: list[str], config: Path | None) -> Topics:
    """Those that a command line names; a setting that cannot be ends the command."""
    try:
        topics = Topics(bootstrap, only_names(names).names, read_settings(config) if config else {})
        topics.client  # noqa: B018  # checked before anything starts
    except PipelineError as error:
        end(str(error))
    return topics


def selected_topics(bootstrap: str, asked: list[str] | None, all_topics: bool, config: Path | None) -> Topics:
    """The same for jobs that take patterns; `all_topics` is what the pattern for all is. What matches nothing ends the
    command.
    """
    wanted = (*(asked or ()), *((ALL,) if all_topics else ()))
    try:
        return Topics(bootstrap, wanted, read_settings(config) if config else {}).selected()
    except PipelineError as error:
        end(str(error))


def now_in_ms() -> int:
    """The moment of reading, since 1970."""
    return time.time_ns() // 1_000_000


def show_json(summary: Mapping[str, Any]) -> None:
    """What `summary.json` holds, and nothing else, for scripts."""
    typer.echo(json.dumps(summary, indent=2))


def show(table: Any, out: str) -> None:
    """A job's table, and where the rest is."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDE)  # nobody sees where lines break, and what reads them wants whole words
    console.print(table)
    typer.echo(f"Results are in {out}: summary.json, report.html", err=True)

"""The command `sluicegate-spark`: one job a subcommand, all with the same way to say which topics and where to."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import typer
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console

from sluicegate.pipeline.advise.job import YAML, NoProfile, advice_of, make_profile, profiled, summary_of
from sluicegate.pipeline.extract.job import OtherExtraction
from sluicegate.pipeline.kafka.cluster import TopicTrouble
from sluicegate.pipeline.kafka.connection import BrokerUnreachable, LoginRefused
from sluicegate.pipeline.kafka.settings import BadSetting, read_settings
from sluicegate.pipeline.profile.epoch import BadEpoch, epoch_ms_from
from sluicegate.pipeline.repair.job import RepairBegun
from sluicegate.pipeline.repair.settings import Retention
from sluicegate.pipeline.repair.writing import CannotWrite
from sluicegate.pipeline.results import BadFolder, Results
from sluicegate.pipeline.source.options import BadOption
from sluicegate.pipeline.spark import NoSession, session
from sluicegate.pipeline.topics import Topics
from sluicegate.pipeline.verify.job import NotThePlan

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Profile, audit and repair Kafka topics with Spark, by sluicegate's rules.",
)

_Bootstrap = Annotated[str, typer.Option("--bootstrap", metavar="HOST:PORT[,…]", help="Brokers to start from.")]
_Topic = Annotated[list[str], typer.Option("--topic", metavar="NAME", help="A topic; may be repeated.")]
_Out = Annotated[
    str, typer.Option("--out", metavar="DIR", help="Where results go; on a cluster, a path all can reach.")
]
_ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Client settings (TLS, SASL): name=value lines.")
]
_Master = Annotated[str | None, typer.Option("--master", help="Spark's master; without it, this machine's cores.")]
_Epoch = Annotated[
    str, typer.Option("--epoch", metavar="WHEN", help="Times before are implausible: 10y, 3650d, 2016 or 2016-11-30.")
]
_AFTER_MAX, _EPOCH = 3_600_000, "10y"
_WIDE = 240
_FILES_A_BATCH, _OFFSETS_A_BATCH = 100, 200_000
_EXTRACTED_A_BATCH = 4_000_000

_OURS = (
    *(BadOption, BadSetting, TopicTrouble, BrokerUnreachable, LoginRefused, NoProfile, RepairBegun, CannotWrite),
    *(NotThePlan, OtherExtraction, BadFolder, NoSession),
)


_ROOM = f"{__name__.rpartition('.')[0]}."
"""How the names of our own exceptions begin, in Spark's account of a task that failed."""
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
"""What one of our own expressions said."""


@contextmanager
def _job(name: str, topics: Topics | None, out: str, master: str | None) -> Iterator[tuple[SparkSession, Results]]:
    """A session and the folder for results; what goes wrong becomes one line and exit status 1."""
    try:
        if topics is not None:
            topics.partitions()
            for held in topics.held_back():
                typer.echo(f"warning: {held}", err=True)
        spark = session(name, master)
        try:
            results = Results(spark, out)
            results.make()
            yield spark, results
        finally:
            spark.stop()
    except _OURS as error:
        _end(str(error))
    except PySparkException as error:
        _end(_reason(str(error)))
    except Py4JJavaError as error:
        _end(f"{out}: {error.java_exception.getMessage()}")


def _end(reason: str) -> NoReturn:
    typer.echo(f"sluicegate-spark: {reason}", err=True)
    raise typer.Exit(1) from None


def _reason(text: str) -> str:
    """What our own code said on an executor, out of Spark's account of it; all of that where it did not."""
    raised = _RAISED.search(text)
    if raised is not None:
        return raised[1]
    ours = [line for line in text.splitlines() if line.startswith(_ROOM) and ": " in line]
    return ours[-1].split(": ", 1)[1] if ours else text


def _topics(bootstrap: str, names: list[str], config: Path | None) -> Topics:
    try:
        topics = Topics(bootstrap, tuple(dict.fromkeys(names)), read_settings(config) if config else {})
        topics.client  # noqa: B018  # checked before anything starts
    except _OURS as error:
        _end(str(error))
    return topics


def _epoch_ms(text: str, now_ms: int) -> int | None:
    try:
        return epoch_ms_from(text, now_ms)
    except BadEpoch as error:
        _end(str(error))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@app.command()
def profile(
    bootstrap: _Bootstrap,
    topic: _Topic,
    out: _Out,
    after_max_ms: Annotated[int, typer.Option(help="Further ahead of append than this is future.", min=0)] = _AFTER_MAX,
    before_max_ms: Annotated[
        int | None, typer.Option(help="Further behind append than this is past; without it nothing is.", min=0)
    ] = None,
    epoch: _Epoch = _EPOCH,
    config: _ConfigFile = None,
    master: _Master = None,
) -> None:
    """Count what topics hold, and what is wrong with their timestamps, by topic, partition, hour and producer."""
    from sluicegate.pipeline.profile import job, report  # noqa: PLC0415

    now_ms = _now_ms()
    epoch_ms = _epoch_ms(epoch, now_ms)
    topics = _topics(bootstrap, topic, config)
    with _job("profile", topics, out, master) as (spark, results):
        summary = job.profile(spark, topics, results, now_ms, after_max_ms, before_max_ms, epoch_ms)
        report.write_report(results, summary)
        results.write_summary(summary)
        for line in report.went_meanwhile(summary):
            typer.echo(f"warning: {line}", err=True)
        _show(report.console_table(summary), out)
        for line in report.odd_units(summary):
            typer.echo(line)


@app.command()
def advise(
    bootstrap: _Bootstrap,
    topic: _Topic,
    out: _Out,
    from_profile: Annotated[
        str | None, typer.Option("--profile", metavar="DIR", help="An earlier profile; without it one is made.")
    ] = None,
    at_most: Annotated[float, typer.Option(help="The share of sound records that may be refused.", min=0, max=1)] = 0,
    config: _ConfigFile = None,
    master: _Master = None,
) -> None:
    """Which before.max and after.max would refuse what, the tightest of them, and the configuration to paste."""
    from sluicegate.pipeline.advise import report  # noqa: PLC0415

    topics = _topics(bootstrap, topic, config)
    with _job("advise", topics, out, master) as (spark, results):
        results.forget_summary()
        now_ms = _now_ms()
        profile_results = (
            profiled(spark, topics, from_profile)
            if from_profile
            else make_profile(spark, topics, results, now_ms, _AFTER_MAX)
        )
        advice = advice_of(topics, profile_results, at_most)
        summary, yaml = summary_of(advice, topics, at_most)
        results.write_text(YAML, yaml)
        report.write_report(results, profile_results, advice, summary, now_ms)
        results.write_summary(summary)
        _show(report.console_table(advice), out)
        typer.echo(yaml)


@app.command()
def violations(
    out: _Out,
    events: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Whole files of events: a folder or a glob. Or --bootstrap and --topic."),
    ] = None,
    bootstrap: Annotated[str | None, typer.Option(metavar="HOST:PORT[,…]", help="Brokers to start from.")] = None,
    topic: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A topic that events are shipped to.")] = None,
    window: Annotated[str, typer.Option(help="How long windows are.")] = "5 minutes",
    late_after_seconds: Annotated[int, typer.Option(help="Events this far behind the latest are late.", min=0)] = 600,
    batch: Annotated[
        int | None, typer.Option(help="At most so many files, or offsets of a topic, at once.", min=1)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes, until stopped.")] = False,
    every_seconds: Annotated[int, typer.Option(help="With --follow: how often what came is taken.", min=1)] = 30,
    config: _ConfigFile = None,
    master: _Master = None,
) -> None:
    """Add up the proxy's violation events in windows, by client, topic and reason; go on where the last run ended."""
    from sluicegate.pipeline.violations import job, report  # noqa: PLC0415
    from sluicegate.pipeline.violations.batches import Totals  # noqa: PLC0415
    from sluicegate.pipeline.violations.events import from_files, from_topic  # noqa: PLC0415
    from sluicegate.pipeline.violations.files import ReadFiles  # noqa: PLC0415

    if (events is None) == (bootstrap is None or not topic):
        _end("say where events are: --events PATH, or --bootstrap and --topic")
    topics = _topics(bootstrap, topic, config) if bootstrap is not None and topic else None
    with _job("violations", topics, out, master) as (spark, results):
        stream = (
            from_files(spark, events, batch or _FILES_A_BATCH)
            if events is not None
            else from_topic(spark, cast(Topics, topics), batch or _OFFSETS_A_BATCH)
        )

        read_files = None if events is None else ReadFiles(spark, events, results)

        def tell(totals: Totals) -> None:
            grown = [] if read_files is None else read_files.grown()
            for file in grown:
                typer.echo(
                    f"warning: {file} has grown since it was read, and what was added is not counted: move files here "
                    "when they are whole, or ship events to a topic",
                    err=True,
                )
            summary = job.summary_of(totals) | {"grown_files": grown}
            report.write_report(results, summary, _now_ms())
            results.write_summary(summary)

        job.run(
            stream, results, window, late_after_seconds, follow=follow, every_seconds=every_seconds, after_batch=tell
        )
        tell(Totals.of_batches_before(results, None))
        _show(report.console_table(results.read_summary()), out)


@app.command()
def extract(
    bootstrap: _Bootstrap,
    topic: _Topic,
    out: _Out,
    extractor: Annotated[str, typer.Option(help="fail, skip, previous or wallclock (KIP-93).")] = "fail",
    batch: Annotated[int, typer.Option(help="At most so many offsets at once.", min=1)] = _EXTRACTED_A_BATCH,
    config: _ConfigFile = None,
    master: _Master = None,
) -> None:
    """Write records with their event time; go on where the last run ended."""
    from sluicegate.pipeline.extract import job, report  # noqa: PLC0415
    from sluicegate.pipeline.extract.built_in import NAMES, BuiltIn  # noqa: PLC0415

    if extractor not in NAMES:
        _end(f"there is no extractor {extractor!r}; there are {', '.join(NAMES)}")
    topics = _topics(bootstrap, topic, config)
    with _job("extract", topics, out, master) as (spark, results):
        job.run(spark, topics, results, BuiltIn(extractor), batch)
        summary = job.summary_of(topics, results)
        report.write_report(results, summary, extractor, _now_ms())
        results.write_summary(summary)
        _show(report.console_table(summary), out)


@app.command()
def repair(
    bootstrap: _Bootstrap,
    topic: _Topic,
    out: _Out,
    to: Annotated[
        str, typer.Option(metavar="NAME", help="The clean topic; {topic} is the polluted one.")
    ] = "{topic}-clean",
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the clean topic; without it nothing is written.")
    ] = False,
    after_max_ms: Annotated[int, typer.Option(help="Further ahead of append than this is future.", min=0)] = _AFTER_MAX,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="DAMAGE", help="Leave this damage; may be repeated.")
    ] = None,
    rewrite: Annotated[
        list[str] | None,
        typer.Option(metavar="DAMAGE", help="Rewrite this one though it may be sound: future or implausible."),
    ] = None,
    epoch: _Epoch = _EPOCH,
    retention: Annotated[
        Retention, typer.Option(help="What the clean topic deletes: nothing, or what its source deletes.")
    ] = Retention.KEEP,
    assume_ms: Annotated[
        int | None,
        typer.Option(metavar="MS", help="The time of append in partitions where nothing tells of one.", min=1),
    ] = None,
    config: _ConfigFile = None,
    master: _Master = None,
) -> None:
    """Propose corrections of damaged timestamps, and write the corrected records to a clean topic, exactly once."""
    from sluicegate.pipeline.repair import job, report  # noqa: PLC0415
    from sluicegate.pipeline.repair.correction import BY_NAME_ONLY, NAMES, Rules  # noqa: PLC0415
    from sluicegate.pipeline.repair.reasons import first_lines  # noqa: PLC0415

    for given, known in ((keep, NAMES[1:]), (rewrite, BY_NAME_ONLY)):
        unknown = set(given or ()) - set(known)
        if unknown:
            _end(f"there is no damage {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    now_ms = _now_ms()
    epoch_ms = _epoch_ms(epoch, now_ms)
    topics = _topics(bootstrap, topic, config)
    try:
        targets = job.targets_of(topics, to)
    except CannotWrite as error:
        _end(str(error))
    with _job("repair", topics, out, master) as (spark, results):
        asked = (frozenset(keep or ()), assume_ms, frozenset(rewrite or ()), epoch_ms, retention)
        rules = Rules(now_ms, after_max_ms, *asked)
        plan = job.kept_plan(results, targets, rules) if apply else None
        if plan is None:
            plan = job.planned(spark, topics, results, targets, rules)
        results.forget_summary()
        listing = job.listed(spark, topics, results, plan)
        written = job.apply(spark, topics, results, plan, listing) if apply else None
        summary = job.summary_of(plan, listing, written)
        report.write_report(results, summary, now_ms)
        results.write_summary(summary)
        typer.echo("\n".join(first_lines(summary)))
        _show(report.console_table(listing.changes, apply), out)
        if summary["obstacles"]:
            raise typer.Exit(1)


@app.command()
def verify(
    bootstrap: _Bootstrap,
    topic: Annotated[
        list[str], typer.Option("--topic", metavar="NAME", help="Twice: the topic that was first, and the other.")
    ],
    out: _Out,
    plan: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The repair's --out: compare as far as its plan goes, and by its rules."),
    ] = None,
    config: _ConfigFile = None,
    master: _Master = None,
) -> None:
    """Compare two topics, declared repairs aside; exit status 1 when they differ."""
    from sluicegate.pipeline.verify import job, report  # noqa: PLC0415

    if len(topic) != 2 or topic[0] == topic[1]:
        _end("verify compares two topics: give --topic twice")
    topics = _topics(bootstrap, topic, config)
    with _job("verify", topics, out, master) as (spark, results):
        source = Topics(bootstrap, (topic[0],), topics.settings)
        made_by = job.plan_in(Results(spark, plan), *topic) if plan is not None else None
        summary = job.verify(spark, source, topic[1], results, _now_ms(), made_by)
        report.write_report(results, summary, _now_ms())
        results.write_summary(summary)
        _show(report.console_table(summary), out)
        typer.echo(report.verdict(summary))
    if not summary["same"]:
        raise typer.Exit(1)


def _show(table: Any, out: str) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDE)  # nobody sees where lines break, and what reads them wants whole words
    console.print(table)
    typer.echo(f"Results are in {out}: summary.json, report.html", err=True)


def main() -> None:
    """The entry point."""
    app()

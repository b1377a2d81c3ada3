"""A signal during a call of Java ends the command with one line and the shell's exit status, at any moment."""

import logging
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from sluicegate.pipeline import command
from sluicegate.pipeline.commands.running import SparkAt, session_for
from sluicegate.pipeline.runs.interruption import Interrupted, raise_on_signals
from tests.integration.topics import create_topic
from tests.pipeline.events import ship_events
from tests.pipeline.interrupted_calls import (
    SignalMoment,
    activate_session,
    interrupted_finalizer,
    java_calls,
    restored_process_state,
)
from tests.pipeline.polluted import UNLIMITED, Polluter
from tests.pipeline.repairs import now_ms

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
_REMAINS = "what remains"


@pytest.fixture(autouse=True)
def _own_process(spark: SparkSession) -> Iterator[None]:
    """Undo what the command and its interruption change in this process."""
    root = logging.getLogger()
    handlers = list(root.handlers)
    with restored_process_state(), warnings.catch_warnings():
        yield
    root.handlers[:] = handlers
    activate_session(spark)


def run_job_steps(spark: SparkSession, out: Path) -> None:
    """Do what every job does: make and lock a folder, write a file, run a query of Spark."""
    with session_for("profile", None, str(out), SparkAt(None, None), resume=_REMAINS) as (_, results):
        results.write_text("plan.json", "{}")
        assert results.read_text("plan.json") == "{}"
        assert spark.range(3).count() == 3
        results.write_summary({})


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(moment, marks=() if moment is SignalMoment.AWAITED else pytest.mark.long, id=moment.value)
        for moment in SignalMoment
    ],
)
def test_a_job_ends_when_any_call_to_java_is_interrupted(
    moment: SignalMoment, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    activate_session(spark)
    with java_calls() as calls:
        run_job_steps(spark, tmp_path)
    assert calls.made > 50

    for place in range(1, calls.made + 1):
        activate_session(spark)
        raise_on_signals()
        with (
            java_calls(place, moment, signal.SIGTERM) as interrupted,
            pytest.raises(typer.Exit) as exit_code_of_command,
        ):
            run_job_steps(spark, tmp_path)

        reported = "".join(capsys.readouterr())
        where = f"call {place}, {interrupted.arrived!r}: {reported}"
        assert exit_code_of_command.value.exit_code == 143, where
        assert reported == f"sluicegate-spark: interrupted (SIGTERM): {_REMAINS}\n", where
        assert not list((tmp_path / ".running").glob("*.claim")), where


def test_an_interruption_in_a_finalizer_is_not_lost(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    activate_session(spark)
    raise_on_signals()

    def until_interrupted() -> None:
        with session_for("profile", None, str(tmp_path), SparkAt(None, None), resume=_REMAINS) as (_, results):
            while True:
                results.has("plan.json")

    with interrupted_finalizer(20, signal.SIGTERM) as finalized, pytest.raises(typer.Exit) as exit_code_of_command:
        until_interrupted()

    assert len(finalized) >= 20
    assert exit_code_of_command.value.exit_code == 143
    assert "".join(capsys.readouterr()) == f"sluicegate-spark: interrupted (SIGTERM): {_REMAINS}\n"


def test_cleanup_error_does_not_hide_the_interruption(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    activate_session(spark)
    raise_on_signals()
    with (
        pytest.raises(typer.Exit) as exit_code_of_command,
        session_for("profile", None, str(tmp_path), SparkAt(None, None), resume=_REMAINS),
    ):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            raise Py4JNetworkError("Answer from Java side is empty")

    assert exit_code_of_command.value.exit_code == 130
    assert "".join(capsys.readouterr()) == f"sluicegate-spark: interrupted (SIGINT): {_REMAINS}\n"


def test_an_ended_java_process_is_reported_in_one_line(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    activate_session(spark)
    with (
        pytest.raises(typer.Exit) as exit_code_of_command,
        session_for("profile", None, str(tmp_path), SparkAt(None, None)),
    ):
        raise Py4JNetworkError("Answer from Java side is empty")

    assert exit_code_of_command.value.exit_code == 1
    reported = "".join(capsys.readouterr())
    assert reported == "sluicegate-spark: Spark's Java process does not respond: Answer from Java side is empty\n"


@pytest.fixture(scope="module")
def polluted_topic(kafka_bootstrap: str) -> str:
    return Polluter(kafka_bootstrap, now_ms(), partitions=1).write(batches=6, span_ms=3_600_000).topic


@pytest.fixture(scope="module")
def empty_topic(kafka_bootstrap: str) -> str:
    return create_topic(kafka_bootstrap, UNLIMITED, 1)


def command_arguments(job: str, bootstrap: str, topic: str, empty: str, folder: Path) -> list[str]:
    """Return the arguments of a command with its results in `folder`."""
    policies = folder.parent / "sluicegate.yaml"
    policies.write_text("upstream: {bootstrap: ['127.0.0.1:9']}\nlisten: {bootstrap: '127.0.0.1:19092'}\n")
    if job == "violations":
        ship_events(folder.parent / "events", files=1, a_file=5)
        return [job, "--events", str(folder.parent / "events"), "--out", str(folder)]
    more = {
        "audit": ("--policies", str(policies)),
        "extract": ("--extractor", "skip"),
        "repair": ("--apply", "--to", f"{{topic}}-{folder.name}"),
        "replay": ("--apply", "--policies", str(policies)),
        "verify": ("--topic", empty),
        "watch": ("--once",),
    }
    about = empty if job == "replay" else topic  # the topic has no dead letters, so the whole job runs without work
    return [job, "--bootstrap", bootstrap, "--topic", about, "--out", str(folder), *more.get(job, ())]


def exit_code_of_command(*given: str) -> int:
    """Run the command in this process, whose Spark session it uses; return its exit status."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as exited:
        patch.setattr(sys, "argv", ["sluicegate-spark", *given])
        command.main()
    return exited.value.code if isinstance(exited.value.code, int) else 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("job", "share", "moment"),
    [
        ("profile", 0.9, SignalMoment.AFTER),
        ("audit", 0.5, SignalMoment.AWAITED),
        ("repair", 0.8, SignalMoment.AWAITED),
        ("replay", 0.6, SignalMoment.BEFORE),
        ("verify", 0.3, SignalMoment.AWAITED),
        ("extract", 0.7, SignalMoment.AFTER),
        ("violations", 0.6, SignalMoment.AWAITED),
        ("watch", 0.6, SignalMoment.AWAITED),
    ],
)
def test_each_job_ends_when_any_call_to_java_is_interrupted(
    job: str,
    share: float,
    moment: SignalMoment,
    spark: SparkSession,
    kafka_bootstrap: str,
    polluted_topic: str,
    empty_topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    activate_session(spark)
    with java_calls() as calls:
        status = exit_code_of_command(
            *command_arguments(job, kafka_bootstrap, polluted_topic, empty_topic, tmp_path / "whole")
        )
    assert status == (1 if job == "verify" else 0), capsys.readouterr()  # the topics differ
    capsys.readouterr()

    given = command_arguments(job, kafka_bootstrap, polluted_topic, empty_topic, tmp_path / "interrupted")
    activate_session(spark)
    with java_calls(int(calls.made * share), moment) as interrupted:
        status = exit_code_of_command(*given)

    reported = capsys.readouterr().err
    where = f"{moment.value}, {interrupted.arrived!r}: {reported}"
    assert status == 130, where
    assert reported.splitlines()[-1].startswith("sluicegate-spark: interrupted (SIGINT): "), where
    assert "Traceback" not in reported, where
    assert Interrupted.pending() is None

"""Runs the programs that write dead letters: Kafka Connect, Kafka Streams, Spring Kafka and share groups."""

import os
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.broker.child_processes import killed_with_parent
from tests.oracle.java_program import java_command
from tests.oracle.kafka_java import ROOT

PROGRAMS = Path(__file__).parent / "writers"
_SECONDS = 900 if os.environ.get("SLUICEGATE_THOROUGH") else 170


def jars_of(writer: str) -> Path:
    """Return the folder of a writer's jars."""
    folder = ROOT / ".writers" / writer
    if not (folder / ".complete").exists():
        message = f"{writer} is not installed: run `make .writers/{writer}/.complete` (requires Java 17 and Maven)"
        if os.environ.get("SLUICEGATE_REQUIRE_BROKER"):
            pytest.fail(message)
        pytest.skip(message)
    return folder


def lines_of(jars: Path, program: str, *arguments: str) -> list[list[str]]:
    """Run a program to its end, and return the words of each line that it prints."""
    command = [*java_command(jars, str(PROGRAMS / f"{program}.java")), *arguments]
    done = subprocess.run(killed_with_parent(command), capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-4000:])
    return [line.split() for line in done.stdout.splitlines()]


@contextmanager
def running(command: list[str], log: Path) -> Iterator[None]:
    """Run a program in the background. `log` gets its output."""
    with (
        log.open("wb") as written,
        subprocess.Popen(killed_with_parent(command), stdout=written, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield
        finally:
            process.kill()


def text_in(word: str) -> str:
    """Return the text that a program has encoded; empty for a null message."""
    return "" if word == "-" else b64decode(word).decode()

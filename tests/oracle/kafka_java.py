"""Asks Kafka's own Java classes, many questions in one process."""

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
KAFKA_NEW, KAFKA_OLD = "4.3.1", "3.9.1"


def kafka_folder(version: str) -> Path:
    """The folder of a Kafka release's jars, as `make kafka` brings them."""
    folder = ROOT / ".kafka" / version
    if not (folder / ".complete").exists():
        message = f"Kafka {version} is not here: run `make kafka` (Java 17 and Maven are needed)"
        if os.environ.get("SLUICEGATE_REQUIRE_BROKER"):
            pytest.fail(message)
        pytest.skip(message)
    return folder


def ask_kafka(version: str, questions: Iterable[tuple[str, int, bytes]]) -> list[tuple[bytes, Any] | str]:
    """For each (message name, version, bytes): (bytes as Kafka writes them, JSON value), or why it cannot."""
    lines = "".join(f"{name} {v} {data.hex()}\n" for name, v, data in questions)
    program = Path(__file__).with_name("KafkaMessages.java")
    done = subprocess.run(
        ["java", "-cp", f"{kafka_folder(version)}/*", str(program)],
        input=lines,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [_read(line) for line in done.stdout.splitlines()]


def _read(line: str) -> tuple[bytes, Any] | str:
    first, _, rest = line.partition(" ")
    return rest if first == "!" else (bytes.fromhex(first), json.loads(rest))

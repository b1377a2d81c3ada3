"""Parses and serializes messages with Kafka's own Java classes, many in one process."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.oracle.java_program import java_command, run_java
from tests.oracle.kafka_java import kafka_folder


def ask_kafka(version: str, questions: Iterable[tuple[str, int, bytes]]) -> list[tuple[bytes, Any] | str]:
    """Return for each (message name, version, bytes) Kafka's (bytes, JSON value), or its error."""
    lines = "".join(f"{name} {v} {data.hex()}\n" for name, v, data in questions)
    program = Path(__file__).with_name("KafkaMessages.java")
    said = run_java(java_command(kafka_folder(version), str(program)), lines)
    return [_read(line) for line in said.splitlines()]


def _read(line: str) -> tuple[bytes, Any] | str:
    first, _, rest = line.partition(" ")
    return rest if first == "!" else (bytes.fromhex(first), json.loads(rest))

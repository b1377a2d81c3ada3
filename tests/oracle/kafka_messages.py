"""Asks Kafka's own Java classes, many questions in one process."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.oracle.java_program import java_command, said_by
from tests.oracle.kafka_java import kafka_folder


def ask_kafka(version: str, questions: Iterable[tuple[str, int, bytes]]) -> list[tuple[bytes, Any] | str]:
    """For each (message name, version, bytes): (bytes as Kafka writes them, JSON value), or why it cannot."""
    lines = "".join(f"{name} {v} {data.hex()}\n" for name, v, data in questions)
    program = Path(__file__).with_name("KafkaMessages.java")
    said = said_by(java_command(kafka_folder(version), str(program)), lines)
    return [_read(line) for line in said.splitlines()]


def _read(line: str) -> tuple[bytes, Any] | str:
    first, _, rest = line.partition(" ")
    return rest if first == "!" else (bytes.fromhex(first), json.loads(rest))

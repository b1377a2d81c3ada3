"""Runs classes in Kafka's jars, or single source files that use them."""

from collections.abc import Sequence

from tests.oracle.java_program import SHORT_LIVED, java_command, run_java
from tests.oracle.kafka_java import KAFKA_NEW, kafka_folder


def java_tool(
    program: str, *arguments: str, stdin: str = "", options: Sequence[str] = (), version: str = KAFKA_NEW
) -> str:
    """Run a class and return its output; `options` are Java's."""
    command = java_command(kafka_folder(version), program, (*SHORT_LIVED, *options))
    return run_java([*command, *arguments], stdin)

"""Runs classes of Kafka's jars, or single source files against them."""

from collections.abc import Sequence

from tests.oracle.java_program import SHORT_LIVED, java_command, said_by
from tests.oracle.kafka_java import KAFKA_NEW, kafka_folder


def java_tool(
    program: str, *arguments: str, stdin: str = "", options: Sequence[str] = (), version: str = KAFKA_NEW
) -> str:
    """Run a class and return its output; `options` are Java's."""
    command = java_command(kafka_folder(version), program, (*SHORT_LIVED, *options))
    return said_by([*command, *arguments], stdin)

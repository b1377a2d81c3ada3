"""Reads topics with consumers from several libraries, up to the end or an error."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.clients.programs import BUILT
from tests.integration.java import java_tool

HERE = Path(__file__).parent
LAST = "sentinel"
"""The value of the last record in each topic."""
_SECONDS = 6  # a consumer counts as stopped after this time without new records


class ConsumerResult(NamedTuple):
    """Offsets and values in order of reading; `error`: the error before the last record, if any."""

    records: tuple[tuple[int, str], ...]
    error: str | None


def _python(library: str) -> Callable[[str, Sequence[str]], dict[str, ConsumerResult]]:
    def read(bootstrap: str, topics: Sequence[str]) -> dict[str, ConsumerResult]:
        command = [sys.executable, str(HERE / "python_reader.py"), library, bootstrap, LAST, str(_SECONDS), *topics]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        lines = map(json.loads, done.stdout.splitlines())
        return {line["topic"]: ConsumerResult(tuple(map(tuple, line["records"])), line["error"]) for line in lines}

    return read


def _java(bootstrap: str, topics: Sequence[str]) -> dict[str, ConsumerResult]:
    printed = java_tool(str(HERE / "JavaReader.java"), bootstrap, LAST, str(_SECONDS), *topics)
    parts = [part.partition("\n") for part in printed.split("topic ")[1:]]
    return {topic: _from_lines(lines) for topic, _, lines in parts}


def _go(name: str) -> Callable[[str, Sequence[str]], dict[str, ConsumerResult]]:
    def read_with_program(bootstrap: str, topic: str) -> ConsumerResult:
        command = [str(BUILT / "go" / name), bootstrap, "read", topic, LAST, str(_SECONDS)]
        return _from_lines(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout)

    def read(bootstrap: str, topics: Sequence[str]) -> dict[str, ConsumerResult]:
        with ThreadPoolExecutor(8) as several:
            return dict(
                zip(topics, several.map(lambda topic: read_with_program(bootstrap, topic), topics), strict=True)
            )

    return read


def _from_lines(printed: str) -> ConsumerResult:
    records: list[tuple[int, str]] = []
    for line in printed.splitlines():
        offset, _, value = line.partition(" ")
        if offset == "error":
            return ConsumerResult(tuple(records), value)
        records.append((int(offset), value))
    return ConsumerResult(tuple(records), None)


CONSUMERS: dict[str, Callable[[str, Sequence[str]], dict[str, ConsumerResult]]] = {
    "Java": _java,
    "librdkafka": _python("librdkafka"),
    "kafka-python": _python("kafka-python"),
    "aiokafka": _python("aiokafka"),
    **{f"{name}": _go(name) for name in ("franz", "sarama") if (BUILT / "go" / name).exists()},
}

"""Reads schemas with Java's libraries, and writes data with them."""

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.java_program import java_command, run_java
from tests.oracle.kafka_java import ROOT

_PROGRAMS = Path(__file__).parent / "schemas"


@dataclass(frozen=True, slots=True)
class AvroInJava:
    """`name`: the full name of a schema. `data`: random data that Java writes with it. `error`: why it is unusable."""

    name: str = ""
    data: tuple[bytes, ...] = ()
    error: str | None = None


def avro_in_java(schemas: Iterable[str], count: int = 3) -> list[AvroInJava]:
    """Return what Avro's Java library makes of each schema."""
    lines = "".join(f"{b64encode(schema.encode()).decode()}\n" for schema in schemas)
    return [_avro(line) for line in _run("AvroSchemas", lines, str(count))]


def _avro(line: str) -> AvroInJava:
    outcome, _, rest = line.partition(" ")
    if outcome == "unusable":
        return AvroInJava(error=rest)
    name, *data = [b64decode(one) for one in rest.split(" ")]
    return AvroInJava(name.decode(), tuple(data))


def json_schemas_in_java(rows: Iterable[tuple[Any, list[Any]]]) -> list[list[list[bool]]]:
    """Return, for each schema with its values, the verdicts of each of Java's libraries that can use the schema."""
    found = _run("JsonSchemas", "".join(f"{json.dumps(row)}\n" for row in rows))
    return [[[one == "1" for one in each[1:]] for each in line.split() if each != "unusable"] for line in found]


def _run(program: str, stdin: str, *arguments: str) -> list[str]:
    folder = ROOT / ".schemas"
    if not (folder / ".complete").exists():
        message = "Java's schema libraries are not installed: run `make .schemas/.complete` (requires Maven)"
        if os.environ.get("SLUICEGATE_REQUIRE_BROKER"):
            pytest.fail(message)
        pytest.skip(message)
    return run_java([*java_command(folder, str(_PROGRAMS / f"{program}.java")), *arguments], stdin).splitlines()

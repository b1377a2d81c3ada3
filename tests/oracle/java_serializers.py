"""Writes and reads data with other registries' serializers: AWS's for Glue, and Apicurio's for Protobuf and Avro."""

import os
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from sluicegate.validation.rules.rule import Header
from tests.oracle.java_program import java_command, run_java
from tests.oracle.kafka_java import ROOT

_PROGRAMS = Path(__file__).parent / "serializers"


@dataclass(frozen=True, slots=True)
class GlueValue:
    """`schema`: a text, or a FileDescriptorProto for Protobuf with the path of `message`. `data`: its encoding."""

    version: UUID
    language: str
    schema: bytes
    data: bytes
    message: str = ""
    compression: str = "NONE"


def glue_values(values: Iterable[GlueValue]) -> list[tuple[bytes, str]]:
    """Return each value as AWS's serializer writes it, and the schema text that it registers."""
    lines = (
        f"{one.compression} {one.language} {one.version} {_encoded(one.schema)}:{one.message} {_encoded(one.data)}\n"
        for one in values
    )
    found = _run("glue", "GlueValues", "".join(lines))
    return [(b64decode(made), b64decode(text).decode()) for made, text in map(str.split, found)]


def read_glue_values(values: Iterable[bytes]) -> list[tuple[bytes, UUID]]:
    """Return the encoding of each value, and the version of its schema, as AWS's deserializers read them."""
    found = _run("glue", "GlueValues", "".join(f"READ {_encoded(value)}\n" for value in values))
    return [(b64decode(data), UUID(version)) for data, version in map(str.split, found)]


def apicurio_protobuf(
    url: str, topic: str, file: bytes, messages: Iterable[tuple[str, bytes]], with_headers: bool
) -> list[tuple[bytes, tuple[Header, ...]]]:
    """Register a file and return each message, named by its path, as Apicurio's serializer writes it, with headers."""
    lines = "".join(f"{path} {_encoded(data)}\n" for path, data in messages)
    arguments = (url, topic, "true" if with_headers else "false")
    found = _run("apicurio", "ApicurioProtobuf", f"{_encoded(file)}\n{lines}", *arguments)
    return [_value_of(line) for line in found]


def apicurio_avro(
    url: str, topic: str, schema: str, data: Iterable[bytes], encoding: str
) -> list[tuple[bytes, tuple[Header, ...]]]:
    """Register a schema and return each datum as Apicurio's serializer writes it with headers.

    `encoding`: apicurio.registry.avro.encoding, BINARY or JSON.
    """
    lines = "".join(f"{_encoded(each)}\n" for each in data)
    found = _run("apicurio", "ApicurioAvro", f"{_encoded(schema.encode())}\n{lines}", url, topic, encoding)
    return [_value_of(line) for line in found]


def read_apicurio_protobuf(
    url: str, topic: str, values: Iterable[tuple[bytes, tuple[Header, ...]]], with_headers: bool
) -> list[bytes]:
    """Return the message in each value as Apicurio's deserializer reads it."""
    lines = "".join(
        " ".join([_encoded(value), *(f"{name.decode()}:{_encoded(text or b'')}" for name, text in headers)]) + "\n"
        for value, headers in values
    )
    arguments = (url, topic, "true" if with_headers else "false", "read")
    return [b64decode(line) for line in _run("apicurio", "ApicurioProtobuf", lines, *arguments)]


def _value_of(line: str) -> tuple[bytes, tuple[Header, ...]]:
    value, *headers = line.split(" ")
    pairs = (header.partition(":") for header in headers)
    return b64decode(value), tuple((name.encode(), b64decode(text)) for name, _, text in pairs)


def _encoded(data: bytes) -> str:
    return b64encode(data).decode()


def _run(folder: str, program: str, stdin: str, *arguments: str) -> list[str]:
    jars = ROOT / ".serializers" / folder
    if not (jars / ".complete").exists():
        message = f"these serializers are not installed: run `make .serializers/{folder}/.complete` (requires Maven)"
        if os.environ.get("SLUICEGATE_REQUIRE_BROKER"):
            pytest.fail(message)
        pytest.skip(message)
    return run_java([*java_command(jars, str(_PROGRAMS / f"{program}.java")), *arguments], stdin).splitlines()

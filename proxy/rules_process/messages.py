"""Messages between the proxy and its rules process.

The process trusts the proxy, so requests are pickled. The process has handled clients' data, so its responses are JSON,
which the proxy checks and never unpickles. A response fits into PIPE_BUF. So the pipe writes it atomically, and a
process that ends never leaves part of a response.
"""

import json
import os
import pickle
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from io import FileIO
from itertools import count
from typing import Any

from sluicegate.validation.rules.rule import Client, RuledRecord

_HEAD = struct.Struct(">I")
_LENGTH = struct.Struct(">H")
_MOST_RESPONSE_BYTES = 4096  # PIPE_BUF of Linux. It is 512 on macOS, but an empty pipe accepts more there
_MOST_CHARACTERS = 600


_NUMBERS = count(1)

RecordFields = tuple[Any, ...]
"""The fields of a record, from `fields_of`."""
Subject = bytes | RecordFields
"""The data to evaluate: either a schema's data or a record's fields."""

NAMING = "naming"
"""The option that contains a MessageNaming."""

JSON_ENCODING = "json_encoding"
"""The option for an Avro specification whose data are in JSON encoding."""

ENCRYPTED = "encrypted"
"""The option that contains the FieldChange of each rule that encrypts fields."""

CHANGES = "changes"
"""The option for the rules inside a schema. It contains the FieldChange of each rule that changes fields."""

FORMATS = "formats"
"""The option that contains a Formats."""


class EvaluatorKind(Enum):
    """Kinds of schemas and rules, by the libraries that they require."""

    JSON = "JSON Schema"
    AVRO = "Avro"
    SERIALIZED_AVRO = "Avro after an id"
    PROTOBUF = "Protobuf"
    PROTO_SOURCE = "Protobuf source"
    CONTENT_RULE = "content rule"
    EXPRESSION = "CEL"
    JSON_EXPRESSION = "CEL over JSON"
    AVRO_EXPRESSION = "CEL over Avro"
    PROTOBUF_EXPRESSION = "CEL over Protobuf"
    PROTOBUF_CONSTRAINTS = "protovalidate"
    INLINE_RULES = "rules inside a schema"
    AS_JSON = "JSON Schema over other data"
    CUSTOM_RULE = "custom rule"


@dataclass(frozen=True, slots=True)
class Specification:
    """One schema or rule.

    `number` identifies it in both processes' caches, even if two specifications have the same text. `text` is the text
    of a schema or an expression, or a descriptor set for PROTOBUF. `references` contains the schemas to which the text
    refers, by name, each after its own references.

    `name` is the message in a Protobuf file, the entry point of a custom rule, the key of a CONTENT_RULE, or the folder
    of the descriptor set for PROTO_SOURCE. It is empty for a registered schema, because the data name its messages.

    `options` depends on the kind. A custom rule has its own options. A CONTENT_RULE has the side and its keys. An
    expression over a schema has `expression` (a string, or a registry's Condition) and `schema` (the kind of that
    schema). PROTOBUF_CONSTRAINTS has only `schema`, INLINE_RULES also has CHANGES, and AS_JSON a `json_schema`. A
    registered schema has ENCRYPTED; if it is Protobuf, it also has NAMING. A JSON Schema whose formats are annotations
    has FORMATS, and Avro in JSON encoding has JSON_ENCODING.
    """

    kind: EvaluatorKind
    text: bytes = b""
    references: tuple[tuple[str, bytes], ...] = ()
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    number: int = field(default_factory=lambda: next(_NUMBERS))

    @property
    def size(self) -> int:
        """The size in bytes of the specification's text and references."""
        return len(self.text) + sum(len(name) + len(text) for name, text in self.references)


class RulesOperation(Enum):
    """An operation on a schema or a rule."""

    COMPILE = "compile"
    FAULT = "fault"
    DESCRIPTION = "description"
    RECORD_NAME = "record_name"


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """One request to the rules process.

    `number` identifies the specification, which is sent only with COMPILE. `seconds` is the CPU time that the request
    may take. `subjects` are evaluated one after another.
    """

    operation: RulesOperation
    number: int
    seconds: float
    specification: Specification | None = None
    subjects: tuple[Subject, ...] = ()


class ResponseOutcome(Enum):
    """The outcome of a request, or of one of its subjects."""

    DONE = "done"
    UNKNOWN = "unknown"  # the process does not know the specification, which must be sent again
    UNUSABLE = "unusable"  # the specification cannot be compiled, for the reason in `words`
    OUTAGE = "outage"  # a service that the rule uses, named in `words`, does not respond
    FAILED = "failed"  # an error at the place in `words`, in the proxy's code or in a custom rule
    # The host sends this after the process was ended by `signal` or exited with `code`. If `is_final` is true, the host
    # has ended too.
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class EvaluationResponse:
    """One response of the rules process.

    `seconds` is the CPU time used, and `grown` is how many bytes the process has grown. If a compilation is DONE,
    `words` names the rules inside the schema that cannot be evaluated, if there are any. A request with several
    subjects gets a response for each. If `is_last` is true, no response follows, although subjects may remain.
    """

    outcome: ResponseOutcome
    words: str | None = None
    seconds: float = 0.0
    grown: int = 0
    signal: int = 0
    code: int = 0
    is_memory: bool = False
    is_final: bool = False
    is_last: bool = True


_NUMBERS_AND_FLAGS: dict[str, Callable[[Any], Any]] = {
    each.name: type(each.default) for each in fields(EvaluationResponse)[2:]
}


class NoResponse(Exception):
    """The other end has closed the pipe or has sent an invalid response."""


def encoded_request(request: EvaluationRequest) -> list[bytes]:
    """Return the parts of the request to send, in order."""
    pickled = pickle.dumps(request)
    return [_HEAD.pack(len(pickled)), pickled]


def received_request(here: FileIO) -> EvaluationRequest | None:
    """Read a request. Return None if no more requests follow."""
    head = _read(here, _HEAD.size)
    if head is None:
        return None
    pickled = _read(here, *_HEAD.unpack(head))
    if pickled is None:
        return None
    request: EvaluationRequest = pickle.loads(pickled)  # noqa: S301  # sent by the proxy itself
    return request


def send_response(there: FileIO, response: EvaluationResponse) -> None:
    """Send a response in one write. Raises OSError."""
    words = response.words
    sent = {name: getattr(response, name) for name in _NUMBERS_AND_FLAGS}
    sent["outcome"] = response.outcome.value
    sent["words"] = None if words is None else words[:_MOST_CHARACTERS]
    encoded = json.dumps(sent, ensure_ascii=False).encode(errors="replace")
    os.write(there.fileno(), _LENGTH.pack(len(encoded)) + encoded)


def received_response(here: FileIO) -> EvaluationResponse:
    """Wait for a response and return it. Raises NoResponse."""
    head = _read(here, _LENGTH.size)
    size = 0 if head is None else _LENGTH.unpack(head)[0]
    encoded = _read(here, size) if 0 < size <= _MOST_RESPONSE_BYTES else None
    if encoded is None:
        raise NoResponse
    try:
        return _checked(json.loads(encoded))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NoResponse from None


def _checked(received: Any) -> EvaluationResponse:
    words = received["words"]
    return EvaluationResponse(
        ResponseOutcome(received["outcome"]),
        None if words is None else str(words)[:_MOST_CHARACTERS],
        **{name: kind(received[name]) for name, kind in _NUMBERS_AND_FLAGS.items()},
    )


def _read(here: FileIO, size: int) -> bytes | None:
    """Read exactly `size` bytes. Return None if the pipe ends earlier."""
    if size == 0:
        return b""
    got = bytearray(size)
    view = memoryview(got)
    at = 0
    while at < size:
        count = here.readinto(view[at:])
        if not count:
            return None
        at += count
    view.release()
    return bytes(got)


def fields_of(record: RuledRecord) -> RecordFields:
    """Return all fields of a record that a rule may read."""
    client = record.client
    of_client = (
        client.address,
        client.client_id,
        client.software_name,
        client.software_version,
        client.principal,
        client.is_unverified,
    )
    return (
        record.topic,
        record.partition,
        record.index,
        record.timestamp,
        record.key,
        record.value,
        record.headers,
        record.key_size,
        record.value_size,
        of_client,
        record.producer_id,
    )


def record_of(fields: RecordFields) -> RuledRecord:
    """Rebuild the record whose fields `fields_of` returned."""
    topic, partition, index, timestamp, key, value, headers, key_size, value_size, of_client, producer_id = fields
    record = RuledRecord(topic, partition, 0, 0, None, None, (), Client(*of_client), producer_id)
    record.fill(index, timestamp, key, value, headers, key_size, value_size)
    return record

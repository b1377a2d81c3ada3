"""Schemas check limits before they allocate memory, and raise only MalformedMessage."""

import random
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.integers import unsigned_varint
from sluicegate.protocol.messages.cluster import DESCRIBE_CONFIGS_RESPONSE, METADATA_RESPONSE
from sluicegate.protocol.messages.handshake import API_VERSIONS_RESPONSE, SASL_HANDSHAKE_REQUEST
from sluicegate.protocol.messages.produce import PRODUCE_REQUEST
from sluicegate.protocol.messages.schema import DEFAULT_MAX_ELEMENTS, MessageSchema
from tests.oracle.definitions import RandomMessage
from tests.protocol.messages.test_against_kafka import message_schemas, release_of
from tests.wire.cost import cpu_seconds_of_call
from tests.wire.fetch_response import FETCH_RESPONSE
from tests.wire.unparsed_messages import API_VERSIONS_REQUEST


@pytest.mark.parametrize("digits", [100, 10_000, 400_000])
def test_rejects_unterminated_varint_in_bounded_time(digits: int) -> None:
    with pytest.raises(MalformedMessage, match="five bytes"):
        API_VERSIONS_REQUEST.parse(b"\xff" * digits, 3)
    short, long = b"\xff" * 100, b"\xff" * 400_000  # only the bytes that are copied
    assert cpu_seconds_of_call(lambda: API_VERSIONS_REQUEST.parse(long, 3)) < 200 * cpu_seconds_of_call(
        lambda: API_VERSIONS_REQUEST.parse(short, 3)
    )


def test_rejects_array_count_that_exceeds_the_remaining_bytes() -> None:
    topics = unsigned_varint(1_000_001) + bytes(1_000_000)  # a topic takes at least 26 bytes
    with pytest.raises(MalformedMessage, match="1000000 elements, but only 1000000 bytes are left"):
        METADATA_RESPONSE.parse(bytes(4) + b"\x01\x00" + bytes(4) + topics, 12)


def test_rejects_message_with_too_many_elements() -> None:
    topics = [{"name": "t", "partition_data": [{"index": 0, "records": None}] * 9} for _ in range(10)]
    body = PRODUCE_REQUEST.build({"acks": 1, "timeout_ms": 1, "topic_data": topics, "transactional_id": None}, 9)

    assert PRODUCE_REQUEST.parse(body, 9, max_elements=100)["topic_data"] == topics
    with pytest.raises(MalformedMessage, match="9 more elements than the 8 that are left"):
        PRODUCE_REQUEST.parse(body, 9, max_elements=99)


def test_tagged_fields_and_their_contents_count_as_elements() -> None:
    feature = {"name": "f", "min_version": 0, "max_version": 1}
    value = {"error_code": 0, "api_keys": [], "supported_features": [feature] * 5, "unknown_tags": {9: b"x"}}
    body = API_VERSIONS_RESPONSE.build(value, 3)

    assert API_VERSIONS_RESPONSE.parse(body, 3, max_elements=7)["supported_features"] == [feature] * 5
    with pytest.raises(MalformedMessage, match="5 more elements than the 4"):
        API_VERSIONS_RESPONSE.parse(body, 3, max_elements=6)


def test_rejects_two_million_tagged_fields_by_their_count() -> None:
    flood = b"\x02a\x02b" + unsigned_varint(2_000_000) + bytes(4_000_000)
    with pytest.raises(MalformedMessage, match=f"2000000 more elements than the {DEFAULT_MAX_ELEMENTS}"):
        API_VERSIONS_REQUEST.parse(flood, 3)


def test_rejects_surplus_bytes_in_a_tagged_field() -> None:
    epoch = b"\x01" + bytes([9]) + bytes(8) + b"?"
    with pytest.raises(MalformedMessage, match="1 bytes after a tagged field"):
        API_VERSIONS_RESPONSE.parse(b"\0\0\x01" + bytes(4) + b"\x01" + epoch, 3)


@pytest.mark.parametrize(
    ("schema", "version", "body"),
    [
        (SASL_HANDSHAKE_REQUEST, 1, b"\0\1\xff"),  # not UTF-8
        (SASL_HANDSHAKE_REQUEST, 1, b"\xff\xfe"),  # a length of -2
        (DESCRIBE_CONFIGS_RESPONSE, 0, bytes(4) + b"\x7f\xff\xff\xff"),
        (
            API_VERSIONS_REQUEST,
            3,
            unsigned_varint(32_769) + b"a" * 32_768 + b"\x02b\0",
        ),  # brokers reject a string of this length
        (FETCH_RESPONSE, 12, bytes(10) + b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_rejects_count_or_length_beyond_the_message_end(schema: MessageSchema, version: int, body: bytes) -> None:
    with pytest.raises(MalformedMessage):
        schema.parse(body, version)


def every_version() -> Iterator[tuple[str, MessageSchema, int]]:
    for name, schema in message_schemas():
        for version in schema.versions:
            yield name, schema, version


@pytest.mark.parametrize(
    ("name", "schema", "version"), list(every_version()), ids=lambda v: str(v) if isinstance(v, str | int) else ""
)
def test_mutated_messages_are_parsed_or_rejected_as_malformed(name: str, schema: MessageSchema, version: int) -> None:
    chance = random.Random(f"{name} {version}")
    for seed in range(4):
        message = RandomMessage(release_of(name, version), name, version, seed).ours
        whole = schema.build(message, version)
        for _ in range(25):
            mutant = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                if mutant:
                    mutant[chance.randrange(len(mutant))] = chance.choice(
                        (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
                    )
            with suppress(MalformedMessage):
                schema.parse(mutant[: chance.choice((len(mutant), chance.randint(0, len(mutant))))], version)


@given(st.sampled_from(list(every_version())), st.binary(max_size=200))
def test_random_bytes_are_parsed_or_reported_as_malformed(case: tuple[str, MessageSchema, int], garbage: bytes) -> None:
    _, schema, version = case
    with suppress(MalformedMessage):
        schema.parse(garbage, version)

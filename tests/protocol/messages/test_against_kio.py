"""Messages agree with kio, a second independent implementation, which reads our bytes and writes the same bytes."""

import random
from io import BytesIO
from typing import Any

import pytest
from kio.index import UnknownEntity, load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from sluicegate.protocol.api import APIS
from sluicegate.protocol.messages.schema import MessageSchema
from tests.oracle.definitions import RandomMessage, random_integer
from tests.oracle.kafka_java import KAFKA_NEWEST, KAFKA_OLD
from tests.protocol.messages.test_against_kafka import has_expected_values, message_schemas, release_of

KEYS = {api.name: api.key for api in APIS.values()}
SEEDS = range(6)
ERROR_CODES = (0, 2, 3, 6, 32, 87, 100)


def kio_number(chance: random.Random, field: str, bits: int) -> int:
    """Return a random value that kio can represent: it converts error codes to an enum, and times to datetime or
    timedelta."""
    if field.endswith("ErrorCode"):
        return chance.choice(ERROR_CODES)
    if "time" in field.lower():
        return chance.randrange(1, 2**31)
    return random_integer(chance, field, bits)


def kio_type(name: str, version: int) -> Any:
    load = load_request_schema if name.endswith("Request") else load_response_schema
    return load(KEYS[name.removesuffix("Request").removesuffix("Response")], version)


@pytest.mark.parametrize(
    ("name", "schema"), message_schemas(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_messages_equal_those_that_kio_reads_and_writes(name: str, schema: MessageSchema) -> None:
    compared = 0
    for version in schema.versions:
        if release_of(name, version) == KAFKA_OLD:
            continue  # kio contains the messages of Kafka 4
        try:
            entity = kio_type(name, version)
        except UnknownEntity:
            continue
        for seed in SEEDS:
            message = RandomMessage(KAFKA_NEWEST, name, version, seed, kio_number)
            ours = schema.build(message.ours, version)

            value, size = entity_reader(entity)(ours, 0)
            theirs = BytesIO()
            entity_writer(entity)(theirs, value)

            assert size == len(ours), f"{name} v{version}"
            assert theirs.getvalue() == ours, f"{name} v{version}"
            assert has_expected_values(schema.parse(theirs.getvalue(), version), message.ours), f"{name} v{version}"
            compared += 1
    assert compared
